"""List the files of a home that may go when the disk is full, and what that would free."""

from __future__ import annotations

import os
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


def backups_size(vault: Path) -> tuple[int, int]:
    """Return how many backups a vault has, and the bytes that are only in one of them."""
    total = 0
    ids = [name for name in list_folder(vault) if name[:8].isdigit()]
    for id in ids:
        for folder, _, names in os.walk(vault / id):
            for name in names[:MOST]:
                try:
                    st = os.lstat(os.path.join(folder, name))
                except OSError:
                    continue
                total += st.st_size if st.st_nlink == 1 else 0
    return len(ids), total


def _old_dumps(home: Home) -> Iterator[RemovableFile]:
    folder = home / "sessions"
    names = [name for name in list_folder(folder, 100_000) if name.startswith(DUMP)]
    taken = [(folder / name, snapshot(folder / name)) for name in names[:MOST]]
    taken.sort(key=lambda one: one[1].mtime_ns)
    for path, seen in taken[: max(0, len(taken) - NEWEST_DUMPS)]:
        if seen.kind == "file":
            yield RemovableFile(path, seen.size)


def _old_caches(home: Home) -> Iterator[RemovableFile]:
    limit = (time.time() - _DAY) * 1e9
    for name in CACHES:
        if snapshot(home / name).kind != "directory":  # a link may lead anywhere
            continue
        for folder, _, names in os.walk(home / name):
            for file in names[:MOST]:
                seen = snapshot(Path(folder, file))
                if seen.kind == "file" and seen.mtime_ns < limit:
                    yield RemovableFile(Path(folder, file), seen.size)
