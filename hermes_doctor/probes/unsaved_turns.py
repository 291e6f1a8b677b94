"""Find messages that Hermes 0.19.1 and later kept in files because it could not save them.

`pending_messages/*.json` has messages that the next good start adds to state.db; then the file is
deleted. `sessions/ID.jsonl` has messages of a process whose state.db was replaced or damaged;
Hermes never adds them. `state.db.retired-wal-TIME-PID/` has the write-ahead log that such a process
had open. Only names, sizes and times are read, and the kind of a pending file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, list_folder, read, snapshot

PENDING, RETIRED, MANIFEST = "pending_messages", ".retired-wal-", "manifest.json"
HISTORY = "shutdown-with-unpersisted-agent-history"
"""The reason in a pending file that Hermes does not add to state.db by itself."""
MOST = 200


class KeptFile(NamedTuple):
    """A file or folder with data that may be missing in state.db."""

    path: Path
    at: datetime
    by_hand: bool = False
    """Hermes does not add it to state.db by itself."""


class UnsavedTurns(NamedTuple):
    """All of them, oldest first."""

    pending: tuple[KeptFile, ...]
    diverted: tuple[KeptFile, ...]
    """Transcripts in sessions/ that were written at or after the first log that was set aside."""
    retired: tuple[KeptFile, ...]


def find(home: Home) -> UnsavedTurns:
    """List the files of this home."""
    retired = sorted(_retired(home), key=lambda one: one.at)
    pending = sorted(_pending(home / PENDING), key=lambda one: one.at)
    first = min((one.at for one in (*retired, *pending)), default=None)
    diverted = sorted(_diverted(home, first), key=lambda one: one.at) if first else []
    return UnsavedTurns(tuple(pending), tuple(diverted), tuple(retired))


def _pending(folder: Path) -> Iterator[KeptFile]:
    names = [name for name in list_folder(folder) if name.endswith(".json")]
    for name in names[:MOST]:
        seen = snapshot(folder / name)
        if seen.kind == "file" and seen.size:
            yield KeptFile(folder / name, _time(seen.mtime_ns), _reason(folder / name) == HISTORY)


def _reason(path: Path) -> str | None:
    try:
        said = json.loads(read(path, MEGABYTE)[0])
    except (FileNotFoundError, CouldNotLook, ValueError, RecursionError):
        return None
    found = said.get("reason") if isinstance(said, dict) else None
    return found if isinstance(found, str) else None


def _retired(home: Home) -> Iterator[KeptFile]:
    names = [name for name in list_folder(home.path) if name.startswith("state.db" + RETIRED)]
    for name in names[:MOST]:
        seen = snapshot(home / name)
        if seen.kind == "directory":
            yield KeptFile(home / name, _time(seen.mtime_ns), by_hand=True)


def _diverted(home: Home, first: datetime) -> Iterator[KeptFile]:
    """Releases before 0.15 wrote such files for every session; those are older."""
    names = [name for name in list_folder(home / "sessions") if name.endswith(".jsonl")]
    for name in names[-MOST:]:
        seen = snapshot(home / "sessions" / name)
        if seen.kind == "file" and seen.size and (at := _time(seen.mtime_ns)) >= first:
            yield KeptFile(home / "sessions" / name, at, by_hand=True)


def _time(ns: int) -> datetime:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
