"""Which home a process works on: by what it has open, else by what it was started with.

A path that a process names is a path of its own mount namespace: the same words may mean another
folder here, as for a gateway in a container. It is then reached through the process's own root.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.processes import descriptors, process_stat

_PROC = Path("/proc")
LOCK = "gateway.lock"


class Claim(NamedTuple):
    """A home that a process works on."""

    home: Path
    """As it can be reached from here."""
    locked: bool | None
    """Whether the process holds the lock of that home; None when it cannot be seen."""
    file: tuple[int, int] | None = None
    """Device and inode of the lock file that it has open; one that was deleted is another one."""


def by_files(pid: int) -> Claim | None:
    """The home whose lock file the process has open: the strongest evidence there is."""
    claims = _claims(pid) or []
    return next((claim for claim in claims if claim.locked), claims[0] if claims else None)


def works_on(pid: int, home: Path) -> bool | None:
    """Whether a process holds a lock that it took in this very folder; None: it cannot be seen.

    The lock file itself may have been deleted since, or have a second name in a copied home.
    """
    claims = _claims(pid)
    if claims is None:
        return None
    return any(claim.locked is not False and is_same(claim.home, home) for claim in claims)


def locked_file(pid: int, home: Path) -> tuple[int, int] | None:
    """Which lock file of this folder the process has locked."""
    claims = _claims(pid) or []
    return next((one.file for one in claims if one.locked and is_same(one.home, home)), None)


def _claims(pid: int) -> list[Claim] | None:
    """One for each lock file that a process has open; None when that cannot be seen."""
    opened = descriptors.of(pid)
    if opened is None:
        return None
    locks = [(one.number, Path(one.path)) for one in opened if one.path.endswith(f"/{LOCK}")]
    return [
        Claim(_from_here(pid, path.parent), _flocked(pid, number), _identity(pid, number))
        for number, path in locks
    ]


def _identity(pid: int, number: str) -> tuple[int, int] | None:
    try:
        st = os.stat(f"/proc/{pid}/fd/{number}")
    except OSError:
        return None
    return st.st_dev, st.st_ino


def shares_view(pid: int) -> bool:
    """Whether a process sees the same files and processes as we do: it is in no container."""
    return all(_shares(pid, kind) for kind in ("mnt", "pid", "user"))


def by_environment(pid: int, profile: str | None) -> Claim | None:
    """The home that its variables and its command line name; it has no lock, then."""
    found = _surroundings(pid)
    if found is None:
        return None
    environ, folder = found
    root = environ.get("HERMES_HOME") or str(Path(environ.get("HOME", "/")) / ".hermes")
    home = _from_here(pid, _of_profile(Path(folder) / root, profile))
    try:
        return Claim(home.resolve() if _shares(pid, "mnt") else home, _without_proc())
    except (OSError, RuntimeError):
        return Claim(home, _without_proc())


def _surroundings(pid: int) -> tuple[Mapping[str, str], str] | None:
    """The variables of a process and the folder that it works in."""
    if os.path.isdir("/proc/self"):
        environ = process_stat.environment(pid)
        try:
            folder = os.readlink(f"/proc/{pid}/cwd").removesuffix(descriptors.DELETED)
        except OSError:
            return None
        return None if environ is None else (environ, folder)
    import psutil

    try:
        process = psutil.Process(pid)
        return process.environ(), process.cwd()
    except (psutil.Error, OSError):
        return None


def _of_profile(base: Path, profile: str | None) -> Path:
    """The home of a profile; the one called default is the folder that holds the others."""
    if profile is None:
        return base
    inside = base.parent.name == "profiles"
    if profile.casefold() == "default":
        return base.parent.parent if inside else base
    return base if inside else base / "profiles" / profile


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same folder."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except OSError:
        return one == other


def is_reachable(home: Path) -> bool:
    """Whether a home has a name of its own here, and not only through a process."""
    return _PROC not in home.parents


def may_belong(pid: int, home: Path) -> bool:
    """Whether a process runs as the owner of a home, or as root: nobody else works on it."""
    try:
        owner = os.stat(home).st_uid
        with open(f"/proc/{pid}/status", errors="replace") as file:
            said = next(line for line in file if line.startswith("Uid:"))
        return {int(word) for word in said.split()[1:]} <= {0, owner}  # also who it was before
    except (OSError, ValueError, StopIteration):
        return True


def _from_here(pid: int, path: Path) -> Path:
    """A path of a process as we have to write it."""
    return path if _shares(pid, "mnt") else Path(f"/proc/{pid}/root", *path.parts[1:])


def _shares(pid: int, kind: str) -> bool:
    """Whether a process is in the same namespace as we are; also where that cannot be seen."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return True


def _flocked(pid: int, descriptor: str) -> bool | None:
    """Whether a process has locked what one of its descriptors leads to.

    The table of all locks names files by a device that a file on overlayfs does not have.
    """
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}", errors="replace") as file:
            return any(line.startswith("lock:") and "FLOCK" in line for line in file)
    except OSError:
        return None


def _without_proc() -> bool | None:
    """What is known of the lock of a process that does not have it open."""
    return False if _PROC.exists() else None
