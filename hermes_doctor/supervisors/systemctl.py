"""Ask a systemd manager for the properties of its units, with one `systemctl` call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.supervisors.scope import runtime_folder
from hermes_doctor.supervisors.unit import Unit
from hermes_doctor.system import root_parent

if TYPE_CHECKING:
    from hermes_doctor.supervisors.scope import Scope
    from hermes_doctor.system.commands import RunAs

_LINGER = Path("/var/lib/systemd")
_SOCKETS = ("/run/systemd/private", "/run/dbus/system_bus_socket")
_ASKED = (
    *("Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "Result", "MainPID"),
    *("NRestarts", "ExecMainCode", "ExecMainStatus", "ExecMainPID", "Restart", "RestartUSec"),
    *("ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic"),
    *("InactiveExitTimestampMonotonic", "ActiveExitTimestampMonotonic"),
    *("InactiveEnterTimestampMonotonic", "StateChangeTimestampMonotonic"),
    *("StartLimitBurst", "StartLimitIntervalUSec"),
    *("TimeoutStopUSec", "LimitNOFILESoft", "FragmentPath", "NeedDaemonReload", "User"),
    *("MemoryMax", "WatchdogUSec", "RestartPreventExitStatus"),
    *("WantedBy", "RequiredBy", "TriggeredBy"),
)
_STATES = {"reloading": "active", "refreshing": "active", "maintenance": "failed"}


def ask(scope: Scope, names: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Return the properties of some units by name, from one `systemctl show`."""
    from hermes_doctor.system import commands

    command = ["systemctl", "show", "--no-pager", f"--property={','.join(_ASKED)}"]
    env: dict[str, str] = {}
    user = None
    if scope.uid is None:
        if not any(map(os.path.exists, _SOCKETS)):
            raise CouldNotLook("systemd is not running on this machine")
    else:
        user = _as(scope)
        runtime = runtime_folder(scope.uid)
        if not is_user_manager_running(scope.uid):
            raise CouldNotLook(text("systemd is not running for user {scope}", scope=scope.name))
        command.append("--user")
        env = {
            "XDG_RUNTIME_DIR": str(runtime),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
        }
    answer = commands.ask(*command, "--", *names, env=env, user=user)
    if answer.code:
        raise CouldNotLook(
            "systemd refuses to list its services"
            if user is None
            else text("systemd refuses to list the services of {scope}", scope=scope.name)
        )
    return read_answer(answer.out)


def _as(scope: Scope) -> RunAs | None:
    if scope.uid is None or scope.uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        why = (
            "the services of {scope} are not listed, because root looks at this home with the "
            "rights of its owner"
            if root_parent.is_separate()
            else "only {scope} or root may list the services of {scope}"
        )
        raise CouldNotLook(text(why, scope=scope.name))
    import pwd

    from hermes_doctor.system.commands import RunAs

    return RunAs(scope.uid, pwd.getpwuid(scope.uid).pw_gid)


def is_user_manager_running(uid: int) -> bool:
    """Whether the user manager of a user is running."""
    runtime = runtime_folder(uid)
    return any(os.path.exists(runtime / name) for name in ("systemd/private", "bus"))


def read_answer(text: str) -> dict[str, Mapping[str, str]]:
    """Parse the output of `systemctl show` into the properties of each unit."""
    found: dict[str, Mapping[str, str]] = {}
    for block in text.split("\n\n"):
        pairs = (line.partition("=") for line in block.splitlines() if "=" in line)
        properties = {name: value for name, _, value in pairs}
        if properties.get("Id"):
            found[properties["Id"]] = properties
    return found


def with_properties(unit: Unit, properties: Mapping[str, str]) -> Unit:
    """Add the properties from systemd to a unit."""
    pid = int(properties.get("MainPID") or 0) or None
    state = properties.get("ActiveState", "unknown")
    kept = {name: value for name, value in properties.items() if value or name not in unit.settings}
    return unit._replace(
        pid=pid,
        state=_STATES.get(state, state),
        settings={**unit.settings, **kept},
        user=properties.get("User") or unit.user,
    )


def without_answer(scope: Scope, unit: Unit, why: str) -> Unit:
    """Mark a unit whose manager could not be asked; if no manager runs, the unit is inactive."""
    if scope.uid is not None and _visible(scope.uid) and not is_user_manager_running(scope.uid):
        return unit._replace(state="inactive", settings={**unit.settings, "Manager": "absent"})
    return unit._replace(silence=why)


def _visible(uid: int) -> bool:
    return os.geteuid() in (0, uid)


def lingers(user: str) -> bool | None:
    """Whether the services of a user outlive the login; None if the system does not record it."""
    if not _LINGER.is_dir():
        return None
    return os.path.lexists(_LINGER / "linger" / user)
