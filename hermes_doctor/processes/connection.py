"""Define the TCP connection of a process as a value."""

from __future__ import annotations

from hermes_doctor.lazy import NamedTuple

HostPort = tuple[str, int]


class Connection(NamedTuple):
    """One TCP connection or listening socket of a process."""

    local: HostPort
    remote: HostPort | None
    """None for a listening socket."""
    state: str
    """ESTABLISHED, CLOSE_WAIT, SYN_SENT, LISTEN and so on."""
    unsent: int = 0
    """Bytes that the other side has not acknowledged."""
    unread: int = 0
    """Bytes that the process has not read; for a listening socket, connections not accepted."""
    tries: int = 0
    """How often the kernel has retransmitted the oldest unacknowledged bytes."""
    silent: float | None = None
    """Seconds, at least, since anything came from the other side; None if that is unknown."""
    quiet: float | None = None
    """Seconds since data came; an acknowledgement alone does not count."""
    inode: int = 0
