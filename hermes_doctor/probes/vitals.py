"""One process as the kernel sees it: what it does, what it has open, what it may use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple


class Vitals(NamedTuple):
    """One process; what the rights did not suffice for is None."""

    pid: int
    doing: str
    """The kernel's letter: R, S, D, T for stopped, Z for dead but not buried."""
    started_at: datetime
    uid: int
    parents: tuple[tuple[int, str], ...]
    """Its parent, grandparent and so on up to process 1, with their names."""
    files: int | None
    """Open descriptors."""
    files_limit: int | None
    kinds: Mapping[str, int] | None
    """Open descriptors by what they lead to: a database's name, `socket`, `pipe`, and so on."""
    deleted: tuple[str, ...] | None
    """Files that it has open or mapped although they are no longer in their place."""
    memory: int
    memory_limit: int | None
    """The cgroup's, where it has one."""
    environment: Mapping[str, str] | None
    """What it was started with. Holds secrets: never shown, only names are."""
