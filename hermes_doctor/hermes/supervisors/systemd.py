"""Find the systemd units that run gateways, by their files and by one `systemctl` call.

A scope is one systemd manager: the system manager, or the manager of one user.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.files import folder_of, list_folder, read_head
from hermes_doctor.hermes.supervisors.units import (
    SYSTEMD_SYSTEM,
    SYSTEMD_USER,
    Unit,
    home_of,
    runs_gateway,
)

if TYPE_CHECKING:
    from hermes_doctor.core.system.commands import RunAs


def runtime_folder(uid: int) -> Path:
    """Return the runtime folder of a user, which has the sockets of the user manager."""
    own = os.environ.get("XDG_RUNTIME_DIR") if uid == os.geteuid() else None
    return Path(own or f"/run/user/{uid}")


class Scope(NamedTuple):
    """One systemd manager: the system manager, or the user manager of one user."""

    uid: int | None
    """The user; None for the system manager."""
    name: str
    user: Path
    """The home folder of the user that its services run as by default."""
    folders: tuple[Path, ...]
    """The folders of its units, in descending priority."""

    @property
    def kind(self) -> str:
        """The kind of its units."""
        return SYSTEMD_SYSTEM if self.uid is None else SYSTEMD_USER


def system_scope() -> Scope:
    """Return the system manager."""
    names = (
        *("/etc/systemd/system", "/run/systemd/transient", "/run/systemd/system"),
        *("/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"),
    )
    return Scope(None, "root", Path("/root"), tuple(map(Path, names)))


def user_scope(uid: int) -> Scope | None:
    """Return the user manager of a user; None for a uid without an account."""
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    user = Path(folder_of(uid, entry.pw_dir))
    folders = (
        *(user / ".config/systemd/user", Path("/etc/systemd/user")),
        *(runtime_folder(uid) / "systemd/user", Path("/run/systemd/user")),
        *(user / ".local/share/systemd/user", Path("/usr/local/lib/systemd/user")),
        Path("/usr/lib/systemd/user"),
    )
    return Scope(uid, entry.pw_name, user, folders)


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


def ask_systemd(scope: Scope, names: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Return the properties of some units by name, from one `systemctl show`."""
    from hermes_doctor.core.system import commands

    command = ["systemctl", "show", "--no-pager", f"--property={','.join(_ASKED)}"]
    env: dict[str, str] = {}
    user = None
    if scope.uid is None:
        if not any(map(os.path.exists, _SOCKETS)):
            raise CouldNotLook("systemd is not running on this machine")
    else:
        user = _run_as(scope)
        runtime = runtime_folder(scope.uid)
        if not is_user_manager_running(scope.uid):
            raise CouldNotLook("systemd is not running for user {scope}", scope=scope.name)
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
    return parse_properties(answer.out)


def _run_as(scope: Scope) -> RunAs | None:
    if scope.uid is None or scope.uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        why = (
            "the services of {scope} are not listed, because root looks at this home with the "
            "rights of its owner"
            if root_parent.is_separate()
            else "only {scope} or root may list the services of {scope}"
        )
        raise CouldNotLook(why, scope=scope.name)
    import pwd

    from hermes_doctor.core.system.commands import RunAs

    return RunAs(scope.uid, pwd.getpwuid(scope.uid).pw_gid)


def is_user_manager_running(uid: int) -> bool:
    """Whether the user manager of a user is running."""
    runtime = runtime_folder(uid)
    return any(os.path.exists(runtime / name) for name in ("systemd/private", "bus"))


def parse_properties(text: str) -> dict[str, Mapping[str, str]]:
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


_NAMED = pattern(r"hermes(-gateway(-[\w.-]+|@[\w.-]*)?)?\.service")
_GENERATED = pattern(r"hermes-gateway([-@].*)?\.service")
_MOST = 300
_HEAD = 64 * 1024
_PACKAGED = ("/usr/lib", "/lib")
"""Folders with hundreds of units from packages; only units with Hermes' names are read there."""


def is_installed() -> bool:
    """Whether systemd is installed on this machine."""
    return os.path.isdir("/etc/systemd") or os.path.isdir("/run/systemd/system")


def definitions(scope: Scope) -> list[Unit]:
    """Return every unit of a manager that runs a gateway of any home, by its files alone."""
    found: dict[str, Unit] = {}
    for name, path in _files(scope):
        if name not in found and not _is_masked(path):
            unit = _unit(scope, name, path)
            if unit and (runs_gateway(unit.program) or _GENERATED.fullmatch(name)):
                found[name] = unit
    return list(found.values())


def _files(scope: Scope) -> Iterator[tuple[str, Path]]:
    for folder in scope.folders:
        try:
            names = list_folder(folder)
        except CouldNotLook:
            continue
        packaged = str(folder).startswith(_PACKAGED)
        for name in [one for one in names if one.endswith(".service")][:_MOST]:
            if _NAMED.fullmatch(name) or (not packaged and _mentions(folder / name)):
                yield from _instances(scope, name, folder / name)


def _is_masked(path: Path) -> bool:
    """Whether a unit is masked: its file is a symlink to /dev/null."""
    try:
        return os.readlink(path) == os.devnull
    except OSError:
        return False


def _mentions(path: Path) -> bool:
    try:
        data, _ = read_head(path, _HEAD)
    except (FileNotFoundError, CouldNotLook):
        return False
    return b"hermes" in data and b"gateway" in data


def _instances(scope: Scope, name: str, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield a unit, or for a template unit each of its enabled instances."""
    if not name.endswith("@.service"):
        yield name, path
        return
    stem = name.removesuffix(".service")
    for folder in scope.folders[:2]:
        for target in ("default.target.wants", "multi-user.target.wants"):
            try:
                names = list_folder(folder / target)
            except CouldNotLook:
                continue
            yield from ((one, path) for one in names if one.startswith(stem) and one != name)


def _unit(scope: Scope, name: str, path: Path) -> Unit | None:
    from hermes_doctor.hermes.supervisors import units

    try:
        definition = units.load(path.with_name(name), scope.folders)
    except FileNotFoundError:
        definition = units.load(path, scope.folders)
    except CouldNotLook:
        return None
    who, user = _who(scope, definition.last("User"))
    say = {
        **{"h": str(user), "u": who, "i": name.partition("@")[2].removesuffix(".service")},
        **{"n": name, "t": str(runtime_folder(scope.uid)) if scope.uid is not None else "/run"},
    }
    program = definition.program(say)
    environment = definition.environment(say)
    folder = units.expand_specifiers(definition.last("WorkingDirectory"), say)
    home = environment.get("HOME")
    return Unit(
        kind=scope.kind,
        name=name,
        path=path,
        home=home_of(program, environment, Path(home) if home else user),
        settings={"UnitFileState": "enabled" if _wanted(scope, name) else "disabled"},
        environment=environment,
        user=who,
        program=tuple(program),
        folder=Path(folder) if folder and not folder.startswith(("-", "~")) else None,
        files=definition.files,
        declared={key: values[-1] for key, values in definition.settings.items() if values},
        manager=scope.uid,
    )


def _who(scope: Scope, name: str) -> tuple[str, Path]:
    """Return the user that a service runs as, and that user's home folder."""
    import pwd

    if not name or scope.uid is not None:
        return scope.name, scope.user
    try:
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except KeyError:
        return name, Path("/nonexistent")
    return entry.pw_name, Path(entry.pw_dir)


def _wanted(scope: Scope, name: str) -> bool:
    targets = ("default.target.wants", "multi-user.target.wants", "graphical.target.wants")
    return any(
        os.path.lexists(folder / target / name) for folder in scope.folders for target in targets
    )


def from_properties(scope: Scope, name: str, properties: Mapping[str, str]) -> Unit | None:
    """Return a unit that `definitions` did not find, from the properties that systemd reports."""
    path = properties.get("FragmentPath", "")
    if properties.get("LoadState") != "loaded" or not path:
        return None
    try:
        unit = _unit(scope, name, Path(path))
    except (FileNotFoundError, CouldNotLook):
        return None
    return with_properties(unit, properties) if unit else None


def hermes_name(home: Path, user: Path) -> str:
    """Return the name that Hermes' installer gives to the unit of a home."""
    import hashlib

    root = user / ".hermes"
    if home == root:
        return "hermes-gateway.service"
    if home.parent == root / "profiles":
        return f"hermes-gateway-{home.name}.service"
    digest = hashlib.sha256(str(home).encode("utf-8", "surrogateescape")).hexdigest()
    return f"hermes-gateway-{digest[:8]}.service"


def will_restart(unit: Unit) -> tuple[bool | None, str]:
    """Return whether systemd restarts a unit that ended by itself, and a clause that says why."""
    word = unit.settings.get("Restart") or unit.declared.get("Restart") or "no"
    why = f"{unit.name} has Restart={word}"
    if word == "always":
        return True, why
    if word in ("on-failure", "on-abnormal", "on-abort", "on-watchdog", "on-success"):
        return True, f"{why}, so not after every exit"
    return False, why


def scopes(uids: Sequence[int]) -> list[Scope]:
    """Return the managers that may run a gateway for one of these users."""
    if not is_installed():
        return []
    found = [scope for uid in dict.fromkeys(uids) if (scope := user_scope(uid))]
    return [*found, system_scope()]
