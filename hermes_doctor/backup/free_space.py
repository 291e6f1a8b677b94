"""Check whether a backup fits on the disk of its vault."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.backup.manifest import BackupSource
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.system.files import MEGABYTE, size, snapshot

MARGIN = 4 * MEGABYTE
"""Bytes that must stay free on a disk in addition to what is copied."""


def check_free_space(path: Path, needed: int) -> None:
    """Raise Trouble if fewer than `needed` bytes (and a margin) are free on the disk of `path`."""
    disk = os.statvfs(path)
    free = disk.f_frsize * disk.f_bavail  # without the blocks reserved for root
    if free < needed + MARGIN:
        raise Trouble(
            text(
                "The disk of {path} has {free} free, but {needed} are needed. Nothing "
                "was changed. Free some space, or use another disk: --vault DIR",
                path=path,
                free=size(free),
                needed=size(needed + MARGIN),
            )
        )


def total_size(sources: Iterable[BackupSource]) -> int:
    """The bytes of all sources, with the logs of live databases, which go into their copies."""
    size = sum(source.expect.size for source in sources if source.content)
    for source in sources:
        if source.live:
            size += snapshot(source.path.with_name(source.path.name + "-wal")).size
    return size
