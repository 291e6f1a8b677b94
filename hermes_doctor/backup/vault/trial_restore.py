"""Test a backup: restore everything into a scratch folder and check every database there.

Nothing in the live home is opened. The scratch folder is in the vault, where there is space for it,
and has the name of an unfinished backup: if we are killed, the next command removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.backup.vault import restore_files
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.selection import STORES, matches
from hermes_doctor.backup.vault.vault import Progress, Vault
from hermes_doctor.core.home import database_of, is_database
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk, sparse_files
from hermes_doctor.core.system.files import MEGABYTE, read
from hermes_doctor.core.system.workers import run_as_owner
from hermes_doctor.sqlite.examine.soundness import integrity_errors, name_of

LIMIT = 64 * MEGABYTE
OTHER = ("skills", "memories", "sessions")
"""Stores whose files need not have the format that their names suggest."""


def try_restore(vault: Vault, backup: Backup, progress: Progress | None = None) -> list[str]:
    """Restore a backup for a test; return messages about everything that is wrong."""
    groups = _groups(backup)
    vault.room(max((sum(_room(backup, entry) for entry in group) for group in groups), default=0))
    with vault.unfinished(prepare=False) as scratch:
        return [text for group in groups for text in _tried(backup, group, scratch, progress)]


def _room(backup: Backup, entry: BackupEntry) -> int:
    """Bytes that a restored file takes; holes of a sparse file are not counted."""
    with contextlib.suppress(OSError):
        if not entry.blocks:
            return sparse_files.allocated_bytes(os.lstat(backup.copy_of(entry)))
    return entry.size


def _groups(backup: Backup) -> list[list[BackupEntry]]:
    """Group each database with its sidecars; every other file is alone."""
    groups: dict[str, list[BackupEntry]] = {}
    for entry in backup.entries:
        if entry.kind == "file":
            groups.setdefault(_main(entry.path), []).append(entry)
    return list(groups.values())


def _main(name: str) -> str:
    """The database that a file belongs to; any other file belongs to itself."""
    return str(database_of(Path(name))) if is_database(Path(name)) else name


def _tried(
    backup: Backup, group: list[BackupEntry], scratch: Path, progress: Progress | None
) -> Iterator[str]:
    """Restore one group, check it, and remove it again."""
    places = {entry.path: _place(scratch, entry.path) for entry in group}
    try:
        for entry in group:
            if wrong := _restored(backup, entry, places[entry.path]):
                yield f"{entry.path}: {wrong}"
                return
            if progress:
                progress(entry.size)
        main = _main(group[0].path)
        if is_database(Path(main)) and main in places:
            for entry in group:  # SQLite recreates it from the log
                if entry.path.endswith("-shm"):
                    disk.remove(places[entry.path])
            verdict = run_as_owner(places[main], _examined)
            if verdict != "ok":
                yield f"{main}: the copy is intact, but SQLite finds damage in it ({verdict})"
        elif main in places and (wrong := _unreadable(main, places[main])):
            yield f"{main}: the copy is intact, but {wrong}"
    finally:
        for place in places.values():
            for end in ("", "-wal", "-shm", "-journal"):
                disk.remove(place.with_name(place.name + end))


def _place(scratch: Path, name: str) -> Path:
    """The path for a test restore; a log is beside its database.

    It has a name of ours, because its own may be taken or too long for the files of SQLite.
    """
    path = Path(name)
    return scratch / f"tried{path.name.removeprefix(database_of(path).name)}"


def _restored(backup: Backup, entry: BackupEntry, place: Path) -> str | None:
    """Restore one file; return why that fails, or None."""
    try:
        with disk.new_file(place, durable=False) as fd:
            digest = restore_files.write_content(backup, entry, fd)
    except FileNotFoundError:
        return "the copy is missing"
    except CouldNotLook:
        return "the copy cannot be read"
    return None if digest == entry.sha256 else "the copy is damaged"


def _examined(place: Path) -> str:
    """Run SQLite's integrity check on a restored database."""
    try:
        with contextlib.closing(sqlite3.connect(place)) as database:
            errors = integrity_errors(database, 1)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return name_of(error)
    return "integrity_check" if errors else "ok"


def _unreadable(name: str, place: Path) -> str | None:
    """Why Hermes could not parse a store, or None; its content is never quoted."""
    stores = [globs for store, globs in STORES.items() if store not in OTHER]
    if not any(matches(name, glob) for globs in stores for glob in globs):
        return None
    try:
        data, _ = read(place, LIMIT)
        if name.endswith(".json"):
            json.loads(data)
        elif name.endswith(("config.yaml", "config.yml")):
            from hermes_doctor.hermes.settings.config_yaml import parse  # safe against hostile YAML

            if parse(data)[1] is not None:
                return "it could not be parsed"
    except CouldNotLook:
        return None  # stores of Hermes are smaller
    except Exception as error:  # noqa: BLE001 - a parser may meet anything
        return f"it could not be parsed ({type(error).__name__})"
    return None
