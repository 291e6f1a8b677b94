"""One network connection of a process."""

from __future__ import annotations

from hermes_doctor.lazy import NamedTuple

Address = tuple[str, int]


class Connection(NamedTuple):
    """One TCP connection."""

    local: Address
    remote: Address | None
    """None for one that listens."""
    state: str
    """ESTABLISHED, CLOSE_WAIT, SYN_SENT, LISTEN and so on."""
    unsent: int = 0
    """Bytes that the other side has not acknowledged."""
    unread: int = 0
    """Bytes, or waiting callers of one that listens, that the process has not taken."""
    tries: int = 0
    """How often the kernel has sent the oldest of the unacknowledged bytes again."""
    silent: float | None = None
    """Seconds since anything came from the other side, at least; None where there is no telling."""
    quiet: float | None = None
    """Seconds since data came, which a mere acknowledgement is not."""
    inode: int = 0
