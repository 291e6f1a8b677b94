"""Find folders to which others than their owner may write, also by a group or an access list."""

from __future__ import annotations

import errno
import os
import stat
import struct
from pathlib import Path

from hermes_doctor.system.files import StrPath


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
