"""Check that the settings of the Windows scheduled task do not stop the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Unit


@check(id="service-task", group="supervision", codes=["GW-WIN-SCHTASK"], needs="service")
def service_task(probes: Probes) -> Iterator[Finding]:
    """Does the Windows task keep the gateway running?"""
    tasks = [unit for unit in probes.supervision().units if unit.kind == "windows-task"]
    if not tasks:
        raise Skip("no Windows task runs the gateway")
    for unit in tasks:
        faults = list(_faults(unit))
        if faults:
            yield Finding(
                code="GW-WIN-SCHTASK",
                severity=Severity.WARNING,
                title=text("the task {name} does not keep the gateway running", name=unit.name),
                subject=unit.name,
                detail="The gateway can stop, and the bot then stays silent until you start it.",
                evidence=tuple(Evidence(unit.name, fault) for fault in faults),
                next="Update Hermes, then run `hermes gateway install` to write the task again.",
                data={"unit": unit},
            )


def _faults(unit: Unit) -> Iterator[str]:
    said = unit.settings
    if said.get("Registered") == "no":
        yield "not registered in Windows, but its launcher exists"
        return
    if said.get("Registered") != "yes":
        return
    limit = said.get("ExecutionTimeLimit", "PT72H")
    if limit != "PT0S":
        yield f"Windows stops it after {limit.removeprefix('PT').removeprefix('P')}"
    if said.get("StopIfGoingOnBatteries", "true") == "true":
        yield "Windows stops it when the machine runs on battery"
    if said.get("RestartOnFailure") != "yes":
        yield "Windows does not restart it after a failure"
    if said.get("Command", "").lower().endswith(("cmd.exe", "cmd", ".cmd")):
        yield "runs in a console window, which closes at logout"
