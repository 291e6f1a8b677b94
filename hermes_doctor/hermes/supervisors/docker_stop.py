"""Find out whether a container was stopped on purpose: by its state, policy, record or events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands, root_parent
from hermes_doctor.core.system.files import read
from hermes_doctor.hermes.supervisors.units import Unit

_MOST = 50_000_000
"""Bytes that are read of Docker's record."""
_ENDING = (2, 3, 9, 15)
"""The signals that a person or `docker stop` sends to end a container."""


def look_further(command: str, unit: Unit) -> str:
    """Return `yes` or `no` for a container whose state does not say it; empty if it is unknown."""
    return (
        _by_policy(command, unit)
        or by_record(unit.settings["Id"], unit.settings["Record"])
        or _by_events(command, unit)
    )


def record_of(hostname: str) -> str:
    """Return the path of Docker's own record of a container, beside its other files."""
    return str(Path(hostname).with_name("config.v2.json")) if "/containers/" in hostname else ""


def by_state(state: Mapping[str, Any]) -> str:
    """Return whether a container was stopped on purpose: `yes`, `no`, or empty if it does not say.

    Only Podman says it here.
    """
    if state.get("Status") != "exited" or state.get("Error"):
        return "no"
    return {True: "yes", False: "no"}.get(state.get("StoppedByUser", ""), "")


def _by_policy(command: str, unit: Unit) -> str:
    """Return `yes` for a container that Docker would have restarted, unless it was stopped.

    Podman does not restart its containers by itself when the machine starts.
    """
    always = unit.settings["Restart"] in ("always", "unless-stopped")
    return "yes" if always and command == "docker" else ""


def by_record(id: str, path: str) -> str:
    """Return `yes` or `no` from Docker's own record of a stop, which only root can read."""
    import json

    if not path:
        return ""
    try:
        if root_parent.is_separate():
            said: str = root_parent.ask_root("stopped_by_record", id)
            return said
        record = json.loads(read(Path(path), _MOST)[0])
        return {True: "yes", False: "no"}.get(record["HasBeenManuallyStopped"], "")
    except (OSError, CouldNotLook, ValueError, LookupError, TypeError, RecursionError):
        return ""


def _by_events(command: str, unit: Unit) -> str:
    """Return `yes` or `no` from the recent events of a container; empty if they are forgotten.

    A container that is stopped or killed gets its signal from Docker before it dies.
    """
    words = ["events", "--since", unit.settings["StartedAt"], "--until", "0s"]
    for one in (f"container={unit.settings['Id']}", "event=kill", "event=die"):
        words += ["--filter", one]
    try:
        answer = commands.ask(
            command, *words, "--format", "{{.Action}} {{.Actor.Attributes.signal}}"
        )
    except CouldNotLook:
        return ""
    seen = answer.out.splitlines()
    if answer.code or not any(line.startswith("die ") for line in seen):
        return ""
    return "yes" if any(f"kill {number}" in seen for number in _ENDING) else "no"
