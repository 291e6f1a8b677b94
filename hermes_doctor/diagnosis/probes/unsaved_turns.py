"""Find messages that Hermes 0.19.1 and later kept in files because it could not save them.

`pending_messages/*.json` has messages that the next good start adds to state.db; then the file is
deleted. `sessions/ID.jsonl` has messages of a process whose state.db was replaced or damaged;
Hermes never adds them. `state.db.retired-wal-TIME-PID/` has the write-ahead log that such a process
had open. Only names, sizes and times are read, the kind of a
pending file, and the first line of a recent transcript.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import (
    MEGABYTE,
    list_folder,
    moment,
    read,
    snapshot,
    too_many,
)
from hermes_doctor.core.system.open_files import open_owned
from hermes_doctor.diagnosis.probes.large_files import MOST_SESSIONS

PENDING, RETIRED, MANIFEST = "pending_messages", ".retired-wal-", "manifest.json"
HISTORY = "shutdown-with-unpersisted-agent-history"
"""The reason in a pending file that Hermes does not add to state.db by itself."""
ROLES = frozenset({"user", "assistant", "tool"})
FILE, ALL = 8 * MEGABYTE, 64 * MEGABYTE
"""The largest file that is read, and the most of all together."""
MOST, MOST_NAMES = 200, 3000
"""How many files of each kind are compared; and how many transcripts are examined for that, the
last ones by name. Their names begin with the date: with 140 sessions a day, it is three weeks."""
DIVERTS = (0, 19)
"""Releases before 0.15 wrote a transcript for every session, those before this one none."""
RECENT = timedelta(days=7)
"""Without a pending file or a log that was set aside, older transcripts are not compared."""
_FIRST = 65_536


class Damaged(CouldNotLook):
    """Says that a file was read, but is not what Hermes writes."""


class KeptFile(NamedTuple):
    """A file or folder with data that may be missing in state.db."""

    path: Path
    at: datetime
    by_hand: bool = False
    """Hermes does not add it to state.db by itself."""
    doubt: str = ""
    """Why it is unknown whether Hermes adds it."""


class UnsavedTurns(NamedTuple):
    """All of them, oldest first."""

    pending: tuple[KeptFile, ...]
    diverted: tuple[KeptFile, ...]
    """Transcripts in sessions/ that were written at or after the first log that was set aside."""
    retired: tuple[KeptFile, ...]


def find(
    home: Home,
    release: tuple[int, ...] | None = None,
    session_names: Callable[[], Sequence[str]] = list,
) -> UnsavedTurns:
    """List the files of this home; `release` is the installed one, if that is known."""
    retired = sorted(_retired(home), key=lambda one: one.at)
    pending = sorted(_pending(home / PENDING), key=lambda one: one.at)
    first = min((file.at for file in (*retired, *pending)), default=None)
    diverted: list[KeptFile] = []
    if first or release is None or release >= DIVERTS:
        diverted = sorted(_diverted(home, first, session_names()), key=lambda one: one.at)
    return UnsavedTurns(tuple(pending), tuple(diverted), tuple(retired))


def _pending(folder: Path) -> Iterator[KeptFile]:
    names = [name for name in list_folder(folder) if name.endswith(".json")]
    left = ALL
    for name in names[:MOST]:
        seen = snapshot(folder / name)
        if seen.kind != "file" or not seen.size:
            continue
        path, at = folder / name, moment(seen.mtime_ns)
        try:
            said = load(path, min(FILE, left))
        except FileNotFoundError:
            continue
        except CouldNotLook as why:
            yield KeptFile(path, at, doubt=str(why))
        else:
            left = max(0, left - seen.size)
            yield KeptFile(path, at, by_hand=said.get("reason") == HISTORY)


def load(path: Path, limit: int) -> Mapping[str, Any]:
    """Read a pending file."""
    said = parse(path, read(path, limit, open_owned)[0])
    if not isinstance(said, dict):
        raise Damaged(text("{file}: does not contain messages", file=path.name))
    return said


def parse(path: Path, data: bytes) -> object:
    """Parse a file, or a line of it."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Damaged(text("{file}: the JSON in it is damaged", file=path.name)) from None


def _retired(home: Home) -> Iterator[KeptFile]:
    names = [name for name in list_folder(home.path) if name.startswith("state.db" + RETIRED)]
    for name in names[:MOST]:
        seen = snapshot(home / name)
        if seen.kind == "directory":
            yield KeptFile(home / name, moment(seen.mtime_ns), by_hand=True)


def _diverted(home: Home, first: datetime | None, names: Sequence[str]) -> list[KeptFile]:
    """The newest transcripts: those since the first other file, and recent ones with messages."""
    folder = home / "sessions"
    if len(names) > MOST_SESSIONS:
        raise too_many(folder, MOST_SESSIONS)
    recent = datetime.now(UTC) - RECENT
    since = min(first, recent) if first else recent
    found: list[tuple[int, str]] = []
    transcripts = (name for name in reversed(names) if name.endswith(".jsonl"))
    place, oldest = str(folder), since.timestamp()
    for name in itertools.islice(transcripts, MOST_NAMES):
        try:
            seen = os.lstat(f"{place}/{name}")  # a snapshot of each would take 15 ms more
        except OSError:
            continue
        if seen.st_mtime >= oldest and stat.S_ISREG(seen.st_mode) and seen.st_size:
            found.append((seen.st_mtime_ns, name))
    newest = [
        KeptFile(folder / name, moment(at), by_hand=True) for at, name in sorted(found)[-MOST:]
    ]
    return [file for file in newest if (first and file.at >= first) or _has_messages(file.path)]


def _has_messages(path: Path) -> bool:
    """Whether a transcript starts with a message; that of an ordinary session had a row about it.

    A line that is too long or damaged may be a message.
    """
    try:
        fd = open_owned(path)
    except (FileNotFoundError, CouldNotLook):
        return False
    try:
        start = os.read(fd, _FIRST)
    except OSError:
        return False
    finally:
        os.close(fd)
    try:
        said = json.loads(start.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return True
    return isinstance(said, dict) and said.get("role") in ROLES
