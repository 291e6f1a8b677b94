"""Find what takes space in a home, and which files may go when the disk is full."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import (
    MEGABYTE,
    folder_entries,
    list_folder,
    moment,
    reason,
    snapshot,
)

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


def log_files(home: Home) -> list[LogFile]:
    """Return all log files, largest first."""
    folder = home / "logs"
    places = [folder, folder / "gateways"]
    places += [folder / "gateways" / entry.name for entry in _entries(folder / "gateways")]
    found = []
    for place in places:
        for entry in _entries(place):
            log = place / entry.name
            st = snapshot(log)
            if st.kind == "file":
                found.append(LogFile(log, st.size, moment(st.mtime_ns)))
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


KEPT_OF_A_LOG = MEGABYTE
"""Bytes at the end of each log that stay, because people and checks read them."""
NEWEST_DUMPS = 20
"""Number of newest request dumps that stay, because they show what the provider answers now."""
CACHES = ("cache", "image_cache", "audio_cache", "document_cache", "video_cache")
"""Folders with copies of what was received or made; Hermes does not need files of yesterday."""
_DAY = 86_400


class RemovableFile(NamedTuple):
    """A file that may be removed, or of which only the end is needed."""

    path: Path
    size: int
    keep: int = 0
    """Bytes at its end that stay."""

    @property
    def freed(self) -> int:
        """The bytes that become free."""
        return self.size - self.keep


def removable_files(home: Home, logs: list[LogFile]) -> list[RemovableFile]:
    """Return the files that may go, the one that frees most first."""
    files = [
        RemovableFile(log.path, log.size, KEPT_OF_A_LOG)
        for log in logs
        if log.size > 2 * KEPT_OF_A_LOG
    ]
    files += [*_old_dumps(home), *_old_caches(home)]
    return sorted(files, key=lambda one: one.freed, reverse=True)


class BackupsSize(NamedTuple):
    """What the backups in a vault take."""

    backups: int
    size: int
    """The bytes that are only in one of them."""
    more: bool
    """Whether there are more files than were measured."""


def backups_size(vault: Path) -> BackupsSize:
    """Measure the backups in a vault; at most `MOST` of its files and folders."""
    total, left = 0, MOST
    ids = [name for name in list_folder(vault) if name[:8].isdigit()]
    for id in ids:
        for entry in _below(vault / id, left):
            left -= 1
            with contextlib.suppress(OSError):
                st = entry.stat(follow_symlinks=False)
                total += st.st_size if stat.S_ISREG(st.st_mode) and st.st_nlink == 1 else 0
    return BackupsSize(len(ids), total, more=left <= 0)


def _below(top: Path, most: int) -> Iterator[os.DirEntry[str]]:
    """Yield at most this many files and folders below a folder; symlinks are not followed."""
    waiting = [os.fspath(top)]
    while waiting and most > 0:
        folder = waiting.pop()
        try:
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                continue
            with os.scandir(folder) as entries:
                for entry in itertools.islice(entries, most):
                    most -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    yield entry
        except OSError:  # we may not read it, or it was removed in the meantime
            continue


def _old_dumps(home: Home) -> Iterator[RemovableFile]:
    folder = home / "sessions"
    if snapshot(folder).kind != "directory":  # a link may lead anywhere
        return
    names = [name for name in list_folder(folder, 100_000) if name.startswith(DUMP)]
    taken = [(folder / name, snapshot(folder / name)) for name in names[:MOST]]
    taken.sort(key=lambda one: one[1].mtime_ns)
    for path, seen in taken[: max(0, len(taken) - NEWEST_DUMPS)]:
        if seen.kind == "file":
            yield RemovableFile(path, seen.size)


def _old_caches(home: Home) -> Iterator[RemovableFile]:
    limit = (time.time() - _DAY) * 1e9
    for name in CACHES:
        for entry in _below(home / name, MOST):
            seen = snapshot(entry.path)
            if seen.kind == "file" and seen.mtime_ns < limit:
                yield RemovableFile(Path(entry.path), seen.size)
