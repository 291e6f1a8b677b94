"""A backup tried out: everything restored into a scratch folder, every database examined there.

Nothing of the living home is opened. The scratch folder lies in the vault, where there is room for
what is restored, under the name of a backup that was not finished: should we be killed, the next
command removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.backup import entry_content
from hermes_doctor.backup.entry import Entry
from hermes_doctor.backup.manifest import Backup
from hermes_doctor.backup.selection import STORES, matches
from hermes_doctor.backup.vault import BEGUN, PARTIAL, Progress, Vault
from hermes_doctor.home import is_database, main_of
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.errors import name_of
from hermes_doctor.system import disk, sparse_files
from hermes_doctor.system.files import MEGABYTE, read
from hermes_doctor.system.signals import uninterrupted
from hermes_doctor.system.workers import with_rights_of

LIMIT = 64 * MEGABYTE
OTHER = ("skills", "memories", "sessions")
"""Stores whose files are their owner's own affair, whatever they are called."""


def tried(vault: Vault, backup: Backup, progress: Progress | None = None) -> list[str]:
    """Everything that is wrong with what a backup gives back."""
    groups = _groups(backup)
    vault.room(max((sum(_room(backup, one) for one in group) for group in groups), default=0))
    name = vault.next_id() + PARTIAL
    scratch = vault.root / name
    disk.make_folder(scratch)
    try:
        home = str(vault.home.path).encode("utf-8", "surrogateescape")
        disk.save(scratch / BEGUN, home)
        return [text for group in groups for text in _tried(backup, group, scratch, progress)]
    finally:
        with uninterrupted(), contextlib.suppress(OSError):
            vault.discard(name)


def _room(backup: Backup, entry: Entry) -> int:
    """Bytes that a file takes when it is restored; of a sparse one those that are not in holes."""
    try:
        return (
            entry.size if entry.blocks else sparse_files.allocated(os.lstat(backup.copy_of(entry)))
        )
    except OSError:
        return entry.size


def _groups(backup: Backup) -> list[list[Entry]]:
    """Each database with its sidecars, each other file alone."""
    groups: dict[str, list[Entry]] = {}
    for entry in backup.entries:
        if entry.kind == "file":
            path = Path(entry.path)
            key = str(main_of(path)) if is_database(path) else entry.path
            groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _tried(
    backup: Backup, group: list[Entry], scratch: Path, progress: Progress | None
) -> Iterator[str]:
    """One group restored, looked at, and removed again."""
    places = {entry.path: _place(scratch, entry.path) for entry in group}
    try:
        for entry in group:
            if wrong := _restored(backup, entry, places[entry.path]):
                yield f"{entry.path}: {wrong}"
                return
            if progress:
                progress(entry.size)
        first = group[0].path
        main = str(main_of(Path(first))) if is_database(Path(first)) else first
        if is_database(Path(main)) and main in places:
            for entry in group:  # SQLite makes it anew from the log
                if entry.path.endswith("-shm"):
                    disk.remove(places[entry.path])
            verdict = with_rights_of(places[main], _examined)
            if verdict != "ok":
                yield f"{main}: it reads as it was saved, but SQLite finds it unsound ({verdict})"
        elif main in places and (wrong := _unreadable(main, places[main])):
            yield f"{main}: it reads as it was saved, but {wrong}"
    finally:
        for place in places.values():
            for end in ("", "-wal", "-shm", "-journal"):
                disk.remove(place.with_name(place.name + end))


def _place(scratch: Path, name: str) -> Path:
    """Where a file is tried out, a log beside its database; by a name of ours, since its own may
    be too long for what SQLite puts beside it, or taken."""
    path = Path(name)
    return scratch / f"tried{path.name.removeprefix(main_of(path).name)}"


def _restored(backup: Backup, entry: Entry, place: Path) -> str | None:
    """Why a file cannot be had back, if it cannot."""
    try:
        with disk.fresh(place, lasting=False) as fd:
            found = entry_content.written(backup, entry, fd)
    except FileNotFoundError:
        return "the copy is missing"
    except CouldNotLook:
        return "the copy cannot be read"
    return None if found == entry.sha256 else "the copy is not what was saved"


def _examined(place: Path) -> str:
    """What SQLite says of every row and index of a database that is nobody's but ours."""
    try:
        with contextlib.closing(sqlite3.connect(place)) as database:
            rows = database.execute("PRAGMA integrity_check(1)").fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return name_of(error)
    return "ok" if rows == [("ok",)] else "integrity_check"


def _unreadable(name: str, place: Path) -> str | None:
    """Why Hermes could not read a store, if it could not; its text is never quoted."""
    stores = [globs for store, globs in STORES.items() if store not in OTHER]
    if not any(matches(name, glob) for globs in stores for glob in globs):
        return None
    try:
        data, _ = read(place, LIMIT)
        if name.endswith(".json"):
            json.loads(data)
        elif name.endswith(("config.yaml", "config.yml")):
            from hermes_doctor.settings.config_file import parse  # which nothing explodes in

            if parse(data)[1] is not None:
                return "it cannot be parsed"
    except CouldNotLook:
        return None  # no store of Hermes' is as large as that
    except Exception as error:  # noqa: BLE001 - a parser may meet anything
        return f"it cannot be parsed ({type(error).__name__})"
    return None
