"""Find the launchd jobs that run gateways on macOS."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands
from hermes_doctor.core.system.files import MEGABYTE, list_folder, read, user_home
from hermes_doctor.hermes.supervisors.units import LAUNCHD, Unit, home_of, runs_gateway

_LINE = pattern(r"^\t?(state|pid|runs|last exit code) = (\S+)", re.MULTILINE)
_ABSENT = 113
"""The exit code of `launchctl print` for a job that is not loaded."""


def folders() -> list[Path]:
    """Return the folders that define the jobs of the user and of the machine."""
    return [user_home() / "Library/LaunchAgents", Path("/Library/LaunchDaemons")]


def jobs() -> list[Unit]:
    """Return every job that runs a gateway, with its state from launchd."""
    units = []
    for folder in folders():
        for name in list_folder(folder):
            if name.endswith(".plist"):
                try:
                    data, _ = read(folder / name, MEGABYTE)
                except (FileNotFoundError, CouldNotLook):
                    continue
                unit = read_plist(data, folder / name) if b"gateway" in data else None
                if unit:
                    units.append(_asked(unit))
    return units


def read_plist(data: bytes, path: Path) -> Unit | None:
    """Parse the job that a plist file defines; None when it runs no gateway."""
    import plistlib
    from xml.parsers.expat import ExpatError

    try:
        job = plistlib.loads(data)
        program = [str(word) for word in job.get("ProgramArguments") or [job.get("Program", "")]]
        environment = {str(k): str(v) for k, v in (job.get("EnvironmentVariables") or {}).items()}
        label = str(job.get("Label") or path.stem)
        keep = job.get("KeepAlive", False)
        limits = job.get("SoftResourceLimits") or {}
        declared = {
            "KeepAlive": _kept(keep),
            "ThrottleInterval": str(job.get("ThrottleInterval", "")),
            "ExitTimeOut": str(job.get("ExitTimeOut", "")),
            "RunAtLoad": "yes" if job.get("RunAtLoad") else "no",
            "NumberOfFiles": str(limits.get("NumberOfFiles", "")),
        }
        folder = job.get("WorkingDirectory")
    except (ValueError, TypeError, AttributeError, ExpatError, plistlib.InvalidFileException):
        return None
    if not runs_gateway(program):
        return None
    return Unit(
        kind=LAUNCHD,
        name=label,
        path=path,
        home=home_of(program, environment, user_home()),
        environment=environment,
        user=str(job["UserName"]) if "UserName" in job else None,
        program=tuple(program),
        folder=Path(str(folder)) if folder else None,
        files=(path,),
        declared=declared,
    )


def _kept(keep: object) -> str:
    """Return `KeepAlive` in one word; a table of conditions is weaker than a plain yes."""
    if isinstance(keep, dict):
        return "unless-clean" if keep.get("SuccessfulExit") is False else "conditions"
    return "yes" if keep else "no"


def _asked(unit: Unit) -> Unit:
    system = unit.path is not None and unit.path.is_relative_to("/Library")
    domain = "system" if system else f"gui/{os.getuid()}"
    try:
        answer = commands.ask("launchctl", "print", f"{domain}/{unit.name}")
    except CouldNotLook as why:
        return unit._replace(silence=str(why))
    told_of = with_status(unit, answer)
    return told_of._replace(settings={**told_of.settings, "domain": domain})


def with_status(unit: Unit, answer: commands.CommandOutput) -> Unit:
    """Add the output of `launchctl print` to a job."""
    if answer.code == _ABSENT or "Could not find service" in answer.err + answer.out:
        return unit._replace(state="inactive", settings={"Loaded": "no"})
    if answer.code:
        return unit._replace(silence="launchd refuses to show this job")
    said = {match[1]: match[2] for match in reversed(list(_LINE.finditer(answer.out)))}
    code = said.get("last exit code", "").rstrip(":")
    pid = said.get("pid", "")
    return unit._replace(
        pid=int(pid) if pid.isdigit() else None,
        state="active" if said.get("state") == "running" else "inactive",
        settings={
            "Loaded": "yes",
            "ExecMainStatus": code if code.isdigit() else "",
            "NRestarts": said.get("runs", ""),
        },
    )


def will_restart(unit: Unit) -> tuple[bool | None, str]:
    """Return whether launchd restarts a job (None: unknown), and a clause that says why."""
    if unit.settings.get("Loaded") == "no":
        return False, f"{unit.name} is not loaded"
    kept = unit.declared.get("KeepAlive", "no")
    if kept == "unless-clean":
        return True, f"{unit.name} is kept alive, but not after a clean exit"
    return kept != "no", f"{unit.name} has KeepAlive={kept}"
