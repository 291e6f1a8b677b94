"""Find the scheduled task that starts a gateway on Windows."""

from __future__ import annotations

import re

from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.supervisors.unit import TASK, Unit
from hermes_doctor.system import commands
from hermes_doctor.system.files import list_folder

_FOLDER = "gateway-service"
_TAGS = (
    *("ExecutionTimeLimit", "StopIfGoingOnBatteries", "DisallowStartIfOnBatteries"),
    *("MultipleInstancesPolicy", "Command", "LogonType"),
)


def tasks(home: Home) -> list[Unit]:
    """Return the tasks of this home, by the launcher scripts that Hermes wrote for them."""
    names = [name for name in list_folder(home / _FOLDER) if name.endswith(".cmd")]
    return [_asked(home, name.removesuffix(".cmd")) for name in names]


def _asked(home: Home, name: str) -> Unit:
    unit = Unit(
        kind=TASK,
        name=name,
        path=home / _FOLDER / f"{name}.cmd",
        home=home.path,
        pid=None,
        state="unknown",
        settings={},
        environment={},
        user=None,
    )
    try:
        answer = commands.ask("schtasks", "/Query", "/TN", name, "/XML")
    except CouldNotLook as why:
        return unit._replace(silence=str(why))
    if answer.code:
        return unit._replace(state="inactive", settings={"Registered": "no"})
    return with_status(unit, answer.out)


def with_status(unit: Unit, text: str) -> Unit:
    """Add to a task the XML that `schtasks /Query /XML` prints.

    A missing setting has the default of Windows, which is wrong for a service.
    """
    settings = {"Registered": "yes", "RestartOnFailure": "no"}
    for tag in _TAGS:
        match = re.search(rf"<{tag}>\s*([^<]*?)\s*</{tag}>", text)
        if match:
            settings[tag] = match[1]
    if "<RestartOnFailure>" in text:
        settings["RestartOnFailure"] = "yes"
    return unit._replace(state="active", settings=settings)


def will_restart(unit: Unit) -> tuple[bool | None, str]:
    """Return whether Windows restarts a task, and a clause that says why."""
    if unit.settings.get("Registered") != "yes":
        return False, f"the task {unit.name} is not registered"
    again = unit.settings.get("RestartOnFailure") == "yes"
    how = "is started again after a failure" if again else "is not started again"
    return again, f"the task {unit.name} {how}"
