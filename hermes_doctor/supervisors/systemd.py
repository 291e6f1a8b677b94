"""Find the systemd units that run gateways, by their unit files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hermes_doctor.lazy import pattern
from hermes_doctor.model import CouldNotLook
from hermes_doctor.supervisors.scope import Scope, of_user, runtime_folder, system_scope
from hermes_doctor.supervisors.systemctl import with_properties
from hermes_doctor.supervisors.unit import Unit, home_of, runs_gateway
from hermes_doctor.system.files import list_folder, read_head

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
    from hermes_doctor.supervisors import unit_file

    try:
        definition = unit_file.load(path.with_name(name), scope.folders)
    except FileNotFoundError:
        definition = unit_file.load(path, scope.folders)
    except CouldNotLook:
        return None
    who, user = _who(scope, definition.last("User"))
    say = {
        **{"h": str(user), "u": who, "i": name.partition("@")[2].removesuffix(".service")},
        **{"n": name, "t": str(runtime_folder(scope.uid)) if scope.uid is not None else "/run"},
    }
    program = definition.program(say)
    environment = definition.environment(say)
    folder = unit_file.expand_specifiers(definition.last("WorkingDirectory"), say)
    home = environment.get("HOME")
    return Unit(
        kind=scope.kind,
        name=name,
        path=path,
        home=home_of(program, environment, Path(home) if home else user),
        pid=None,
        state="unknown",
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
    found = [scope for uid in dict.fromkeys(uids) if (scope := of_user(uid))]
    return [*found, system_scope()]
