"""Create the folder of a vault, and check whether a backup fits on its disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.backup.vault.manifest import BackupSource
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk as disk_io
from hermes_doctor.core.system.files import MEGABYTE, size, snapshot

MARGIN = 4 * MEGABYTE
"""Bytes that must stay free on a disk in addition to what is copied."""


def create_folder(folder: Path, owner: int) -> None:
    """Create the private folder of a vault; raise Trouble if another user owns it."""
    try:
        disk_io.make_folder(folder)
        st = os.stat(folder)
    except OSError as error:
        raise Trouble(
            "Could not create the backup folder {folder} ({reason}). Nothing was changed. To "
            "use another folder: --vault DIR",
            folder=folder,
            reason=os.strerror(error.errno or 0).lower(),
        ) from None
    if st.st_uid not in (0, os.geteuid(), owner):
        raise Trouble(
            "The backup folder {folder} belongs to another user (uid {uid}). Nothing was "
            "changed. To use another folder: --vault DIR",
            folder=folder,
            uid=st.st_uid,
        )


def write_error(folder: Path, why: str) -> Trouble:
    """Make the error for a backup that could not be written."""
    return Trouble(
        "Could not write the backup to {folder} ({reason}). Nothing was changed. Free some "
        "space, or use another folder: --vault DIR",
        folder=folder,
        reason=why,
    )


def check_free_space(path: Path, needed: int) -> None:
    """Raise Trouble if fewer than `needed` bytes (and a margin) are free on the disk of `path`."""
    disk = os.statvfs(path)
    free = disk.f_frsize * disk.f_bavail  # without the blocks reserved for root
    if free < needed + MARGIN:
        raise Trouble(
            "The disk of {path} has {free} free, but {needed} are needed. Nothing "
            "was changed. Free some space, or use another disk: --vault DIR",
            path=path,
            free=size(free),
            needed=size(needed + MARGIN),
        )


def total_size(sources: Iterable[BackupSource]) -> int:
    """The bytes of all sources, with the logs of live databases, which go into their copies."""
    size = sum(source.expect.size for source in sources if source.content)
    for source in sources:
        if source.live:
            size += snapshot(source.path.with_name(source.path.name + "-wal")).size
    return size
