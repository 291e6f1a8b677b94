"""Files that processes have open or locked, and files that root opens for the owner of a home.

Root never reads a file that the owner of the home could not read.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import privileges, root_parent
from hermes_doctor.core.system.files import StrPath, open_regular, reason


def open_owned(path: StrPath) -> int:
    """Open a file of a home for reading; as root, only if it belongs to the home's owner.

    He may replace any folder in his home by a symlink to somewhere else. So root opens the file
    without reading it, compares whose it is, and only then reads this very file.
    """
    owner = privileges.of(path)
    if owner is None:
        return open_regular(path, follow=False)
    name = os.path.basename(path)
    try:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CouldNotLook(reason(error, Path(path))) from error
    try:
        st = os.fstat(handle)
        if not stat.S_ISREG(st.st_mode):
            raise CouldNotLook("{file}: not a regular file", file=name)
        if st.st_uid != owner.uid:
            raise CouldNotLook(
                "{file}: belongs to uid {uid}, not to the owner of the home (uid {owner})",
                file=name,
                uid=st.st_uid,
                owner=owner.uid,
            )
        return open_regular(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def open_file_of_process(pid: int, fd: str, database: Path) -> int:
    """Open a file that a process has open, for reading; OSError if the process closed it.

    `database` is the path in the home that the file belongs to. The owner of the home controls
    the process and may have mounted any file of the machine over that path. So root reads only
    what belongs to this owner, and checks the owner before it opens the file for reading.
    """
    owner = privileges.of(database)
    try:
        handle = os.open(f"/proc/{pid}/fd/{fd}", os.O_PATH | os.O_CLOEXEC)
    except PermissionError:  # a process of root
        if not root_parent.is_separate():
            raise
        return int(root_parent.ask_root("open_of_process", pid, fd))
    try:
        st = os.fstat(handle)
        if not stat.S_ISREG(st.st_mode):
            raise CannotFix(
                "The {database} that process {pid} has open is not a file. Stop that "
                "process first.",
                database=database.name,
                pid=pid,
            )
        if owner is not None and st.st_uid != owner.uid:
            raise CannotFix(
                "The {database} that process {pid} has open belongs to uid {uid}, not to the "
                "owner of the home (uid {owner}), so root does not read it. Stop that process "
                "first.",
                database=database.name,
                pid=pid,
                uid=st.st_uid,
                owner=owner.uid,
            )
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(handle)


def open_for_owner(owner: int, pid: int, fd: int) -> int:
    """Open a file of the owner that a process has open, which may be root's; for reading."""
    try:
        handle = os.open(f"/proc/{pid}/fd/{fd}", os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise CannotFix(
            "Process {pid} has closed the file. Run the check again.", pid=pid
        ) from error
    try:
        st = os.fstat(handle)
        if not stat.S_ISREG(st.st_mode) or st.st_uid != owner:
            raise CannotFix(
                "Root opens only files of the owner of the home (uid {owner}).", owner=owner
            )
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(handle)


def refuse_led_out(path: StrPath, fd: int) -> None:
    """Close an open file and raise CouldNotLook if a link of another user has led root to it.

    That user may replace anything in his folder. Root reads what is really in that folder, and
    what the user may read himself.
    """
    try:
        user = privileges.of(path)
    except Trouble:  # of a shared folder nobody knows who made the link
        return
    if user is None or _may_read(user, fd):
        return
    os.close(fd)
    raise CouldNotLook(
        "{file}: a link of another user (uid {uid}) leads to it, and that user may not read it",
        file=Path(path).name,
        uid=user.uid,
    )


def _may_read(user: privileges.Privileges, fd: int) -> bool:
    """Whether an open file is really in the folder of a user, or the user may read it."""
    real = os.readlink(f"/proc/self/fd/{fd}")
    folder = f"{os.path.realpath(user.folder)}/"
    st = os.fstat(fd)
    if real.startswith(folder) and (st.st_uid == user.uid or st.st_nlink == 1):
        return True
    with contextlib.suppress(OSError):
        enters = (_may(user, os.stat(place), stat.S_IXOTH) for place in Path(real).parents)
        return all(enters) and _may(user, st, stat.S_IROTH)
    return False


def _may(user: privileges.Privileges, st: os.stat_result, right: int) -> bool:
    """Whether a user has a right, given as that of all others, by the mode of a file."""
    if st.st_uid == user.uid:
        right <<= 6
    elif st.st_gid in (user.gid, *user.groups):
        right <<= 3
    return bool(st.st_mode & right)


DELETED = " (deleted)"


class Descriptor(NamedTuple):
    """One open file descriptor of a process."""

    number: str
    """Empty on systems without /proc."""
    target: str
    """Its target as the kernel writes it: a path, perhaps with ` (deleted)`, or `socket:[7]`."""

    @property
    def path(self) -> str:
        """The path of its target, even if the file was deleted."""
        return self.target.removesuffix(DELETED)


def descriptors(pid: int) -> list[Descriptor] | None:
    """Return the descriptors of a process; None when it has ended or they may not be read."""
    if not os.path.isdir("/proc/self"):
        import psutil

        try:
            return [Descriptor("", file.path) for file in psutil.Process(pid).open_files()]
        except (psutil.Error, OSError):
            return None
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except PermissionError:
        return _shown_by_root(pid)
    except OSError:
        return None
    found = []
    for name in names:
        try:
            found.append(Descriptor(name, os.readlink(f"{folder}/{name}")))
        except PermissionError:
            return _shown_by_root(pid)
        except OSError:  # closed since
            continue
    return found


def _shown_by_root(pid: int) -> list[Descriptor] | None:
    """Return what root shows of the descriptors of a process; None if it shows nothing."""
    seen = process_by_root(pid)
    return None if seen is None else [Descriptor(*one[:2]) for one in seen["files"]]


def only_reads(pid: int, number: str) -> bool:
    """Whether a descriptor was opened for reading only; False if that is not known."""
    try:
        with open(f"/proc/{pid}/fdinfo/{number}") as file:
            flags = next(line.split()[1] for line in file if line.startswith("flags:"))
    except (OSError, StopIteration, IndexError):
        return False
    return int(flags, 8) & os.O_ACCMODE == os.O_RDONLY


def identity(pid: int, number: str) -> tuple[int, int]:
    """Return device and inode of what a descriptor of a process leads to; OSError if it cannot."""
    try:
        st = os.stat(f"/proc/{pid}/fd/{number}")
    except PermissionError:
        if (found := _identity_by_root(pid, number)) is None:
            raise
        return found
    return st.st_dev, st.st_ino


_TABLE = Path("/proc/locks")


class Lock(NamedTuple):
    """One lock that a process holds on a range of bytes of a file."""

    path: Path
    pid: int
    """0 for a process outside our pid namespace, whose pid is unknown."""
    write: bool
    first: int
    last: int


def locks_on(paths: Iterable[Path]) -> list[Lock]:
    """Return the locks that any process holds on these paths."""
    wanted = {}
    for path in paths:
        try:
            st = os.stat(path)
        except OSError:
            continue
        wanted[f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}"] = path
    if not wanted:
        return []
    try:
        lines = _TABLE.read_text().splitlines()
    except OSError:
        return []
    locks = []
    for line in lines:
        fields = line.split()
        if "->" in fields:  # a process that waits for the lock
            continue
        if "OFDLCK" in fields:  # our own guard lock; it has no pid
            continue
        if len(fields) >= 8 and fields[5] in wanted:
            last = 2**63 if fields[7] == "EOF" else int(fields[7])
            pid = max(0, int(fields[4]))
            locks.append(Lock(wanted[fields[5]], pid, fields[3] == "WRITE", int(fields[6]), last))
    return locks


def lock_holders(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """Return the pids that hold a lock on each path; paths without a lock are left out."""
    found: dict[Path, list[int]] = {}
    for lock in locks_on(paths):
        pids = found.setdefault(lock.path, [])
        if lock.pid not in pids:
            pids.append(lock.pid)
    return found


def process_by_root(pid: int) -> dict[str, Any] | None:
    """Return what root shows of a process; None if it shows nothing, or if we are not separate."""
    return _ask_root(pid) if root_parent.is_separate() else None


@lru_cache(maxsize=4096)
def _ask_root(pid: int) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] | None = root_parent.ask_root("process", pid)
    except CouldNotLook:
        return None
    return found


def _identity_by_root(pid: int, number: str) -> tuple[int, int] | None:
    """Return device and inode of a file that a process has open."""
    for name, _, dev, inode in (process_by_root(pid) or {}).get("files", ()):
        if name == number and inode >= 0:
            return dev, inode
    return None
