"""Decide which backed-up files outside the home may be restored.

These are the targets of symlinks in the home. Anyone may have written the manifest, because an
archive is encrypted with a public key, and a symlink may lead to system files or to another user's.
So a file outside is restored only if a symlink of the current home leads there too and the home's
owner owns it, or if the operator names it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.home import Home, database_of
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import snapshot

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
    found = set()
    for entry in known:
        path = home.path / entry.path
        if entry.kind == "symlink" and path.is_symlink():
            try:
                found.add(path.resolve())
            except (OSError, RuntimeError, ValueError):
                continue  # a loop
    return found


def _is_the_homes(home: Home, path: Path, led: set[Path]) -> bool:
    machines = any(path.is_relative_to(place) for place in MACHINE)
    return not machines and _is_led_to(path, led) and _owner(path) == home.path.stat().st_uid


def _is_led_to(path: Path, led: set[Path]) -> bool:
    return any(one in led for one in (database_of(path), *path.parents))


def _owner(path: Path) -> int | None:
    """The owner of a file, or of the nearest existing folder above it."""
    try:
        taken = snapshot(path)
        if taken.kind != "absent":
            return taken.uid
        return os.stat(next(place for place in path.parents if place.exists())).st_uid
    except (OSError, CouldNotLook):
        return None
