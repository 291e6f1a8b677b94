"""Read the freelist of a damaged database; rows on these pages were deleted."""

from __future__ import annotations

import struct

from hermes_doctor.sqlite.header import MAGIC
from hermes_doctor.sqlite.salvage.image import DamagedFile


def read(image: DamagedFile) -> tuple[bytearray, bool]:
    """A flag for each free page, and whether the list is complete.

    It is complete if it has as many pages as the header says. Only then is it proven that a page
    that is in no b-tree and not on the list has lost its parent.
    """
    free = bytearray(image.count + 1)
    first = image.page(1)
    trunk, claimed = struct.unpack_from(">2I", first, 32)
    sane = first[21:24] == b"\x40\x20\x20" or first[:16] == MAGIC
    found = 0
    most = (image.usable - 8) // 4
    while sane and 1 < trunk <= image.count and not free[trunk]:
        page = image.page(trunk)
        following, leaves = struct.unpack_from(">2I", page)
        if leaves > most:
            return free, False
        free[trunk] = 1
        found += 1
        for number in struct.unpack_from(f">{leaves}I", page, 8):
            if 1 < number <= image.count and not free[number]:
                free[number] = 1
                found += 1
        trunk = following
    return free, sane and found == claimed and trunk == 0
