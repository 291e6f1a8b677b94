"""Find running gateways, the homes that they work on, and the processes that have a file open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hermes_doctor
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Gateway
from hermes_doctor.core.system import open_files, root_parent
from hermes_doctor.core.system.files import read
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.processes.home_of import (
    LOCK,
    Claim,
    holds_lock_in,
    home_by_environment,
    home_by_lock_file,
    is_gateway,
    is_reachable,
    is_same_folder,
    locked_file,
    may_belong,
    profile_in,
)

_PROC = Path("/proc")
_READER = Path(hermes_doctor.__file__).parent / "sqlite" / "query_process.py"
LOADING = timedelta(minutes=1)
"""The time in which a gateway loads its code and takes its lock, even on a slow machine."""
BEGINNING = timedelta(minutes=6)
"""The longest start: after many starts in a row a gateway waits up to 5 minutes for its lock."""

_ROUNDED = timedelta(seconds=3)
"""The kernel rounds the time of a start; a larger difference is a jump of the clock."""


CommandLines = list[tuple[int, list[str], bool]]
"""Each process with its command line, and whether Hermes' process title replaced it."""


class Candidate(NamedTuple):
    """A process with the command line of a gateway, and the home that it works on, if known."""

    gateway: Gateway
    claim: Claim | None

    @property
    def works(self) -> bool:
        """Whether it works as a gateway: it holds the lock, or may still be starting."""
        if self.claim is None or self.claim.locked is not False:
            return True
        return may_be_starting(self.gateway, self.claim.home)

    @property
    def seems_to_work(self) -> bool:
        """The same, for a home whose files are not read: it starts for a minute at most."""
        if self.claim is None or self.claim.locked is not False:
            return True
        return datetime.now(UTC) - self.gateway.started_at < LOADING


def may_be_starting(gateway: Gateway, home: Path) -> bool:
    """Whether a process without the lock may be a gateway of this home that is still starting.

    While it loads, its command line and its variables are proof enough. Later it must have written
    its start into the exit log of this home, as a gateway does before it waits for the lock. A
    process that is named in gateway.pid already had the lock and lost it, so it is not starting.
    """
    age = datetime.now(UTC) - gateway.started_at
    if age >= BEGINNING or any(_wrote(home / name, gateway.pid) for name in ("gateway.pid", LOCK)):
        return False
    return age < LOADING or _noted(home, gateway)


def _noted(home: Path, gateway: Gateway) -> bool:
    """Whether the exit log of a home has a record of this start."""
    from hermes_doctor.hermes.processes import runtime_files

    number = process_stat.pid_in_namespace(gateway.pid)
    early = gateway.started_at - timedelta(seconds=5)
    try:
        lives = runtime_files.read_lives(Home(home))
    except CouldNotLook:
        return False
    return any(life.pid == number and life.began >= early for life in lives if not life.ended)


def gateways_of(home: Home, lines: CommandLines | None = None) -> list[Gateway]:
    """Return the running gateways of this home.

    Gateways of other homes, and processes that only look like a gateway, are left out. `lines` are
    the command lines of all processes, if they have been read already.
    """
    found: dict[int, Gateway] = {}
    lock = home / LOCK
    for pid in open_files.lock_holders([lock]).get(lock, []):
        gateway = _gateway(pid)
        if gateway is None or holds_lock_in(pid, home.path) is False:
            continue  # the pid in the table of locks may already belong to another process
        if _titled_or_gateway(pid) or _wrote(lock, pid):
            found[pid] = gateway
    doubtful = []
    for candidate in candidates(lines):
        if candidate.claim is None:
            if _conceivable(home, candidate.gateway):
                doubtful.append(candidate.gateway.pid)
        elif is_same_folder(candidate.claim.home, home.path) and candidate.works:
            found.setdefault(candidate.gateway.pid, candidate.gateway)
    found = {pid: one for pid, one in found.items() if may_belong(pid, home.path)}
    if len(found) > 1:
        found = _without_forks(home, found)
    if doubtful and not found:
        raise CouldNotLook(
            "process {pid} is a gateway, but you may not see which home it uses", pid=doubtful[0]
        )
    started = [_by_the_clock_then(home, gateway) for gateway in found.values()]
    return sorted(started, key=lambda gateway: gateway.pid)


def _by_the_clock_then(home: Home, gateway: Gateway) -> Gateway:
    """Correct the start of a gateway if the clock has jumped forward since.

    The kernel counts back from the present clock, so its time of the start moves with it. A
    gateway writes gateway.pid when it starts, so an older file shows what the clock was then.
    """
    try:
        written = datetime.fromtimestamp((home / "gateway.pid").stat().st_mtime - 1, UTC)
    except (OSError, ValueError, OverflowError):
        return gateway
    step = gateway.started_at - written
    if step < _ROUNDED or not _wrote(home / "gateway.pid", gateway.pid):
        return gateway
    return gateway._replace(started_at=written, clock_step=step)


def _without_forks(home: Home, found: dict[int, Gateway]) -> dict[int, Gateway]:
    """Leave out forks of a gateway: only a fork can hold the same lock as another process."""
    first: dict[tuple[int, int], int] = {}
    forks = set()
    for gateway in sorted(found.values(), key=lambda one: one.started_at):
        file = locked_file(gateway.pid, home.path)
        if file is not None and first.setdefault(file, gateway.pid) != gateway.pid:
            forks.add(gateway.pid)
    return {pid: one for pid, one in found.items() if pid not in forks}


def lock_holder_among(home: Home, suspects: Iterable[int]) -> int | None:
    """Return which of these processes holds this home's current lock file, by its descriptors."""
    try:
        st = os.stat(home / LOCK)
    except OSError:
        return None
    file = st.st_dev, st.st_ino
    return next((pid for pid in suspects if locked_file(pid, home.path) == file), None)


def _conceivable(home: Home, gateway: Gateway) -> bool:
    """Whether a gateway whose home we may not see could be working on this one.

    It would run as the owner of the home or as root, and be named in gateway.pid or gateway.lock
    unless it is still starting. Without this test, the gateway of any other user would count.
    """
    if not may_belong(gateway.pid, home.path):
        return False
    named = any(_wrote(home / name, gateway.pid) for name in ("gateway.pid", LOCK))
    return named or may_be_starting(gateway, home.path)


def homes_in_use(works: Callable[[Candidate], bool] = lambda one: one.works) -> list[Path]:
    """Return every home that a running gateway works on; `works` says whether it does."""
    found = [seen for seen in candidates() if seen.claim and is_reachable(seen.claim.home)]
    return sorted({one.claim.home for one in found if one.claim and works(one)})


def candidates(lines: CommandLines | None = None) -> Iterator[Candidate]:
    """Yield every process that is a gateway by its command line, with its home."""
    for pid, argv, has_title in command_lines() if lines is None else lines:
        titled = not is_gateway(argv)
        if titled and not has_title:
            continue
        gateway = _gateway(pid)
        if gateway is None:
            continue
        claim = home_by_lock_file(pid)
        if claim is None and not titled:
            claim = home_by_environment(pid, profile_in(argv))
        if titled and claim is not None and claim.locked is False:
            continue  # neither the process title nor an open file proves a gateway
        if claim is not None or (not titled and _words(pid)[0] == argv):  # else it has just ended
            yield Candidate(gateway, claim)


def command_lines() -> CommandLines:
    """Return the command lines of all processes that we may see.

    On Linux it reads /proc directly, because a machine has hundreds of other processes.
    """
    return [(pid, *_words(pid)) for pid in all_pids()]


def _words(pid: int) -> tuple[list[str], bool]:
    """Return the command line of a process, and whether Hermes' process title replaced it."""
    if not _PROC.exists():
        return _command(pid)
    argv = os.fsdecode(_proc(pid, "cmdline")).split("\0")[:-1]
    return argv, len(argv) <= 1 and _proc(pid, "comm") == b"hermes\n"


def _titled_or_gateway(pid: int) -> bool:
    argv, titled = _words(pid)
    return titled or is_gateway(argv)


def _wrote(path: Path, pid: int) -> bool:
    """Whether gateway.pid or gateway.lock names this process, as every gateway writes itself there.

    Its start time is compared too, because pids are used again.
    """
    import json

    try:
        said = json.loads(read(path, 65536)[0])
    except (FileNotFoundError, CouldNotLook, ValueError, RecursionError):
        return False
    if not isinstance(said, dict) or said.get("pid") not in (
        pid,
        process_stat.pid_in_namespace(pid),
    ):
        return False
    began, seen = said.get("start_time"), process_stat.stat(pid)
    return began is None or (seen is not None and seen.start_time == began)


def _proc(pid: int, name: str) -> bytes:
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _command(pid: int) -> tuple[list[str], bool]:
    """Do the same as `_words` on systems without /proc."""
    import psutil

    try:
        process = psutil.Process(pid)
        argv = process.cmdline()
        return argv, len(argv) <= 1 and process.name() == "hermes"
    except (psutil.Error, OSError):
        return [], False


def all_pids() -> list[int]:
    """Return the pids of all processes that we may see."""
    try:
        return sorted(int(name) for name in os.listdir(_PROC) if name.isdigit())
    except OSError:
        import psutil

        return psutil.pids()


def _gateway(pid: int) -> Gateway | None:
    stat = process_stat.stat(pid)
    if stat is None or stat.doing == "Z":
        return None
    argv, _ = _words(pid)
    python = argv[0] if argv and Path(argv[0]).is_absolute() else None
    return Gateway(pid, process_stat.start_moment(stat.start_time), python)


def processes_using(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """Return the other processes that have each file open or locked, under any name.

    Our own readers do not count: they cannot write, and one that hangs must not prevent a repair.
    """
    wanted = list(paths)
    opened, locked = processes_with_open(wanted), open_files.lock_holders(wanted)
    found = {}
    for path in wanted:
        pids = dict.fromkeys([*locked.get(path, ()), *opened.get(path, ())])
        if others := [pid for pid in pids if pid != os.getpid() and not is_our_reader(pid)]:
            found[path] = others
    return found


def is_our_reader(pid: int) -> bool:
    """Tell whether a process is a `sqlite.query_process` of a run of this tool."""
    if root_parent.is_separate() and (seen := process_stat.stat(pid)):
        return seen.parent == os.getpid()  # a fork of ours
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsencode(_READER) in file.read(4096)
    except OSError:
        return False


def processes_with_open(
    paths: Iterable[Path], mark: str = ".db", *, writing: bool = False
) -> dict[Path, list[int]]:
    """Return the other processes that have each file open, or open for writing, as far as we see.

    It does not read the kernel's table of locks, which is slow. `mark` is a part of all names.
    """
    wanted: dict[tuple[int, int], Path] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            st = os.stat(path)
            wanted[st.st_dev, st.st_ino] = path
    found: dict[Path, list[int]] = {}
    own = os.getpid()
    for pid in all_pids() if wanted else ():
        if pid == own:
            continue
        for identity in _open_inodes(pid, mark, writing=writing):
            if identity in wanted:
                pids = found.setdefault(wanted[identity], [])
                if pid not in pids:
                    pids.append(pid)
    return found


def _open_inodes(pid: int, mark: str, *, writing: bool) -> Iterator[tuple[int, int]]:
    """Yield device and inode of such files that a process has open, also deleted ones."""
    for descriptor in open_files.descriptors(pid) or ():
        if descriptor.path.startswith("/") and mark in descriptor.path:
            with contextlib.suppress(OSError):
                if writing and open_files.only_reads(pid, descriptor.number):
                    continue
                if descriptor.number:
                    yield open_files.identity(pid, descriptor.number)
                else:
                    st = os.stat(descriptor.path)
                    yield st.st_dev, st.st_ino
