"""Where a process listens: the first rows of the kernel's table, which holds those first.

Reading stops at the first connection, so that thousands of them cost nothing.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator

from hermes_doctor.probes.sockets import Connection

_LISTEN = "0A"


def of(pid: int) -> list[Connection]:
    """The places where a process waits for callers; `unread` tells how many wait already."""
    inodes = _sockets(pid)
    return [
        Connection((_address(place), port), None, "LISTEN", unread=waiting)
        for name in ("tcp", "tcp6")
        for inode, place, port, waiting in _rows(f"/proc/{pid}/net/{name}")
        if inode in inodes
    ]


def _sockets(pid: int) -> set[str]:
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass
    return found


def _rows(path: str) -> Iterator[tuple[str, str, int, int]]:
    """Inode, address, port and waiting callers of all that listens."""
    try:
        with open(path) as table:
            next(table, None)
            for line in table:
                fields = line.split()
                if len(fields) < 10 or fields[3] != _LISTEN:
                    return
                place, _, port = fields[1].partition(":")
                yield fields[9], place, int(port, 16), int(fields[4].partition(":")[2], 16)
    except (OSError, ValueError):
        return


def _address(text: str) -> str:
    """An address as people write it; the kernel writes words in the machine's own byte order."""
    words = [bytes.fromhex(text[n : n + 8]) for n in range(0, len(text), 8)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    packed = b"".join(words)
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
