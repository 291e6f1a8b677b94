"""Decide whether a process runs a gateway, and find the home that it works on.

Its open files decide, or else its command line and its environment. A path that a process names
belongs to its own mount namespace, as for a gateway in a container: the same path may be another
folder here. It is then reached through /proc/PID/root.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system import open_files, root_parent
from hermes_doctor.hermes.processes import process_stat


def runs_command(argv: list[str], command: str) -> bool:
    """Whether this command line runs that Hermes command."""
    words = _without_profile(_after_entry(argv) or [])
    return next((word for word in words if not word.startswith("-")), None) == command


def is_gateway(argv: list[str]) -> bool:
    """Whether this command line runs a gateway: Python, Hermes' entry, `gateway [run|restart]`.

    The command lines of shells, ssh, tmux and editors that only mention a gateway do not start
    with Python.
    """
    words = _after_entry(argv)
    if words is None:
        return False
    rest = [word for word in _without_profile(words) if not word.startswith("-")]
    return rest[:1] == ["gateway"] and rest[1:2] in ([], ["run"], ["restart"])


def _after_entry(argv: list[str]) -> list[str] | None:
    """Return the words after Hermes' entry point; None if this is not a Hermes command line."""
    if not argv:
        return None
    first = Path(argv[0]).name
    if first == "hermes":
        return argv[1:]
    if not first.startswith("python"):
        return None
    rest = argv[1:]
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        if rest[0] == "-c":  # another program, which may contain any words
            return None
        rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
    if rest[:1] == ["-m"]:
        return rest[2:] if rest[1:2] == ["hermes_cli.main"] else None
    if rest and Path(rest[0]).name in ("hermes", "hermes-script.py"):
        return rest[1:]
    return None


def _without_profile(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-p", "--profile"):
            skip = True
        else:
            kept.append(word)
    return kept


def profile_in(argv: list[str]) -> str | None:
    """Return the profile that a command line names."""
    for n, word in enumerate(argv):
        if word in ("-p", "--profile") and n + 1 < len(argv):
            return argv[n + 1]
        if word.startswith("--profile="):
            return word.partition("=")[2]
    return None


_PROC = Path("/proc")
LOCK = "gateway.lock"


class Claim(NamedTuple):
    """The home that a process seems to work on, and whether it holds the home's lock."""

    home: Path
    """The path by which we can reach it."""
    locked: bool | None
    """Whether the process holds the lock of that home; None when it cannot be seen."""
    file: tuple[int, int] | None = None
    """Device and inode of its open lock file; they differ from a lock file created later."""


def home_by_lock_file(pid: int) -> Claim | None:
    """Return the home whose lock file the process has open, which is the strongest evidence."""
    claims = _claims(pid) or []
    return next((claim for claim in claims if claim.locked), claims[0] if claims else None)


def holds_lock_in(pid: int, home: Path) -> bool | None:
    """Whether a process holds a lock that it took in this folder; None if that cannot be seen.

    The lock file may have been deleted since, or have a second name in a copied home.
    """
    claims = _claims(pid)
    if claims is None:
        return None
    return any(claim.locked is not False and is_same_folder(claim.home, home) for claim in claims)


def locked_file(pid: int, home: Path) -> tuple[int, int] | None:
    """Return device and inode of the lock file in this folder that the process has locked."""
    claims = _claims(pid) or []
    return next(
        (claim.file for claim in claims if claim.locked and is_same_folder(claim.home, home)), None
    )


def _claims(pid: int) -> list[Claim] | None:
    """Return a claim for each lock file that a process has open; None if that cannot be seen."""
    opened = open_files.descriptors(pid)
    if opened is None:
        return None
    locks = [(file.number, Path(file.path)) for file in opened if file.path.endswith(f"/{LOCK}")]
    return [
        Claim(_from_here(pid, path.parent), _flocked(pid, number), _identity(pid, number))
        for number, path in locks
    ]


def _identity(pid: int, number: str) -> tuple[int, int] | None:
    try:
        return open_files.identity(pid, number)
    except OSError:
        return None


def shares_pids(pid: int) -> bool:
    """Whether a process shares our pid namespace, as a process outside of containers does."""
    return _shares(pid, "pid")


def shares_namespaces(pid: int) -> bool:
    """Whether a process shares our mount, pid and user namespaces: it is not in a container."""
    return all(_shares(pid, kind) for kind in ("mnt", "pid", "user"))


def home_by_environment(pid: int, profile: str | None) -> Claim | None:
    """Return the home that its variables and its command line name, if it has no lock file open."""
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
    """Return the environment variables and the working directory of a process."""
    if os.path.isdir("/proc/self"):
        environ = process_stat.environment(pid)
        try:
            folder = os.readlink(f"/proc/{pid}/cwd").removesuffix(open_files.DELETED)
        except PermissionError:
            folder = (open_files.process_by_root(pid) or {}).get("cwd") or ""
        except OSError:
            return None
        if not folder:
            return None
        return None if environ is None else (environ, folder)
    import psutil

    try:
        process = psutil.Process(pid)
        return process.environ(), process.cwd()
    except (psutil.Error, OSError):
        return None


def _of_profile(base: Path, profile: str | None) -> Path:
    """Return the home of a profile; the profile `default` is the root home."""
    if profile is None:
        return base
    inside = base.parent.name == "profiles"
    if profile.casefold() == "default":
        return base.parent.parent if inside else base
    return base if inside else base / "profiles" / profile


def is_same_folder(first: Path, second: Path) -> bool:
    """Whether two paths are the same folder."""
    try:
        return os.path.samestat(os.stat(first), os.stat(second))
    except OSError:
        return first == second


def is_reachable(home: Path) -> bool:
    """Whether a home has a path of its own here, and not only one below /proc."""
    return _PROC not in home.parents


def may_belong(pid: int, home: Path) -> bool:
    """Whether a process runs as the owner of a home or as root, as every gateway of it does."""
    try:
        users = user_ids(pid)
        return users is None or users <= {0, os.stat(home).st_uid}
    except OSError:
        return True


def user_ids(pid: int) -> set[int] | None:
    """The users that a process runs as: real, effective, saved; None if that cannot be seen."""
    if not _PROC.exists():
        import psutil

        try:
            return {*psutil.Process(pid).uids()}
        except psutil.Error:
            return None
    try:
        with open(f"/proc/{pid}/status", errors="replace") as file:
            said = next(line for line in file if line.startswith("Uid:"))
        return {int(word) for word in said.split()[1:]}
    except (OSError, ValueError, StopIteration):
        return None


def _from_here(pid: int, path: Path) -> Path:
    """Convert a path of a process to one that is valid in our mount namespace."""
    return path if _shares(pid, "mnt") else Path(f"/proc/{pid}/root", *path.parts[1:])


def _shares(pid: int, kind: str) -> bool:
    """Whether a process is in our namespace of this kind; True if that cannot be seen."""
    own = ""
    try:
        own = root_parent.own_namespace(kind)
        return os.readlink(f"/proc/{pid}/ns/{kind}") == own
    except PermissionError:
        seen = (open_files.process_by_root(pid) or {}).get("namespaces", {}).get(kind)
        return seen is None or seen == own
    except OSError:
        return True


def _flocked(pid: int, descriptor: str) -> bool | None:
    """Whether a process holds a lock through one of its descriptors; None if that cannot be seen.

    /proc/locks is not used, because its device numbers do not match files on overlayfs.
    """
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}", errors="replace") as file:
            return any(line.startswith("lock:") and "FLOCK" in line for line in file)
    except PermissionError:
        seen = (open_files.process_by_root(pid) or {}).get("details", {}).get(descriptor)
        return None if seen is None else any("FLOCK" in line for line in seen.splitlines())
    except OSError:
        return None


def _without_proc() -> bool | None:
    """Return `Claim.locked` for a process without an open lock file: unknown without /proc."""
    return False if _PROC.exists() else None
