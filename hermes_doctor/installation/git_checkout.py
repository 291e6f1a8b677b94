"""Find stashes, merges and conflicts that an update left in a git checkout, without running git."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, read, read_tail

AUTOSTASH = b"hermes-update-autostash"
_MIDDLE = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_INDEX = 64 * MEGABYTE
_ENTRY = 62
"""The bytes of an index entry before its name."""


class Leftovers(NamedTuple):
    """What an unfinished update left in a checkout."""

    stashes: int
    """The number of stashes that an update made and did not apply again."""
    unfinished_operation: str | None
    """The operation that git has not finished, such as a merge."""
    unmerged: int
    """The number of files with a conflict in the index; counted in a deep check run only."""


def find_leftovers(checkout: Path, *, deep: bool) -> Leftovers:
    """Find what an unfinished update left in a checkout."""
    folder = _folder(checkout)
    if folder is None:
        return Leftovers(0, None, 0)
    try:
        log = read_tail(folder / "logs" / "refs" / "stash", MEGABYTE)[0]
    except (FileNotFoundError, CouldNotLook):
        log = b""
    stashes = sum(AUTOSTASH in line for line in log.split(b"\n"))
    middle = next((what for name, what in _MIDDLE.items() if os.path.lexists(folder / name)), None)
    return Leftovers(stashes, middle, _unmerged(folder / "index") if deep else 0)


def _folder(checkout: Path) -> Path | None:
    """Return git's folder: `.git`, or the folder that the file `.git` names."""
    place = checkout / ".git"
    if os.path.isdir(place):
        return place
    try:
        text = read(place, 4096)[0].decode("utf-8", "replace").strip()
    except (FileNotFoundError, CouldNotLook):
        return None
    return checkout / text.removeprefix("gitdir: ") if text.startswith("gitdir: ") else None


def _unmerged(index: Path) -> int:
    """Count the files with several versions in an index of format 2 or 3."""
    try:
        data, _ = read(index, _INDEX)
        magic, version, count = struct.unpack(">4sII", data[:12])
    except (FileNotFoundError, CouldNotLook, struct.error):
        return 0
    if magic != b"DIRC" or version not in (2, 3):
        return 0
    names: set[bytes] = set()
    at = 12
    for _ in range(count):
        if at + _ENTRY > len(data):
            break
        (flags,) = struct.unpack(">H", data[at + 60 : at + 62])
        begin = at + (_ENTRY + 2 if flags & 0x4000 else _ENTRY)
        end = data.find(b"\0", begin)
        if end < 0:
            break
        if flags & 0x3000:
            names.add(data[begin:end])
        at += (end - at + 8) // 8 * 8
    return len(names)
