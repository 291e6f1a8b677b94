"""Show folders at their paths in the mounts of one process only, whatever others put there.

Two kinds are shown at their own paths to a process that is about to become the owner:

- A home below a folder that root has closed, such as a container's volume seen from outside. Root
  opens the owner's folder once and shows that. Below the closed folder, the process sees nothing
  else.
- A folder that root lends, such as a vault that only root may use. To the process all files of root
  in it belong to the owner, and what it writes there belongs to root: the kernel translates the
  numbers of the two users ("idmapped mounts", Linux 5.12). Nobody else can use it by that.

A third kind is shown to a program of root's that reads the backups in a folder of the owner: no
link in it is followed, and the owner cannot put another folder in its place.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Explained, Trouble
from hermes_doctor.core.system import privileges, root_parent
from hermes_doctor.core.system.privileges import Privileges

_OWN_USERS, _OWN_MOUNTS = 0x10000000, 0x20000
_RECEIVE = 0x80000 | 0x4000
"""Mounts of this process stay its own; what others unmount is unmounted here, too."""
_BIND = 0x1000 | 0x4000
_READ_ONLY = 1
_NO_PROGRAMS = 2 | 4 | 8
"""No set-user-id bits, devices or programs."""
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""Numbers of system calls, the same on all processors."""
_CLONE, _EMPTY_PATH, _MOVE_EMPTY_PATH = 1, 0x1000, 4
_TRANSLATE_USERS, _NO_LINKS = 0x100000, 0x200000
_CHANGE_ONE = 0x20 | 0x1000
"""Change this mount only, not those of other processes."""
_HERE = -100
"""The folder number that stands for the current folder."""


class LentFolder(NamedTuple):
    """A folder of root's that a process of a home's owner may use; no symlink is in its path."""

    path: Path
    hidden: tuple[str, ...] = ()
    """Names in it whose content the process does not see."""
    needed: bool = True
    """Whether the work makes no sense without it."""
    read_only: bool = False


def show(user: Privileges, home: Path | None, lent: Sequence[LentFolder] = ()) -> None:
    """Show a closed home and lent folders to this process, which is still root's.

    It is about to become the user. Raises CouldNotLook, for a lent folder Trouble, if the system
    does not let root do that.
    """
    if home is not None and _closed(home, user) is None:
        home = None
    if home is None and not lent:
        return
    mounts = _Mounts()
    covered: set[Path] = set()
    with contextlib.ExitStack() as opened:
        sources = {}
        for folder in lent:
            with _lending(folder):
                mounts.separate()
                sources[folder] = opened.enter_context(mounts.second(folder, user))
        if home is not None:
            with _explained(CouldNotLook, _NOT_SHOWN, path=home, folder=_closed(home, user)):
                mounts.separate()
                top = _top(home, user)
                fd = opened.enter_context(_opened(top))
                if not privileges.is_inside_folder_of(user.uid, fd):
                    raise CouldNotLook("another program replaced the folder of the home")
                mounts.make_way(top, user, covered)
                mounts.mount(Path(f"/proc/self/fd/{fd}"), top, "", _BIND, "")
        for folder, source in sources.items():
            with _lending(folder):
                mounts.make_way(folder.path, user, covered)
                mounts.attach(source, folder.path)
                for name in folder.hidden:
                    mounts.hide(folder.path / name)


def _lending(folder: LentFolder) -> contextlib.AbstractContextManager[None]:
    if not folder.needed:
        return contextlib.suppress(OSError)
    why = _NOT_LENT_TO_READ if folder.read_only else _NOT_LENT
    return _explained(Trouble, why, path=folder.path)


_NOT_SHOWN = (
    "root has closed {folder} to the owner of {path}, and the system does not let root "
    "show it to a process of the owner ({reason}); run hermes-doctor in the container, "
    "or as the owner"
)
_NOT_LENT = (
    "Only root may use {path}, and the system does not let root lend it to the process that "
    "works as the owner of the home ({reason}). Nothing was changed. To use another folder, which "
    "belongs to the owner: --vault DIR"
)

_NOT_LENT_TO_READ = (
    "The process that works as the owner of the home needs {path}, which is root's, and the system "
    "does not let root lend it ({reason}). Nothing was changed. Run the command as the owner of "
    "the home, or with the right to mount"
)


@contextmanager
def _explained(kind: type[Explained], template: str, **values: object) -> Iterator[None]:
    """Say what the system refused."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise kind(template, reason=reason, **values) from None


@contextmanager
def shown_to_program(folder: Path, user: Privileges) -> Iterator[Callable[[], None]]:
    """Open a folder of this user; yield what shows it to a program of root's, to be called in it.

    In place of the user's topmost folder the program sees only this one, read-only, as it was
    opened: no link leads it anywhere, and the user can put nothing else there. Raises Trouble if
    the system does not let root do that.
    """
    mounts = _Mounts()
    with contextlib.ExitStack() as opened:
        with privileges.as_owner_of(folder / "_") as here:
            fd = os.open(here.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, fd)
        if os.fstat(fd).st_uid != user.uid:
            raise Trouble(
                "{path} does not belong to the owner of the home, who could have put it there, so "
                "root does not send it. Nothing was sent.",
                path=folder,
            )
        with _explained(Trouble, _NOT_SHOWN_TO_PROGRAM, path=folder):
            os.close(mounts.second_to_read(fd))

        def show() -> None:
            mount = mounts.second_to_read(fd)  # for each program its own
            mounts.separate()
            mounts.mount("tmpfs", user.folder, "tmpfs", _NO_PROGRAMS, "mode=755,size=1m")
            os.umask(0o022)
            os.makedirs(folder, exist_ok=True)
            mounts.attach(mount, folder)
            mounts.mount("", user.folder, "", _CHANGE_ONE | _NO_PROGRAMS | _READ_ONLY, "")

        yield show


_NOT_SHOWN_TO_PROGRAM = (
    "{path} belongs to another user, and the system does not let root show it to another program "
    "so that this user cannot lead it elsewhere ({reason}). Nothing was sent. Run the command as "
    "the owner, or with the right to mount"
)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _top(home: Path, user: Privileges) -> Path:
    """The topmost folder of the user on the way to the home."""
    found = privileges.of(home / "_")
    return found.folder if found and found.uid == user.uid else home


def _closed(home: Path, user: Privileges) -> Path | None:
    """The topmost folder above the home that the user may not enter."""
    above = reversed(home.parents)
    return next((path for path in above if not privileges.may_enter(user, path)), None)


class _Mounts:
    """The mounts of this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._separate = False

    def separate(self) -> None:
        """Take them apart from those of all other processes."""
        if self._separate:
            return
        root_parent.keep_mounts(os.readlink("/proc/self/ns/mnt"))
        self._check(self._library.unshare(_OWN_MOUNTS))
        self._check(self._library.mount(None, b"/", None, ctypes.c_ulong(_RECEIVE), None))
        self._separate = True

    def make_way(self, folder: Path, user: Privileges, covered: set[Path]) -> None:
        """Let the user get to the place of a folder; what is beside the way is not shown."""
        closed = next((place for place in reversed(folder.parents) if place in covered), None)
        closed = closed or _closed(folder, user)
        if closed is None:
            return
        if closed not in covered:
            self.mount("tmpfs", closed, "tmpfs", _NO_PROGRAMS, "mode=755,size=1m")
            covered.add(closed)
        umask = os.umask(0o022)
        os.makedirs(folder, exist_ok=True)
        os.umask(umask)

    def mount(self, source: str | Path, place: Path, kind: str, flags: int, data: str) -> None:
        """Mount something at a place."""
        words = [os.fsencode(word) for word in (source, place, kind)]
        self._check(self._library.mount(*words, ctypes.c_ulong(flags), data.encode()))

    @contextmanager
    def second(self, folder: LentFolder, user: Privileges) -> Iterator[int]:
        """Open a second mount of a folder, in which the files of root belong to the user."""
        with contextlib.ExitStack() as opened:
            mount = self._call(_OPEN_TREE, _HERE, os.fsencode(folder.path), _CLONE | os.O_CLOEXEC)
            opened.callback(os.close, mount)
            rights = _TRANSLATE_USERS | _NO_PROGRAMS | (_READ_ONLY if folder.read_only else 0)
            self._limit(mount, rights, opened.enter_context(self._users(user)))
            yield mount

    def second_to_read(self, folder: int) -> int:
        """Open a second mount of an open folder, in which nothing is written, run or followed."""
        mount = self._call(_OPEN_TREE, folder, b"", _CLONE | os.O_CLOEXEC | _EMPTY_PATH)
        try:
            self._limit(mount, _READ_ONLY | _NO_LINKS | _NO_PROGRAMS)
        except BaseException:
            os.close(mount)
            raise
        return mount

    def _limit(self, mount: int, rights: int, users: int = 0) -> None:
        data = struct.pack("QQQQ", rights, 0, 0, users)
        self._call(_MOUNT_SETATTR, mount, b"", _EMPTY_PATH, data, len(data))

    def attach(self, mount: int, place: Path) -> None:
        """Put an opened mount at a place."""
        self._call(_MOVE_MOUNT, mount, b"", _HERE, os.fsencode(place), _MOVE_EMPTY_PATH)

    @contextmanager
    def _users(self, user: Privileges) -> Iterator[int]:
        """Open a namespace of users in which this user is root; it needs a process for a moment."""
        ready, end = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            made = self._library.unshare(_OWN_USERS) == 0
            os.write(ready[1], b"y" if made else b"n")
            os.close(end[1])
            os.read(end[0], 1)
            os._exit(0)
        fd = -1
        try:
            if os.read(ready[0], 1) != b"y":
                raise PermissionError(1, "Operation not permitted")
            for name, number in (("uid_map", user.uid), ("gid_map", user.gid)):
                with open(f"/proc/{pid}/{name}", "w") as file:
                    file.write(f"0 {number} 1")
            fd = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            yield fd
        finally:
            for one in (*ready, *end, *([fd] if fd >= 0 else [])):
                os.close(one)
            os.waitpid(pid, 0)

    def hide(self, place: Path) -> None:
        """Let a folder or a file look empty."""
        if place.is_dir():
            self.mount("tmpfs", place, "tmpfs", _NO_PROGRAMS | _READ_ONLY, "mode=755")
        else:
            self.mount("/dev/null", place, "", _BIND, "")

    def _call(self, number: int, *given: int | bytes) -> int:
        result = int(self._library.syscall(number, *given))
        self._check(min(result, 0))
        return result

    def _check(self, result: int) -> None:
        if result:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
