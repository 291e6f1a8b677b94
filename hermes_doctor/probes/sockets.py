"""The network connections of one process, out of the kernel's table."""

from __future__ import annotations

from typing import NamedTuple


class Connection(NamedTuple):
    """One TCP connection."""

    local: tuple[str, int]
    remote: tuple[str, int] | None
    """None for one that listens."""
    state: str
    """ESTABLISHED, CLOSE_WAIT, SYN_SENT, LISTEN and so on."""
    unsent: int = 0
    """Bytes that the other side has not acknowledged."""
    unread: int = 0
    """Bytes, or waiting callers of one that listens, that the process has not taken."""
