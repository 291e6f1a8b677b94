"""Write the content of a backup entry into a file."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import Backup
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot


def rebuild(backup: Backup, entry: BackupEntry, new: Path) -> None:
    """Create the file or symlink of an entry, with owner, mode, attributes and times."""
    if entry.kind == "symlink":
        disk.make_symlink(entry.target or "", new)
    else:
        with disk.new_file(new) as fd:
            found = write_content(backup, entry, fd)
        if found != entry.sha256:
            disk.remove(new)
            raise Trouble(
                text("the copy of {file} in backup {id} is damaged", file=entry.path, id=backup.id)
            )
    now = snapshot(new)
    if (now.uid, now.gid) != (entry.uid, entry.gid):
        with contextlib.suppress(*([PermissionError] if entry.kind == "symlink" else [])):
            disk.set_owner(new, entry.uid, entry.gid)
    if entry.kind == "file":
        disk.set_extended_attributes(new, entry.xattrs)
        disk.set_time(new, entry.mtime_ns)
        disk.sync_file(new)
        disk.set_mode(new, entry.mode)


def write_content(backup: Backup, entry: BackupEntry, target: int) -> str:
    """Write the content of an entry; return its digest, in the format of the entry's."""
    copy = backup.copy_of(entry)
    if not entry.blocks:
        return disk.copy(copy, target, like=entry.sha256)[0]
    from hermes_doctor.backup import blocks

    try:
        return blocks.copy(copy, target, entry.sha256)
    except CouldNotLook:
        return ""
