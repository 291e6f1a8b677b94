"""List the TCP connections and the listening sockets of one process from the kernel's table.

On Linux the descriptors of the process give the inodes of its sockets, and the table of its network
namespace (`/proc/PID/net/tcp`, for a container that of the container) describes each of them. The
cost does not depend on the number of other processes. The table has the listening sockets first, so
`listeners` stops at the first connection, and thousands of connections cost nothing.

The table does not say when data came in last, so a connection that has been dead for hours looks
alive there. The netlink interface `sock_diag` does say it. It needs no privileges, and it answers
for our own network namespace only.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook

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


def connections(pid: int, read: Callable[[int], bytes] = read_table) -> list[Connection]:
    """Return every TCP connection of a process, with its listening sockets."""
    if not os.path.isdir("/proc/self/net"):
        return _by_psutil(pid)
    own = socket_inodes(pid)
    return _timed(pid, _rows(read(pid), own)) if own else []


def all_listeners(pid: int, read: Callable[[int], bytes] = read_table) -> list[Connection]:
    """Return all listening sockets in the network namespace of a process, also of others."""
    if not os.path.isdir("/proc/self/net"):
        return _by_psutil(None)
    return [row for row in _rows(read(pid), None) if row.state == "LISTEN"]


def process_with_socket(inode: int) -> int | None:
    """Return the process that has a socket open, as far as we may see.

    It searches all processes, so it is used only for a socket that blocks a port.
    """
    from hermes_doctor.core.system import root_parent
    from hermes_doctor.hermes.processes.gateway_processes import all_pids

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
        raise CouldNotLook("process {pid} has just stopped", pid=pid) from None
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
    from hermes_doctor.core.system import open_files

    seen = open_files.process_by_root(pid)
    if seen is None or seen["environ"] is None:
        raise CouldNotLook(
            "you may not see the connections of process {pid}; try it as its user or with sudo",
            pid=pid,
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
    table = b""
    try:
        with open(path, "rb", buffering=0) as file:
            while len(table) < LARGEST and (part := file.read(1024 * 1024)):
                table += part
    except FileNotFoundError:
        return b""  # a kernel without IPv6
    except OSError as error:
        raise CouldNotLook(
            "{path}: {reason}", path=path, reason=os.strerror(error.errno or 0).lower()
        ) from error
    return table


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
    number, _, port = text.partition(":")
    words = [number[n : n + 8] for n in range(0, len(number), 8)]
    data = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    if len(data) == 4:
        return ".".join(map(str, data)), int(port, 16)
    import socket  # slow to load

    return unmap_ipv4(socket.inet_ntop(socket.AF_INET6, data)), int(port, 16)


def unmap_ipv4(text: str) -> str:
    """Return the IPv4 address of an IPv4-mapped IPv6 address; any other as it is."""
    return text[7:] if text.startswith("::ffff:") and "." in text else text


def _timed(pid: int, found: list[Connection]) -> list[Connection]:
    """Add to each connection how long it has been silent, where the kernel reports that."""
    known = _ask_kernel(pid, [one for one in found if one.state == "ESTABLISHED"])
    return [
        connection._replace(silent=known[connection.inode][0], quiet=known[connection.inode][1])
        if connection.inode in known
        else connection
        for connection in found
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
        raise CouldNotLook("process {pid} has just stopped", pid=pid) from None
    except (psutil.AccessDenied, OSError):
        whose = "of this machine" if pid is None else f"of process {pid}"
        raise CouldNotLook(
            "you may not see the connections {whose}; run this with sudo", whose=whose
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
    return [connection for connection in found if pid is not None or connection.state == "LISTEN"]


def listeners(pid: int) -> Iterator[Connection]:
    """Yield the listening sockets of a process; `unread` is the number of waiting connections.

    A caller that has found its socket need not take the rest, so that fewer tables are read.
    """
    try:
        own = {str(inode) for inode in socket_inodes(pid)}
    except CouldNotLook:
        return
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{name}") as table:
                next(table, None)
                for line in table:
                    fields = line.split(None, 10)
                    if len(fields) < 10 or fields[3] != "0A":
                        break
                    if fields[9] in own:
                        yield parse_row(fields)
        except (OSError, ValueError):
            continue


_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST, _NO_ANSWER = 1, 2
_INFO = 2
"""The attribute that holds the kernel's `tcp_info`."""
_LAST_DATA_RECV, _LAST_ACK_RECV = 52, 56
"""Offsets in `tcp_info` of the milliseconds since the last data and the last acknowledgement."""
_MOST_ASKED = 500
"""The most connections that are queried."""


def _ask_kernel(pid: int, connections: Iterable[Connection]) -> dict[int, tuple[float, float]]:
    """Return by inode the seconds since anything came from the other side, and since data came."""
    import socket

    family = getattr(socket, "AF_NETLINK", None)
    wanted = list(connections)[:_MOST_ASKED]
    if family is None or not wanted or not _same_network(pid):
        return {}
    found = {}
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_RAW, _SOCK_DIAG) as link:
        link.settimeout(0.5)
        for connection in wanted:
            link.sendto(_request(connection), (0, 0))
            answer = _times_in(link.recv(8192))
            if answer is not None:
                found[connection.inode] = answer
    return found


def _same_network(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
    except PermissionError:
        from hermes_doctor.core.system import open_files

        seen = (open_files.process_by_root(pid) or {}).get("namespaces", {}).get("net")
        return bool(seen) and seen == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _request(connection: Connection) -> bytes:
    """Build the request for one connection."""
    import socket

    assert connection.remote is not None
    family = socket.AF_INET6 if ":" in connection.local[0] else socket.AF_INET
    ends = struct.pack("!HH", connection.local[1], connection.remote[1])
    ends += b"".join(
        socket.inet_pton(family, host).ljust(16, b"\0")
        for host in (connection.local[0], connection.remote[0])
    )
    body = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0xFFFFFFFF)
    body += ends + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    return struct.pack("=IHHII", 16 + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _times_in(answer: bytes) -> tuple[float, float] | None:
    """Parse the two times from an answer; None when the connection is gone."""
    if len(answer) < 16 + 72 or struct.unpack_from("=H", answer, 4)[0] == _NO_ANSWER:
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
