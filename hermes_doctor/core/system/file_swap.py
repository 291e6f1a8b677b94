"""Replace one file by another, and detect if the file was changed since it was compared."""

from __future__ import annotations

import errno
from pathlib import Path

from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import Snapshot, snapshot

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
"""Errors of a file system without hard links; the file is still in the vault."""


def swap(new: Path, path: Path, old: Path, known: Snapshot, *, must_keep: bool = False) -> None:
    """Move `new` to `path`, and the file that was there to `old`.

    Another program may replace or edit the file after it was compared. Exchanging the two names
    shows which file was really replaced: if it is not `known`, they are exchanged back. Where names
    cannot be exchanged, the old file gets a second name first. Where hard links are not supported
    either, the old file is lost, unless `must_keep` demands a copy.
    """
    if disk.exchange(new, path):
        if not is_unchanged(snapshot(new), known):
            disk.exchange(new, path)
            raise changed_error(path)
        disk.rename(new, old)
        return
    disk.remove(old)
    try:
        disk.link(path, old)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if must_keep:
            copy_whole(path, old)
    if not is_unchanged(snapshot(path), known):
        disk.remove(old)
        raise changed_error(path)
    disk.rename(new, path)


def copy_whole(path: Path, new: Path) -> None:
    """Copy a file with its metadata; the new name appears when the copy is complete."""
    part = new.with_name(f"{new.name}.part")
    disk.remove(part)
    with disk.new_file(part) as fd:
        disk.copy(path, fd)
    copy_metadata(path, part)
    disk.rename(part, new)


def copy_metadata(old: Path, new: Path) -> None:
    """Give a file the owner, mode, attributes and time of another one."""
    taken, now = snapshot(old), snapshot(new)
    if (now.uid, now.gid) != (taken.uid, taken.gid):
        disk.set_owner(new, taken.uid, taken.gid)
    disk.set_extended_attributes(new, disk.extended_attributes(old))
    disk.set_time(new, taken.mtime_ns)
    disk.set_mode(new, taken.mode)


def move_away(path: Path, old: Path, known: Snapshot) -> None:
    """Move a file to `old`, and back again if it is not `known`."""
    disk.rename(path, old)
    if not is_unchanged(snapshot(old), known):
        disk.rename_to_free(old, path)
        raise changed_error(path)


def move_to_free_name(new: Path, path: Path) -> None:
    """Move a file to a name that must be free."""
    try:
        disk.rename_to_free(new, path)
    except FileExistsError:
        raise changed_error(path) from None


def is_unchanged(now: Snapshot, known: Snapshot) -> bool:
    """Whether a file is unchanged; ctime is ignored, because a new name alone changes it."""
    return now._replace(ctime_ns=0) == known._replace(ctime_ns=0)


def changed_error(path: Path) -> Trouble:
    """Return the error for a file that was not replaced because it had changed."""
    return Trouble("another program changed {file} during the run", file=path.name)
