"""The kernel's table of connections."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hermes_doctor
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.processes import sockets

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")
Row = namedtuple("Row", "laddr raddr status")


@contextlib.contextmanager
def pair(family: int, host: str, *, both: bool = False) -> Iterator[tuple[socket.socket, ...]]:
    """A listening socket, a connection to it, and its other end."""
    with socket.socket(family) as listening:
        if both:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind((host, 0))
        listening.listen()
        target = ("127.0.0.1" if both else host, listening.getsockname()[1])
        with socket.create_connection(target) as caller:
            accepted, _ = listening.accept()
            with accepted:
                yield listening, caller, accepted


def mine(local: tuple[Any, ...]) -> sockets.Connection:
    """The row of one of our own sockets."""
    place = (sockets.unmap_ipv4(local[0]), local[1])
    [found] = [one for one in sockets.connections(os.getpid()) if one.local == place and one.remote]
    return found


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_both_families(host: str) -> None:
    """IPv4 and IPv6: who, whereto, in which state, and what waits."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with pair(family, host) as (listening, caller, accepted):
        caller.sendall(b"twelve bytes")
        time.sleep(0.05)
        one, other = mine(caller.getsockname()), mine(accepted.getsockname())
        states = {
            row.local[1]: row.state for row in sockets.connections(os.getpid()) if not row.remote
        }

        assert one.remote == (host, listening.getsockname()[1])
        assert (one.state, other.state) == ("ESTABLISHED", "ESTABLISHED")
        assert (one.unsent, other.unread, one.tries) == (0, 12, 0)
        assert states[listening.getsockname()[1]] == "LISTEN"
        accepted.recv(12)
        accepted.close()
        time.sleep(0.05)
        assert mine(caller.getsockname()).state == "CLOSE_WAIT"


def test_mapped_addresses() -> None:
    """IPv4 that came in through an IPv6 socket is IPv4."""
    with pair(socket.AF_INET6, "::", both=True) as (_, _, accepted):
        found = mine(accepted.getsockname())

    assert found.local[0] == "127.0.0.1"
    assert found.remote is not None
    assert found.remote[0] == "127.0.0.1"


def test_silence_is_told() -> None:
    """The kernel knows when something came in last."""
    with pair(socket.AF_INET, "127.0.0.1") as (_, caller, accepted):
        time.sleep(0.3)
        caller.sendall(b"x")
        time.sleep(0.05)
        sender, taker = mine(caller.getsockname()), mine(accepted.getsockname())

    assert sender.quiet is not None
    assert sender.silent is not None
    assert taker.quiet is not None
    clearly_less = sender.quiet - 0.2
    assert sender.silent < clearly_less, "an acknowledgement came, data did not"
    assert taker.quiet < clearly_less


def test_only_its_own() -> None:
    """The connections of other processes are not this one's."""
    with pair(socket.AF_INET, "127.0.0.1") as (listening, _, _):
        port = listening.getsockname()[1]
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
            assert sockets.connections(other.pid) == []
            assert port in {one.local[1] for one in sockets.all_listeners(other.pid)}
            assert other.stdin is not None
            other.stdin.close()
        [row] = [one for one in sockets.all_listeners(os.getpid()) if one.local[1] == port]
        assert sockets.process_with_socket(row.inode) == os.getpid()


def test_ended_process() -> None:
    """One that is gone is no process without connections."""
    done = subprocess.Popen(["true"])
    done.wait()
    with pytest.raises(CouldNotLook, match="just stopped"):
        sockets.connections(done.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to have a process of another user")
def test_missing_rights() -> None:
    """Another user's process: a clear reason, not an empty list."""
    look = (
        "import os, sys\n"
        "from hermes_doctor.hermes.processes import gateway_processes, sockets\n"
        "os.setuid(65534); sockets.connections(int(sys.argv[1]))"
    )
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        done = subprocess.run(
            [sys.executable, "-c", look, str(other.pid)],
            capture_output=True,
            text=True,
            cwd=Path(hermes_doctor.__file__).parents[1],
        )
        assert other.stdin is not None
        other.stdin.close()

    assert "you may not see the connections" in done.stderr


def test_addresses() -> None:
    """Words in the machine's own order."""
    if sys.byteorder != "little":
        pytest.skip("the examples are those of a little-endian machine")
    assert sockets.parse_address("0100007F:1F90") == ("127.0.0.1", 8080)
    assert sockets.parse_address("00000000000000000000000001000000:01BB") == ("::1", 443)
    assert sockets.parse_address("0000000000000000FFFF00000100007F:0016") == ("127.0.0.1", 22)


def test_how_long_the_kernel_tries() -> None:
    """Six tries with a wait that has doubled to 12.8 s, 5 s of it left: some 20 s in all."""
    line = (
        "1: 0100090A:B910 0100802B:01BB 01 0000026D:00000000 01:000001F4 00000006"
        "     0        0 1588102 2 0000000000000000 1280 4 0 1 7"
    )
    found = sockets.parse_row(line.replace("1:", "x:", 1).split(None, 10))

    assert (found.unsent, found.tries, found.inode) == (0x26D, 6, 1588102)
    assert found.silent == pytest.approx(20.4, abs=0.1)


def test_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc psutil tells, as on macOS."""
    import psutil

    rows = [
        Row(("127.0.0.1", 5), ("::ffff:1.2.3.4", 443), "ESTABLISHED"),
        Row(("::", 8642), (), "LISTEN"),
    ]

    class Process:
        def __init__(self, pid: int) -> None:
            if pid == 1:
                raise psutil.AccessDenied(pid)
            if pid == 2:
                raise psutil.NoSuchProcess(pid)

        def net_connections(self, kind: str) -> list[Row]:
            return rows

    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    monkeypatch.setattr(psutil, "Process", Process)
    monkeypatch.setattr(psutil, "net_connections", lambda kind: rows)

    assert sockets.connections(9) == [
        sockets.Connection(("127.0.0.1", 5), ("1.2.3.4", 443), "ESTABLISHED"),
        sockets.Connection(("::", 8642), None, "LISTEN"),
    ]
    assert [one.local for one in sockets.all_listeners(9)] == [("::", 8642)]
    for pid, words in ((1, "may not see"), (2, "just stopped")):
        with pytest.raises(CouldNotLook, match=words):
            sockets.connections(pid)


def test_ended_connections_to_the_same_place() -> None:
    """What is in TIME_WAIT is nobody's, and counts where a live one leads to the same place."""
    with pair(socket.AF_INET, "127.0.0.1") as (listening, _, _):
        with socket.create_connection(listening.getsockname()) as short:
            answered, _ = listening.accept()
            local = short.getsockname()
        answered.recv(1)
        answered.close()
        time.sleep(0.05)
        waiting = [one for one in sockets.connections(os.getpid()) if one.state == "TIME_WAIT"]

    assert local in [one.local for one in waiting]
