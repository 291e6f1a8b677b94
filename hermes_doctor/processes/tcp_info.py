"""Ask the Linux kernel how long each TCP connection has been silent.

The table in /proc does not say when data came in last, so a connection that has been dead for hours
looks alive there. The netlink interface `sock_diag` does say it. It needs no privileges, and it
answers for our own network namespace only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.processes.connection import Connection

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST, _ERROR = 1, 2
_INFO = 2
"""The attribute that holds the kernel's `tcp_info`."""
_LAST_DATA_RECV, _LAST_ACK_RECV = 52, 56
"""Offsets in `tcp_info` of the milliseconds since the last data and the last acknowledgement."""
_MOST = 500
"""The most connections that are queried."""


def ask(pid: int, connections: Iterable[Connection]) -> dict[int, tuple[float, float]]:
    """Return by inode the seconds since anything came from the other side, and since data came."""
    family = getattr(socket, "AF_NETLINK", None)
    wanted = list(connections)[:_MOST]
    if family is None or not wanted or not _same_network(pid):
        return {}
    found = {}
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_RAW, _SOCK_DIAG) as link:
        link.settimeout(0.5)
        for one in wanted:
            link.sendto(_request(one), (0, 0))
            answer = _times(link.recv(8192))
            if answer is not None:
                found[one.inode] = answer
    return found


def _same_network(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
    except PermissionError:
        from hermes_doctor.processes import seen_by_root

        seen = (seen_by_root.process(pid) or {}).get("namespaces", {}).get("net")
        return bool(seen) and seen == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _request(one: Connection) -> bytes:
    """Build the request for one connection."""
    assert one.remote is not None
    family = socket.AF_INET6 if ":" in one.local[0] else socket.AF_INET
    ends = struct.pack("!HH", one.local[1], one.remote[1])
    ends += b"".join(
        socket.inet_pton(family, host).ljust(16, b"\0") for host in (one.local[0], one.remote[0])
    )
    body = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0xFFFFFFFF)
    body += ends + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    return struct.pack("=IHHII", 16 + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _times(answer: bytes) -> tuple[float, float] | None:
    """Parse the two times from an answer; None when the connection is gone."""
    if len(answer) < 16 + 72 or struct.unpack_from("=H", answer, 4)[0] == _ERROR:
        return None
    length = min(struct.unpack_from("=I", answer)[0], len(answer))
    at = 16 + 72
    while at + 4 <= length:
        size, kind = struct.unpack_from("=HH", answer, at)
        if size < 4:
            return None
        if kind == _INFO and size >= 4 + _LAST_ACK_RECV + 4:
            (data,) = struct.unpack_from("=I", answer, at + 4 + _LAST_DATA_RECV)
            (ack,) = struct.unpack_from("=I", answer, at + 4 + _LAST_ACK_RECV)
            return min(data, ack) / 1000, data / 1000
        at += (size + 3) & ~3
    return None
