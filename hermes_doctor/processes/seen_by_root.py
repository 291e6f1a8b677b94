"""What root shows of a process whose user hides it from the owner of the home."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hermes_doctor.model import CouldNotLook
from hermes_doctor.system import root_parent


def process(pid: int) -> dict[str, Any] | None:
    """Return what root shows of a process; None if it shows nothing, or if we are not separate."""
    return _ask(pid) if root_parent.is_separate() else None


@lru_cache(maxsize=4096)
def _ask(pid: int) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] | None = root_parent.ask_root("process", pid)
    except CouldNotLook:
        return None
    return found


def identity(pid: int, number: str) -> tuple[int, int] | None:
    """Return device and inode of a file that a process has open."""
    for name, _, dev, inode in (process(pid) or {}).get("files", ()):
        if name == number and inode >= 0:
            return dev, inode
    return None
