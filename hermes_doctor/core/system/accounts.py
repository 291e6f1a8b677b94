"""Look up user accounts, and decide what root may use of what other users could have written."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import StrPath, folder_of, user_home


class Account(NamedTuple):
    """A user of this machine, as whom a command is started."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str | None
    folder: str | None

    @property
    def is_us(self) -> bool:
        """Whether this process already runs as that user."""
        return os.geteuid() == self.uid

    def options(self) -> dict[str, object]:
        """Return the arguments that make `subprocess` start a process as that user."""
        if self.is_us:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}


def account(uid: int) -> Account:
    """Return the account of a uid; in a container it may have no name."""
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        own = str(user_home()) if uid == os.geteuid() else None
        return Account(uid, uid, (uid,), None, own)
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    folder = folder_of(uid, entry.pw_dir)
    return Account(uid, entry.pw_gid, groups, entry.pw_name, folder)


def refuse_untrusted(path: Path, user: Account | None) -> None:
    """Raise CannotFix if root would run as root something that another user could have written."""
    if os.geteuid() != 0 or (user is not None and user.uid != 0):
        return
    if why := why_untrusted(path, strict=True):
        raise CannotFix("root does not run {path}: {reason}.", path=path, reason=why)


MISSING = "it does not exist"


def why_untrusted(
    path: Path, *, strict: bool = False, trusted_uids: Sequence[int] = ()
) -> str | None:
    """Return why code from this path must not run; None if it may.

    It must not run if another user could have written it, or could replace a folder or a symlink
    on the way to it. A sticky folder is allowed on the way, since users cannot rename the files of
    others in it. With `strict`, only a folder may follow a sticky folder: another user could have
    moved a file or a symlink of root's into it. Root also trusts the `trusted_uids`.
    """
    try:
        way = list(_way(path))
    except FileNotFoundError:
        return MISSING
    except (OSError, ValueError) as error:
        return text("could not check it ({error})", error=type(error).__name__)
    passed = dict(way)
    for place, st in way:
        above = passed.get(place.parent)
        if strict and above and not stat.S_ISDIR(st.st_mode) and above.st_mode & stat.S_ISVTX:
            return text("other users may write to {folder}", folder=place.parent)
        if st.st_uid not in (0, os.geteuid(), *trusted_uids):
            return text(
                "{path} belongs to neither root nor you (uid {uid})", path=place, uid=st.st_uid
            )
        shared = st.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(st.st_mode)
        if shared and not (place != way[-1][0] and st.st_mode & stat.S_ISVTX):
            return text(
                "other users may write to {path} (chmod go-w {path} solves that)", path=place
            )
    return None


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every folder and symlink on the way to a path, following the symlinks."""
    rest, here, links = list(path.absolute().parts[1:]), Path("/"), 0
    yield here, os.lstat(here)
    while rest:
        name = rest.pop(0)
        if name == "..":
            here = here.parent
            continue
        place = here / name
        st = os.lstat(place)
        yield place, st
        if not stat.S_ISLNK(st.st_mode):
            here = place
            continue
        links += 1
        if links > 40:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = Path(os.readlink(place))
        rest = [part for part in target.parts if part != "/"] + rest
        here = Path("/") if target.is_absolute() else here


def others_may_write(st: os.stat_result, place: StrPath) -> bool:
    """Whether users other than root and the owner may create files in a folder."""
    if st.st_mode & stat.S_IWOTH:
        return True
    if not st.st_mode & stat.S_IWGRP:  # with an access list, this bit is the list's mask
        return False
    return _is_shared_group(st) or _list_names_writers(place, {0, st.st_uid})


def shared_folder(folder: Path) -> Path | None:
    """Return this folder, or one above it, if users other than root and its owner may change it.

    Whoever may write to a folder can replace a home in it. Users cannot rename the files of
    others in a sticky folder, so such a folder above is allowed.
    """
    for place in (folder, *folder.parents):
        st = os.stat(place)
        sticky = place != folder and st.st_mode & stat.S_ISVTX
        if not sticky and others_may_write(st, place):
            return place
    return None


def _is_shared_group(st: os.stat_result) -> bool:
    """Whether a folder's group may have members other than root and the folder's owner."""
    import grp
    import pwd

    if st.st_gid == 0:
        return False
    if st.st_uid == 0:
        return True
    try:
        owner = pwd.getpwuid(st.st_uid)
    except KeyError:  # in containers, a user has his own number also as his group
        return st.st_gid != st.st_uid
    if st.st_gid not in os.getgrouplist(owner.pw_name, owner.pw_gid):
        return True
    try:
        members = {*grp.getgrgid(st.st_gid).gr_mem}
    except KeyError:
        members = set()
    members |= {one.pw_name for one in pwd.getpwall() if one.pw_gid == st.st_gid}
    return bool(members - {owner.pw_name, "root"})


_LIST = "system.posix_acl_access"
_USER, _GROUP, _WRITE = 0x02, 0x08, 2
_LIST_ENTRY = struct.Struct("<HHI")


def _list_names_writers(place: StrPath, trusted: set[int]) -> bool:
    """Whether a folder's access list lets a user, or a group other than root's, write to it."""
    if not hasattr(os, "getxattr"):
        return False
    try:
        entries = os.getxattr(place, _LIST)[4:]
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.EOPNOTSUPP)
    return any(
        permissions & _WRITE
        and ((tag == _USER and id not in trusted) or (tag == _GROUP and id != 0))
        for tag, permissions, id in _LIST_ENTRY.iter_unpack(entries)
    )
