"""Read files and folders without changing or blocking on them.

Only regular files are opened, reads are bounded, and access times are kept where that is allowed.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook

StrPath = str | os.PathLike[str]
MEGABYTE = 1024 * 1024
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
_NOATIME = getattr(os, "O_NOATIME", 0)


class Snapshot(NamedTuple):
    """The metadata of a path at one moment; equal snapshots mean that it did not change."""

    kind: str
    """absent, file, directory, symlink or other."""
    dev: int = 0
    ino: int = 0
    size: int = 0
    mode: int = 0
    uid: int = -1
    gid: int = -1
    mtime_ns: int = 0
    ctime_ns: int = 0

    @classmethod
    def of(cls, st: os.stat_result) -> Snapshot:
        """Make a snapshot from a stat result."""
        return cls(
            _KINDS.get(st.st_mode & 0o170000, "other"),
            st.st_dev,
            st.st_ino,
            st.st_size,
            st.st_mode & 0o7777,
            st.st_uid,
            st.st_gid,
            st.st_mtime_ns,
            st.st_ctime_ns,
        )


ABSENT = Snapshot("absent")


def moment(mtime_ns: int) -> datetime:
    """The time of a file; the epoch if it is one that no calendar has."""
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


LONGEST_NAME = 255
"""Bytes, on most disks."""


def snapshot(path: StrPath) -> Snapshot:
    """Return the current snapshot of a path; a symlink is not followed."""
    try:
        return Snapshot.of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, ValueError) as error:
        long = isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
        if long and len(os.fsencode(Path(path).name)) > LONGEST_NAME:  # no file can have it
            return ABSENT
        raise CouldNotLook(reason(error, Path(path))) from error


def reason(error: OSError | ValueError, path: Path) -> str:
    """Return one short sentence for an error of the operating system."""
    why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return f"{path.name or path}: {why.lower()}"


def open_regular(path: StrPath, *, follow: bool = True) -> int:
    """Open a regular file for reading; never block on a FIFO, and keep the atime if allowed."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    flags |= 0 if follow else os.O_NOFOLLOW
    try:
        try:
            fd = os.open(path, flags | _NOATIME)
        except PermissionError:
            fd = os.open(path, flags)  # only the owner and root may use O_NOATIME
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise CouldNotLook(
                "{file}: a socket, not a regular file", file=Path(path).name
            ) from error
        raise CouldNotLook(reason(error, Path(path))) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise CouldNotLook("{file}: not a regular file", file=Path(path).name)
    judge(path, fd)
    return fd


judge: Callable[[StrPath, int], None] = lambda *_: None  # noqa: E731 (it refuses a file)


def read(
    path: Path, limit: int, opener: Callable[[Path], int] = open_regular
) -> tuple[bytes, Snapshot]:
    """Return the content of a small file and its snapshot; `opener` opens it in another way.

    Raises FileNotFoundError when it does not exist and CouldNotLook when it is larger than
    `limit`, not a regular file, unreadable, or being written at this moment.
    """
    for _ in range(3):
        fd = opener(path)
        try:
            before = Snapshot.of(os.fstat(fd))
            if before.size > limit:
                raise CouldNotLook(
                    "{file}: too large to read ({size}; the limit is {limit})",
                    file=path.name,
                    size=size(before.size),
                    limit=size(limit),
                )
            data = b""
            while chunk := os.read(fd, min(limit, before.size + 65536) + 1 - len(data)):
                data += chunk
                if len(data) > limit:
                    raise CouldNotLook(
                        "{file}: grew over {limit} while it was read",
                        file=path.name,
                        limit=size(limit),
                    )
            if Snapshot.of(os.fstat(fd)) == before and len(data) == before.size:
                return data, before
        except OSError as error:
            raise CouldNotLook(reason(error, path)) from error
        finally:
            os.close(fd)
    raise CouldNotLook("{file}: another program is writing it now", file=path.name)


def read_if_there(path: Path, limit: int) -> tuple[bytes, Snapshot] | None:
    """The content of a file, or None when there is none; a symlink must lead somewhere."""
    try:
        return read(path, limit)
    except FileNotFoundError:
        if snapshot(path).kind == "symlink":
            raise CouldNotLook("{file}: a symlink to a missing file", file=path.name) from None
        return None


def read_json(path: Path, limit: int = 4 * MEGABYTE) -> object:
    """Return the content of a JSON file.

    Raises ValueError when it is not JSON; FileNotFoundError and CouldNotLook as `read` does.
    """
    import json

    data, _ = read(path, limit)
    try:
        found: object = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return found


def read_head(
    path: Path, length: int, opener: Callable[[Path], int] = open_regular
) -> tuple[bytes, Snapshot]:
    """Return the first bytes of a file of any size, and its snapshot."""
    fd = opener(path)
    try:
        return os.pread(fd, length, 0), Snapshot.of(os.fstat(fd))
    except OSError as error:
        raise CouldNotLook(reason(error, path)) from error
    finally:
        os.close(fd)


def read_tail(path: Path, length: int) -> tuple[bytes, Snapshot]:
    """Return the last bytes of a file of any size, and its snapshot.

    If the file is longer than that, the first line is dropped, as it may be incomplete.
    """
    fd = open_regular(path)
    try:
        taken = Snapshot.of(os.fstat(fd))
        start = max(0, taken.size - length)
        data = os.pread(fd, length, start)
    except OSError as error:
        raise CouldNotLook(reason(error, path)) from error
    finally:
        os.close(fd)
    return (data.partition(b"\n")[2] if start else data), taken


def list_folder(folder: Path, limit: int = 20_000) -> list[str]:
    """Return the sorted names in a folder; none if it is missing, CouldNotLook above `limit`."""
    names = first_names(folder, limit + 1)
    if len(names) > limit:
        raise too_many(folder, limit)
    return names


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it is missing or may not be listed."""
    try:
        return list_folder(folder)
    except CouldNotLook:
        return []


def too_many(folder: Path, limit: int) -> CouldNotLook:
    """Make the error for a folder that has more names than we read."""
    return CouldNotLook(
        "{folder}: contains more than {limit} entries", folder=folder.name, limit=limit
    )


def first_names(folder: Path, limit: int) -> list[str]:
    """Return, sorted, the first names that the file system lists; none if the folder is missing."""
    try:
        with _folder(folder) as fd, os.scandir(fd) as entries:
            return sorted([entry.name for entry in itertools.islice(entries, limit)])
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise CouldNotLook(reason(error, folder)) from error


def folder_entries(folder: Path, limit: int) -> Iterator[os.DirEntry[str]]:
    """Yield the first entries of a folder in the order of the file system."""
    with _folder(folder) as fd, os.scandir(fd) as entries:
        for number, entry in enumerate(entries):
            if number >= limit:
                return
            yield entry


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    """Open a folder; its access time is kept where that is allowed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path, flags | _NOATIME)
    except PermissionError:
        fd = os.open(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


def walk(
    top: StrPath, onerror: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Like `os.walk`, but for trees of any depth: `os.walk` fails at 1,000 nested folders.

    Symlinks are never followed. The caller may remove folders from the list to skip them.
    """
    waiting = [os.fspath(top)]
    while waiting:
        base = waiting.pop()
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(base) as entries:
                for entry in entries:
                    is_folder = entry.is_dir(follow_symlinks=False) or _leads_to_folder(entry)
                    (folders if is_folder else others).append(entry.name)
        except OSError as error:
            if onerror is not None:
                onerror(error)
            continue
        yield base, folders, others
        paths = [os.path.join(base, name) for name in reversed(folders)]
        waiting += [path for path in paths if not os.path.islink(path)]


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_symlink() and entry.is_dir()
    except OSError:
        return False


def user_home() -> Path:
    """Return the folder of the current user; `~` itself for a user without an account."""
    return _user_home or Path(os.path.expanduser("~"))


_user_home: Path | None = None


def keep_user_home() -> None:
    """Let `user_home` return this user's folder also after the process became another user."""
    global _user_home
    _user_home = user_home()


def folder_of(uid: int, listed: str) -> str:
    """Return a user's own folder; `listed` is the one in the user database.

    For the current user, HOME overrides it. Root's HOME is ignored, because sudo may have kept the
    HOME of another user.
    """
    return os.path.expanduser("~") if uid == os.geteuid() != 0 else listed


def size(count: int) -> str:
    """Format a number of bytes for people: `1.8 MB`, `41 MB`, `512 bytes`."""
    for unit, step in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if count >= step:
            return f"{count / step:.{0 if count >= 10 * step else 1}f} {unit}"
    return f"{count} bytes"


def shown(names: Iterable[str], most: int = 6) -> str:
    """List table names in a form safe to show: a damaged or hostile file can contain any text."""
    plain = sorted({n if _plain(n) else "a table with an odd name" for n in names})
    more = f" and {len(plain) - most} more" if len(plain) > most else ""
    return ", ".join(plain[:most]) + more


def _plain(name: str) -> bool:
    return 0 < len(name) <= 64 and name.isascii() and name.replace("_", "a").isalnum()


def which(name: str) -> str | None:
    """Return the path of a program on PATH; unlike `shutil`, it loads no compression modules."""
    return next(which_all(name), None)


def which_all(name: str) -> Iterator[str]:
    """Yield every path of a program on PATH, in the order of PATH."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            yield path


def close_others(*kept: int) -> None:
    """Close all descriptors but the standard ones and these, in a process that was just forked.

    Among them is the home's lock, which a copy of its descriptor would keep.
    """
    first = 3
    for fd in (*sorted(kept), 65536):
        os.closerange(first, fd)
        first = fd + 1
