"""Check that the settings of the Windows scheduled task do not stop the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Unit


@check(id="service-task", group="supervision", codes=["GW-WIN-SCHTASK"])
def service_task(probes: Probes) -> Iterator[Finding]:
    """Does the scheduled task keep the gateway running?"""
    tasks = [unit for unit in probes.supervision().units if unit.kind == "windows-task"]
    if not tasks:
        raise Skip("no scheduled task runs the gateway")
    for unit in tasks:
        faults = list(_faults(unit))
        if faults:
            yield Finding(
                code="GW-WIN-SCHTASK",
                severity=Severity.WARNING,
                title=text(
                    "the task {unit} ends the gateway or does not bring it back", unit=unit.name
                ),
                subject=unit.name,
                detail="`hermes gateway install` of a present Hermes writes a better one.",
                evidence=tuple(Evidence(unit.name, fault) for fault in faults),
                data={"unit": unit},
            )


def _faults(unit: Unit) -> Iterator[str]:
    said = unit.settings
    if said.get("Registered") == "no":
        yield "is not registered, though its launcher is there"
        return
    if said.get("Registered") != "yes":
        return
    limit = said.get("ExecutionTimeLimit", "PT72H")
    if limit != "PT0S":
        yield f"is ended after {limit.removeprefix('PT').removeprefix('P')}"
    if said.get("StopIfGoingOnBatteries", "true") == "true":
        yield "is ended when the machine goes on batteries"
    if said.get("RestartOnFailure") != "yes":
        yield "is not started again after a failure"
    if said.get("Command", "").lower().endswith(("cmd.exe", "cmd", ".cmd")):
        yield "runs in a console, which a logout or Ctrl-C closes"
