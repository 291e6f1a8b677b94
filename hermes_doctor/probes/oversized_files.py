"""Measure what grows in a home: logs, and the requests that Hermes dumps on failures."""

from __future__ import annotations

import os
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import folder_entries, reason, snapshot

MOST = 50_000
"""The maximum number of entries read from one folder."""
MOST_SESSIONS = 100_000
"""The maximum number of session files whose names are read."""
DUMP = "request_dump_"
WEIGHED = 4_000
"""The number of dumps that are measured; the total is extrapolated from them."""


class LogFile(NamedTuple):
    """A log file."""

    path: Path
    size: int
    modified: datetime


class Dumps(NamedTuple):
    """The number and size of a home's dumped requests."""

    number: int
    size: int
    """The total size, extrapolated if there are very many."""
    newest: datetime | None
    more: bool
    """Whether there are more than were counted."""


def logs(home: Home) -> list[LogFile]:
    """Return all log files, largest first."""
    folder = home / "logs"
    places = [folder, folder / "gateways"]
    places += [folder / "gateways" / entry.name for entry in _entries(folder / "gateways")]
    found = []
    for place in places:
        for entry in _entries(place):
            st = _stat(entry)
            if st is not None:
                modified = datetime.fromtimestamp(st.st_mtime, UTC)
                found.append(LogFile(place / entry.name, st.st_size, modified))
    return sorted(found, key=lambda one: one.size, reverse=True)


def dumps(home: Home, names: Sequence[str]) -> Dumps:
    """Count the dumped requests and add up their sizes; `names` are those of the session files."""
    found = names[bisect_left(names, DUMP) : bisect_left(names, DUMP + chr(sys.maxunicode))]
    weighed = total = 0
    newest = 0.0
    for name in found:
        st = snapshot(home / "sessions" / name)
        if st.kind == "file":
            weighed += 1
            total += st.size
            newest = max(newest, st.mtime_ns / 1e9)
        if weighed >= WEIGHED:
            break
    size = total * len(found) // weighed if weighed else 0
    last = datetime.fromtimestamp(newest, UTC) if newest else None
    return Dumps(len(found), size, last, len(names) > MOST_SESSIONS)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        yield from folder_entries(folder, MOST)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise CouldNotLook(reason(error, folder)) from error


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the stat of a regular file; None for links, folders and deleted files."""
    try:
        return entry.stat(follow_symlinks=False) if entry.is_file(follow_symlinks=False) else None
    except OSError:
        return None
