"""Measure the free space of a disk: bytes and inodes."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, reason


class Space(NamedTuple):
    """The size and free space of a file system, for a user who is not root."""

    total: int
    free: int
    inodes: int
    """0 where the file system has no fixed number of them."""
    inodes_free: int
    read_only: bool


def of(folder: Path) -> Space:
    """Measure the disk of a folder; blocks that are reserved for root do not count as free."""
    if not hasattr(os, "statvfs"):
        import shutil

        usage = shutil.disk_usage(folder)
        return Space(usage.total, usage.free, 0, 0, read_only=False)
    try:
        told = os.statvfs(folder)
    except OSError as error:
        raise CouldNotLook(reason(error, folder)) from error
    return Space(
        total=told.f_blocks * told.f_frsize,
        free=told.f_bavail * told.f_frsize,
        inodes=told.f_files,
        inodes_free=told.f_favail,
        read_only=bool(told.f_flag & os.ST_RDONLY),
    )


def lacks_room(room: Space) -> bool:
    """Whether Hermes cannot save messages: less than 16 MB, or less than 16 inodes, is free."""
    return room.free < 16 * MEGABYTE or (room.inodes > 0 and room.inodes_free < 16)


def is_full(room: Space) -> bool:
    """Whether the disk is practically full: less than 1 MB, or less than 2 inodes, is free."""
    return room.free < MEGABYTE or (room.inodes > 0 and room.inodes_free < 2)
