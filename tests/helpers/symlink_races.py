"""Swap a folder of a home for a symlink while root works on it, as its owner could.

The command runs in forks of a warm process, as in `tests.helpers.crash_server`. Right before the
N-th call that changes the disk, a folder of the home is moved away and replaced by a symlink to
elsewhere, as its owner could do at any moment. `python -m tests.helpers.symlink_races` is the warm
process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers import crash_server, warm_server
from tests.helpers.crash_server import Cut

SWAP = "swap:"
MOVED = ".moved"


def swap(folder: Path, elsewhere: Path, at: int) -> Cut:
    """Replace the folder by a symlink right before this call."""
    return Cut(at, f"{SWAP}{folder}:{elsewhere}")


_accident = crash_server._do


def _do(how: str, real: Callable[..., Any], args: tuple[Any, ...], path: str) -> None:
    if not how.startswith(SWAP):
        _accident(how, real, args, path)
        return
    folder, _, elsewhere = how.removeprefix(SWAP).partition(":")
    if os.path.isdir(folder) and not os.path.islink(folder):
        _RENAME(folder, folder + MOVED)
        _SYMLINK(elsewhere, folder)


_RENAME, _SYMLINK = os.rename, os.symlink
"""The original functions, which are not counted."""

if __name__ == "__main__":
    crash_server._do = _do
    warm_server.serve(crash_server.sabotage)
