"""List the files of a home that may go when the disk is full, and what that would free."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.probes.oversized_files import DUMP, MOST, LogFile
from hermes_doctor.system.files import MEGABYTE, list_folder, snapshot

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
    found = [
        RemovableFile(log.path, log.size, KEPT_OF_A_LOG)
        for log in logs
        if log.size > 2 * KEPT_OF_A_LOG
    ]
    found += [*_old_dumps(home), *_old_caches(home)]
    return sorted(found, key=lambda one: one.freed, reverse=True)


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
