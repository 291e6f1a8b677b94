"""List the TCP connections of one process from the kernel's table.

On Linux the descriptors of the process give the inodes of its sockets, and the table of its network
namespace (`/proc/PID/net/tcp`, for a container that of the container) describes each of them. The
cost does not depend on the number of other processes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes.connection import Connection, HostPort

_STATES = {
    "01": "ESTABLISHED",
    "02": "SYN_SENT",
    "03": "SYN_RECV",
    "04": "FIN_WAIT1",
    "05": "FIN_WAIT2",
    "06": "TIME_WAIT",
    "07": "CLOSE",
    "08": "CLOSE_WAIT",
    "09": "LAST_ACK",
    "0A": "LISTEN",
    "0B": "CLOSING",
    "0C": "SYN_RECV",
}
_RETRANSMITS = "01"
"""The kernel's timer for sending again what was not acknowledged."""
LARGEST = 64 * 1024 * 1024
"""The most bytes that are read of a table; some 400,000 sockets."""


def read_table(pid: int) -> bytes:
    """Read the kernel's rows of all TCP sockets in the network namespace of a process.

    Connections that the process opens later are not among them.
    """
    return b"\n".join(
        _read(f"/proc/{pid}/net/{name}").partition(b"\n")[2] for name in ("tcp", "tcp6")
    )


def of(pid: int, read: Callable[[int], bytes] = read_table) -> list[Connection]:
    """Return every TCP connection of a process, with its listening sockets."""
    if not os.path.isdir("/proc/self/net"):
        return _by_psutil(pid)
    own = socket_inodes(pid)
    return _timed(pid, _rows(read(pid), own)) if own else []


def all_listeners(pid: int, read: Callable[[int], bytes] = read_table) -> list[Connection]:
    """Return all listening sockets in the network namespace of a process, also of others."""
    if not os.path.isdir("/proc/self/net"):
        return _by_psutil(None)
    return [one for one in _rows(read(pid), None) if one.state == "LISTEN"]


def process_with_socket(inode: int) -> int | None:
    """Return the process that has a socket open, as far as we may see.

    It searches all processes, so it is used only for a socket that blocks a port.
    """
    from hermes_doctor.processes.gateway_processes import all_pids
    from hermes_doctor.system import root_parent

    if root_parent.is_separate():
        found: int | None = root_parent.ask_root("process_with_socket", inode)
        return found
    for pid in all_pids():
        try:
            if inode in socket_inodes(pid):
                return pid
        except CouldNotLook:
            continue
    return None


def socket_inodes(pid: int) -> set[int]:
    """Return the inodes of the sockets among the descriptors of a process."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except PermissionError:
        return _shown_by_root(pid)
    except OSError:
        raise CouldNotLook(text("process {pid} has just stopped", pid=pid)) from None
    found = set()
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except PermissionError:
            return _shown_by_root(pid)
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(int(target[8:-1]))
    return found


def _shown_by_root(pid: int) -> set[int]:
    """Return the inodes that root shows of a gateway's sockets; CouldNotLook if it shows none."""
    from hermes_doctor.processes import seen_by_root

    seen = seen_by_root.process(pid)
    if seen is None or seen["environ"] is None:
        raise CouldNotLook(
            text(
                "you may not see the connections of process {pid}; try it as its user or with sudo",
                pid=pid,
            )
        )
    targets = [target for _, target, *_ in seen["files"]]
    return {int(one[8:-1]) for one in targets if one.startswith("socket:[")}


def _rows(table: bytes, wanted: set[int] | None) -> list[Connection]:
    """Return the rows of the kernel's table with some inodes, or all that listen if None.

    A connection in TIME_WAIT belongs to no process any more. It is included if it has the same
    remote address as one of the wanted connections.
    """
    found = []
    ended = []
    places = set()
    marks = None if wanted is None else {str(inode).encode() for inode in wanted}
    for line in table.splitlines():
        fields = line.split(None, 10)
        if len(fields) < 10:
            continue
        if fields[3] == b"0A" if marks is None else fields[9] in marks:
            found.append(fields)
            places.add(fields[2])
        elif fields[3] == b"06":
            ended.append(fields)
    found += [fields for fields in ended if marks is not None and fields[2] in places]
    return [parse_row([field.decode("ascii") for field in fields]) for fields in found]


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""  # a kernel without IPv6
    except OSError as error:
        raise CouldNotLook(
            text("{path}: {reason}", path=path, reason=os.strerror(error.errno or 0).lower())
        ) from error
    parts: list[bytes] = []
    total = 0
    try:
        while total < LARGEST and (part := os.read(fd, 1024 * 1024)):
            parts.append(part)
            total += len(part)
    except OSError as error:
        raise CouldNotLook(
            text("{path}: {reason}", path=path, reason=os.strerror(error.errno or 0).lower())
        ) from error
    finally:
        os.close(fd)
    return b"".join(parts)


def parse_row(fields: Sequence[str]) -> Connection:
    """Parse one row of the table, already split into its fields."""
    state = _STATES.get(fields[3].upper(), fields[3])
    unsent, _, unread = fields[4].partition(":")
    timer, _, left = fields[5].partition(":")
    tries = int(fields[6], 16) if timer == _RETRANSMITS else 0
    return Connection(
        local=parse_address(fields[1]),
        remote=None if state == "LISTEN" else parse_address(fields[2]),
        state=state,
        unsent=int(unsent, 16),
        unread=int(unread, 16),
        tries=tries,
        silent=_since_sent(tries, int(left, 16), fields[10]) if tries else None,
        inode=int(fields[9]),
    )


def _since_sent(tries: int, left: int, rest: str) -> float | None:
    """Compute from the kernel's timer for how many seconds it has retransmitted the same bytes.

    The kernel doubles the wait before each try, up to two minutes; `left` is the rest of this one.
    """
    try:
        wait = int(rest.split()[2])
    except (IndexError, ValueError):
        return None
    ticks = max(0.0, 2 * wait - wait / (1 << min(tries, 30)) - left)
    return ticks / os.sysconf("SC_CLK_TCK")


def parse_address(text: str) -> HostPort:
    """Parse an address of the table, which is written as 32-bit words in native byte order."""
    import socket  # slow to load, and not needed when no gateway runs

    number, _, port = text.partition(":")
    words = [number[n : n + 8] for n in range(0, len(number), 8)]
    data = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    if len(data) == 4:
        return socket.inet_ntop(socket.AF_INET, data), int(port, 16)
    return unmap_ipv4(socket.inet_ntop(socket.AF_INET6, data)), int(port, 16)


def unmap_ipv4(text: str) -> str:
    """Return the IPv4 address of an IPv4-mapped IPv6 address; any other as it is."""
    return text[7:] if text.startswith("::ffff:") and "." in text else text


def _timed(pid: int, found: list[Connection]) -> list[Connection]:
    """Add to each connection how long it has been silent, where the kernel reports that."""
    from hermes_doctor.processes import tcp_info

    known = tcp_info.ask(pid, [one for one in found if one.state == "ESTABLISHED"])
    return [
        one._replace(silent=known[one.inode][0], quiet=known[one.inode][1])
        if one.inode in known
        else one
        for one in found
    ]


def _by_psutil(pid: int | None) -> list[Connection]:
    """List connections without /proc: of one process, or all listening sockets if pid is None."""
    import psutil

    rows: Sequence[Any]
    try:
        if pid is None:
            rows = psutil.net_connections(kind="tcp")
        else:
            process = psutil.Process(pid)
            ask = getattr(process, "net_connections", None) or process.connections
            rows = ask(kind="tcp")
    except psutil.NoSuchProcess:
        raise CouldNotLook(text("process {pid} has just stopped", pid=pid)) from None
    except (psutil.AccessDenied, OSError):
        whose = "of this machine" if pid is None else f"of process {pid}"
        raise CouldNotLook(
            text("you may not see the connections {whose}; run this with sudo", whose=whose)
        ) from None
    found = [
        Connection(
            local=(unmap_ipv4(row.laddr[0]), row.laddr[1]),
            remote=(unmap_ipv4(row.raddr[0]), row.raddr[1]) if row.raddr else None,
            state=row.status,
        )
        for row in rows
        if row.laddr
    ]
    return [one for one in found if pid is not None or one.state == "LISTEN"]
