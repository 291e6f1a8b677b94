"""Measure `check` next to a running gateway on a quiet and on a crowded machine.

    python -m benchmarks.crowd

The crowd is 500 other processes and 5,000 open sockets. Both are measured in one run; the bar is
the ratio of their times: at most 2.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Cost, in_turn
from tests.helpers.real.gateways import gateway
from tools import real_home

RELEASE = "0.19.0"
PROCESSES = 500
SOCKETS = 5000
EACH = 250
"""Sockets per process, with both ends of each connection counted."""
RUNS = 15
BAR = 2.0
HOLDER = f"""
import socket, sys
listening = socket.create_server(("127.0.0.1", 0), backlog={EACH})
ends = []
for _ in range({EACH} // 2):
    ends.append(socket.create_connection(listening.getsockname()))
    ends.append(listening.accept()[0])
print("ready", flush=True)
sys.stdin.read()
"""
SLEEPER = ["sh", "-c", "echo ready; read line"]


@contextlib.contextmanager
def crowd() -> Iterator[None]:
    """Start all processes of the crowd; they stop when their input is closed."""
    holders = SOCKETS // EACH
    commands = [[sys.executable, "-I", "-c", HOLDER]] * holders
    commands += [SLEEPER] * (PROCESSES - holders)
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.extend(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for command in commands
        )
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        for process in running:
            assert process.stdin is not None
            process.stdin.close()
        for process in running:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def sockets() -> int:
    """Return the number of TCP sockets in the kernel's tables."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    return sum(len(table.read_bytes().splitlines()) - 1 for table in tables if table.exists())


def processes() -> int:
    """Return the number of processes on this machine."""
    return sum(name.isdigit() for name in os.listdir("/proc"))


def main() -> int:
    """Measure, print the table, and fail when the bar is missed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o700)
    home = folder / "home"
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"HERMES_HOME": str(home), "HOME": str(folder)}
    tool = [sys.executable, "-m", "hermes_doctor", "check"]
    rows: list[tuple[str, Cost]] = []
    try:
        real_home.make(RELEASE, home)
        with gateway(RELEASE, home):
            where = f"{processes()} processes, {sockets()} sockets"
            rows.append((where, in_turn([tool], RUNS, environ)[0]))
            with crowd():
                where = f"{processes()} processes, {sockets()} sockets"
                rows.append((where, in_turn([tool], RUNS, environ)[0]))
    finally:
        shutil.rmtree(folder)
    print(f"{'hermes-doctor check beside a gateway':<36} {'wall':>9} {'cpu':>9}")
    for name, cost in rows:
        print(f"{name:<36} {cost.wall * 1000:>6.0f} ms {cost.cpu * 1000:>6.0f} ms")
    (_, quiet), (_, crowded) = rows
    ratio = crowded.wall / quiet.wall
    print(f"crowded: {ratio:.2f} times quiet (bar: at most {BAR:g})")
    return int(ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
