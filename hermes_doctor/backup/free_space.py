"""Whether a backup fits on the disk of its vault."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.backup.manifest import Source
from hermes_doctor.model import Trouble
from hermes_doctor.system.files import MEGABYTE, size, snapshot

MARGIN = 4 * MEGABYTE
"""Room that must be left on a disk beside what is copied."""


def check_room(place: Path, wanted: int) -> None:
    """Refuse when less than `wanted` bytes (and a margin) are free where `place` lies."""
    disk = os.statvfs(place)
    free = disk.f_frsize * disk.f_bavail  # what is reserved for root is not ours to fill
    if free < wanted + MARGIN:
        raise Trouble(
            f"The disk of {place} has {size(free)} free, and {size(wanted + MARGIN)} are needed. "
            f"Nothing was changed. Make room, or put the backup elsewhere: --vault DIR"
        )


def total(sources: Iterable[Source]) -> int:
    """Bytes of all sources; a live database's log is merged into its copy."""
    size = sum(source.expect.size for source in sources if source.content)
    for source in sources:
        if source.live:
            size += snapshot(source.path.with_name(source.path.name + "-wal")).size
    return size
