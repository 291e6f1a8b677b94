"""Restore the files of a backup: which ones, their content, their mode and their owner.

Files outside the home are the targets of symlinks in it. Anyone may have written the manifest,
because an archive is encrypted with a public key, and a symlink may lead to system files or to
another user's. So a file outside is restored only if a symlink of the current home leads there too
and the home's owner owns it, or if the operator names it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from hermes_doctor.backup.vault import blocks
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.core.home import Home, database_of
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk, privileges, root_parent
from hermes_doctor.core.system.files import Snapshot, snapshot

_NAMES = ("bin", "boot", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr")
MACHINE = tuple(Path("/", name) for name in (*_NAMES, "System", "Library"))
"""Folders of the operating system: not restored even if root owns the home."""


def split_restorable(
    home: Home,
    entries: Sequence[BackupEntry],
    known: Sequence[BackupEntry],
    named: Collection[str] = (),
) -> tuple[list[BackupEntry], list[str]]:
    """Split entries into those to restore and the paths of those to leave as they are.

    `known` are all entries of the backup, including symlinks; `named` paths are always restored.
    """
    led: set[Path] | None = None
    kept, left = [], []
    for entry in entries:
        if entry.path.startswith("/") and entry.path not in named:
            led = _led(home, known) if led is None else led
            if not _is_the_homes(home, Path(entry.path), led):
                left.append(entry.path)
                continue
        kept.append(entry)
    return kept, left


def _led(home: Home, known: Sequence[BackupEntry]) -> set[Path]:
    """The targets of the backup's symlinks that still exist in the home."""
    targets = set()
    for entry in known:
        path = home.path / entry.path
        if entry.kind == "symlink" and path.is_symlink():
            try:
                targets.add(path.resolve())
            except (OSError, RuntimeError, ValueError):
                continue  # a loop
    return targets


def _is_the_homes(home: Home, path: Path, led: set[Path]) -> bool:
    machines = any(path.is_relative_to(place) for place in MACHINE)
    is_led_to = any(place in led for place in (database_of(path), *path.parents))
    return not machines and is_led_to and _owner(path) == home.path.stat().st_uid


def _owner(path: Path) -> int | None:
    """The owner of a file, or of the nearest existing folder above it."""
    try:
        state = snapshot(path)
        if state.kind != "absent":
            return state.uid
        return os.stat(next(place for place in path.parents if place.exists())).st_uid
    except (OSError, CouldNotLook):
        return None


def rebuild(backup: Backup, entry: BackupEntry, new: Path) -> None:
    """Create the file or symlink of an entry, with owner, mode, attributes and times."""
    if entry.kind == "symlink":
        disk.make_symlink(entry.target or "", new)
    else:
        with disk.new_file(new) as fd:
            digest = write_content(backup, entry, fd)
        if digest != entry.sha256:
            disk.remove(new)
            raise Trouble(
                "the copy of {file} in backup {id} is damaged", file=entry.path, id=backup.id
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
    try:
        return blocks.copy(copy, target, entry.sha256)
    except CouldNotLook:
        return ""


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
