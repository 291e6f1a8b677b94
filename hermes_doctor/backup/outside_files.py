"""Files outside a home that a symlink of it leads to: saved with it, and when they come back.

A manifest may have been written by anybody: an archive is encrypted to a key that is public. And a
symlink may lead to what is the machine's or another user's. So what lies outside comes back only
where the home of today leads there too and where it is its owner's; or where somebody names it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from hermes_doctor.backup.entry import Entry
from hermes_doctor.home import Home, main_of
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import snapshot

_NAMES = ("bin", "boot", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr")
MACHINE = tuple(Path("/", name) for name in (*_NAMES, "System", "Library"))
"""What is the machine's, even where root owns the home."""


def coming_back(
    home: Home, entries: Sequence[Entry], known: Sequence[Entry], named: Collection[str] = ()
) -> tuple[list[Entry], list[str]]:
    """Which of the entries come back, and the paths of those that are left as they are.

    `known` are all entries of the backup, the symlinks among them; `named` comes back anyway.
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


def _led(home: Home, known: Sequence[Entry]) -> set[Path]:
    """Where the symlinks of the backup that are still there lead to."""
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
    return any(one in led for one in (main_of(path), *path.parents))


def _owner(path: Path) -> int | None:
    """Whose a file is, or the folder that it would be in."""
    try:
        taken = snapshot(path)
        if taken.kind != "absent":
            return taken.uid
        return os.stat(next(place for place in path.parents if place.exists())).st_uid
    except (OSError, CouldNotLook):
        return None
