"""Drop root's privileges to those of the path's owner.

The owner of a home can replace any of its folders by a symlink at any moment. With his privileges,
a symlink leads only to what he can reach himself, and new files belong to him from the start.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.accounts import others_may_write
from hermes_doctor.core.system.files import Snapshot, StrPath

_NOBODY = 65534
REMEMBERED = 20_000
"""The most folders whose owner is cached."""


class Privileges(NamedTuple):
    """A user with his groups, and his topmost folder on the way to a path."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    folder: Path
    can_reach: bool
    """Whether he can reach that folder by its name. He cannot if root closed a folder above it, as
    for a container's volume seen from outside."""

    def become(self) -> None:
        """Become that user permanently; used in worker processes."""
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


_known: dict[str, Privileges] | None = None


@contextmanager
def cache_owners() -> Iterator[None]:
    """Cache the owner of each user's folder while the context lasts.

    That stays safe: what is done with a user's privileges the user could have done himself, even if
    he moves the folder meanwhile. That a folder is root's is not cached, because root may give it
    away while a command waits for an answer.
    """
    global _known
    before, _known = _known, {}
    try:
        yield
    finally:
        _known = before


def of(path: StrPath) -> Privileges | None:
    """Return the privileges to use for a path; None means those of this process.

    From the root folder down, a folder that only root may change can be trusted. The first folder
    that belongs to another user decides. Below a folder of root's that nobody else may enter,
    nobody else can write.
    """
    if os.geteuid() != 0:
        return None
    named = os.fspath(path).rpartition("/")[0]
    if _known is not None and named in _known:
        return _known[named]
    try:
        privileges = _of(os.path.dirname(os.path.abspath(path)), links=40)
    except _Missing:
        return None  # it does not exist yet; the process that creates it will own it
    if _known is not None and privileges is not None and named.startswith("/"):
        if len(_known) >= REMEMBERED:
            _known.clear()
        _known[named] = privileges
    return privileges


class _Missing(Exception):
    """Says that a folder does not exist."""


def _of(folder: str, links: int) -> Privileges | None:
    parts = [part for part in folder.split("/") if part]
    place = "/"
    closed = False
    for length in range(len(parts) + 1):
        if length:
            place = f"{place.rstrip('/')}/{parts[length - 1]}"
        try:
            st = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            raise _Missing from None
        if st.st_uid != 0:
            return _user(st, Path(place))
        if stat.S_ISLNK(st.st_mode):
            if not links:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), place)
            target = os.path.join(os.path.dirname(place), os.readlink(place))
            return _of(os.path.normpath(os.path.join(target, *parts[length:])), links - 1)
        closed = closed or not st.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        if not (closed or st.st_mode & stat.S_ISVTX) and others_may_write(st, place):
            raise Trouble(
                "Other users may write to {folder}, so root does not trust what is in it. "
                "Nothing was changed. To solve it: chmod go-w {folder}",
                folder=place,
            )
    return None


def _user(st: os.stat_result, place: Path) -> Privileges:
    """Return the privileges of a folder's owner, with the folder's group if he is a member."""
    import pwd

    try:
        entry = pwd.getpwuid(st.st_uid)
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
        gid = st.st_gid if st.st_gid in groups else entry.pw_gid
    except KeyError:  # a uid without a name, as in containers
        gid = st.st_gid or _NOBODY
        groups = [gid]
    user = Privileges(st.st_uid, gid, tuple(groups), place, can_reach=True)
    return user._replace(can_reach=may_enter(user, place.parent))


def owner_of_home(home: Path) -> Privileges | None:
    """Return the user in whose place root looks at a home; None if it is root's own.

    That is the owner of the home itself; for one of root's, whoever may replace it.
    """
    if os.geteuid() != 0:
        return None
    st = os.stat(home)
    return _user(st, home) if st.st_uid else of(home / "_")


def may_read(user: Privileges, paths: Iterable[StrPath]) -> bool:
    """Whether a user may read all of these files and folders."""
    with _as(user):
        return all(
            os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0), effective_ids=True)
            for path in paths
        )


def may_enter(user: Privileges, folder: Path) -> bool:
    """Whether a user can get to a folder and use the names in it."""
    with _as(user):
        return os.access(folder, os.X_OK, effective_ids=True)


@contextmanager
def as_owner_of(path: Path) -> Iterator[Path]:
    """Work on a path with the privileges of its owner; yields the path to use for that."""
    user = of(path)
    if user is None:
        yield path
    elif user.can_reach:
        with _as(user):
            yield path
    else:
        # Root opens his folder; through the descriptor he can reach it past the closed folders.
        rest = Path(os.path.abspath(path)).relative_to(user.folder)
        fd = os.open(user.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _as(user):
                yield Path(f"/proc/self/fd/{fd}") / rest
        finally:
            os.close(fd)


@contextmanager
def as_owner_of_str_path(path: StrPath) -> Iterator[StrPath]:
    """Do the same as `as_owner_of` for a path as text, because making a `Path` takes longer."""
    if of(path) is None:
        yield path
        return
    with as_owner_of(Path(path)) as here:
        yield here


@contextmanager
def _as(user: Privileges) -> Iterator[None]:
    gid, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(user.groups)
        os.setegid(user.gid)
        os.seteuid(user.uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


def change_owner(
    path: Path, uid: int, gid: int, *, from_root: bool = False, expect: Snapshot | None = None
) -> None:
    """Change the owner of a file, as root where the owner of the folder may not do it.

    The file is opened once, and that descriptor is compared with `expect` (what the plan saw) and
    given to the new owner. So nobody can put a symlink or another file there in between.

    Root only does it for a regular file without a second hard link inside a folder of the user to
    whom the path belongs, and only to
    - change the group of a file that belongs to that user,
    - give him a file of root's, if `from_root` is set and the file is the expected one,
    - give a file back to its previous owner, which a mark on the file proves.
    Anything else is refused, because a forged receipt could ask for it.
    """
    user = of(path)
    with as_owner_of(path) as here:
        folder = os.open(here.parent, _NO_READ | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fd = os.open(path.name, _NO_READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except BaseException:
            os.close(folder)
            raise
    try:
        _refuse_changed(path.name, fd, expect)
        with contextlib.suppress(PermissionError), _as(user) if user else _as_we_are():
            _give(fd, uid, gid)
            return
        given = (path.name, uid, gid, from_root, list(expect) if expect else None)
        if root_parent.is_separate():
            try:
                root_parent.ask_root("give", *given, descriptors=(folder, fd))
            except CouldNotLook:
                raise _not_permitted(path.name) from None
        elif user is None:
            raise _not_permitted(path.name)
        else:
            give_as_root(user.uid, *given, folder, fd)
    finally:
        os.close(fd)
        os.close(folder)


def give_as_root(
    owner: int,
    name: str,
    uid: int,
    gid: int,
    from_root: bool,
    expect: Sequence[object] | None,
    folder: int,
    fd: int,
) -> None:
    """Do root's part of `change_owner` to an open file of an open folder."""
    _refuse_changed(name, fd, Snapshot(*expect) if expect else None)  # type: ignore[arg-type]
    st = os.fstat(fd)
    there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if "/" in name or not os.path.samestat(st, there):
        raise _not_permitted(name)
    if not stat.S_ISREG(st.st_mode) or st.st_nlink != 1:
        raise _not_permitted(name)
    owners = (owner, 0) if from_root and expect else (owner,)
    given = st.st_uid in owners and uid == owner
    proven = given or _owner_before(fd) == (uid, gid)
    if not proven or not is_inside_folder_of(owner, folder):
        raise _not_permitted(name)
    if hasattr(os, "setxattr"):
        with contextlib.suppress(OSError):  # without it, undo says that the owner stays
            os.setxattr(f"/proc/self/fd/{fd}", MARK, f"{st.st_uid}:{st.st_gid}".encode())
    _give(fd, uid, gid)


def _refuse_changed(name: str, fd: int, expect: Snapshot | None) -> None:
    now = Snapshot.of(os.fstat(fd))
    if expect and now._replace(ctime_ns=0) != expect._replace(ctime_ns=0):
        raise Trouble("another program changed {file} during the run", file=name)


def _not_permitted(name: str) -> PermissionError:
    return PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)


_NO_READ = getattr(os, "O_PATH", os.O_RDONLY)
_as_we_are = contextlib.nullcontext


def _give(fd: int, uid: int, gid: int) -> None:
    """Change the owner of what a descriptor leads to, even if it may not be read or written."""
    if hasattr(os, "O_PATH"):
        os.chown(f"/proc/self/fd/{fd}", uid, gid)
    else:
        os.fchown(fd, uid, gid)


def is_inside_folder_of(uid: int, folder: int) -> bool:
    """Whether a folder, or one above it, belongs to a user, whatever path led to it."""
    here = os.dup(folder)
    try:
        while os.fstat(here).st_uid != uid:
            above = os.open("..", _NO_READ | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            at_top = os.path.samestat(os.fstat(above), os.fstat(here))
            os.close(here)
            here = above
            if at_top:
                return False
        return True
    finally:
        os.close(here)


MARK = "trusted.hermes_doctor.owner"
"""The attribute with a file's owner before root changed it. Only root can read or write it."""


def had_owner(path: Path, uid: int, gid: int) -> bool:
    """Whether root's mark on a file proves that it belonged to this owner before."""
    try:
        with as_owner_of(path) as here:
            fd = os.open(here, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if root_parent.is_separate():
            return bool(root_parent.ask_root("had_owner", uid, gid, descriptors=(fd,)))
        return had_owner_by_mark(uid, gid, fd)
    finally:
        os.close(fd)


def had_owner_by_mark(uid: int, gid: int, fd: int) -> bool:
    """Do root's part of `had_owner` to an open file."""
    return _owner_before(fd) == (uid, gid)


def _owner_before(fd: int) -> tuple[int, int] | None:
    if not hasattr(os, "getxattr"):
        return None
    try:
        uid, _, gid = os.getxattr(f"/proc/self/fd/{fd}", MARK).decode().partition(":")
        return int(uid), int(gid)
    except (OSError, ValueError):
        return None
