"""Set the mode and the owner of a file together, and restore both from a backup."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.system import disk, privileges, root_parent
from hermes_doctor.system.files import Snapshot, snapshot


def set_mode_and_owner(
    path: Path,
    mode: int | None,
    owner: tuple[int, int] | None,
    expect: Snapshot,
    *,
    from_root: bool = False,
) -> None:
    """Set mode and owner in the order in which root's dropped privileges allow both.

    The owner is changed only if the file is still the expected one.
    """
    user = works_for(path)
    away = user is not None and owner is not None and owner[0] != user
    if mode is not None and away:
        disk.set_mode(path, mode)
        expect = expect._replace(mode=mode)
    if owner is not None:
        disk.set_owner(path, *owner, from_root=from_root, expect=expect)
    if mode is not None and not away:
        disk.set_mode(path, mode)


def restore_mode_and_owner(path: Path, entry: BackupEntry) -> bool:
    """Restore both from an entry; return False if the owner could not be restored.

    That is so on a file system that cannot store root's attribute for the former owner.
    """
    now = snapshot(path)
    owner = (entry.uid, entry.gid)
    try:
        set_mode_and_owner(path, entry.mode, None if owner == (now.uid, now.gid) else owner, now)
    except PermissionError:
        disk.set_mode(path, entry.mode)
        return False
    return True


def works_for(path: Path) -> int | None:
    """The user with whose rights root's command works on a path; None for our own."""
    if root_parent.is_separate():
        return os.geteuid()
    user = privileges.of(path)
    return user.uid if user else None
