"""Read branch, commit, stashes, merges and conflicts of a git checkout, without running git."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read, read_tail
from hermes_doctor.hermes.installation.find import file_text

AUTOSTASH = b"hermes-update-autostash"
_MIDDLE = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_INDEX = 64 * MEGABYTE
_REVISION = pattern(r"[0-9a-f]{40,64}")
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
    folder = git_folder(checkout)
    try:
        log = read_tail(folder / "logs" / "refs" / "stash", MEGABYTE)[0]
    except (OSError, CouldNotLook):
        log = b""
    stashes = sum(AUTOSTASH in line for line in log.split(b"\n"))
    middle = next((what for name, what in _MIDDLE.items() if os.path.lexists(folder / name)), None)
    return Leftovers(stashes, middle, _unmerged(folder / "index") if deep else 0)


def git_folder(checkout: Path) -> Path:
    """Return git's folder of a checkout; in a linked worktree `.git` is a file that names it."""
    git = checkout / ".git"
    text = file_text(git)
    return checkout / text[8:].strip() if text.startswith("gitdir: ") else git


def branch_of(checkout: Path) -> str | None:
    """Return the branch that is checked out; None if HEAD is a commit."""
    head = file_text(git_folder(checkout) / "HEAD").strip()
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None


def revision_of(checkout: Path) -> str | None:
    """Return the commit of HEAD, read from git's files."""
    git = git_folder(checkout)
    head = file_text(git / "HEAD").strip()
    if not head.startswith("ref: "):
        return head if _REVISION.fullmatch(head) else None
    name = head[5:]
    shared = git / (file_text(git / "commondir").strip() or ".")  # worktrees share the branches
    commit = file_text(shared / name).strip()
    for line in file_text(shared / "packed-refs").splitlines() if not commit else ():
        revision, _, what = line.partition(" ")
        if what == name:
            commit = revision
    return commit if _REVISION.fullmatch(commit) else None


def _unmerged(index: Path) -> int:
    """Count the files with several versions in an index of format 2 or 3."""
    try:
        data, _ = read(index, _INDEX)
        magic, version, count = struct.unpack(">4sII", data[:12])
    except (OSError, CouldNotLook, struct.error):
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
