"""A process that looks like a gateway to the kernel and in a home's files, without any Hermes.

It has the command line of a gateway, holds the lock and writes the same files, so that every probe
can be tested in milliseconds. tests/real covers real gateways.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.helpers import support

_SCRIPT = """
import fcntl, json, os, socket, sys, threading, time
from datetime import UTC, datetime
from pathlib import Path

home, wants = Path(os.environ["HERMES_HOME"]), json.loads(os.environ["SHAM"])
ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
record = {"pid": os.getpid(), "kind": "hermes-gateway", "argv": sys.argv, "start_time": ticks}
lock = open(home / "gateway.lock", "a+")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
lock.truncate(0); lock.write(json.dumps(record)); lock.flush()
(home / "gateway.pid").write_text(json.dumps(record))
now = datetime.now(UTC).isoformat()
said = wants["platforms"].items()
platforms = {name: {"state": state, "updated_at": now} for name, state in said}
state = record | {"gateway_state": wants["state"], "updated_at": now, "platforms": platforms}
(home / "gateway_state.json").write_text(json.dumps(state))
if wants["beat"]:
    (home / "state").mkdir(exist_ok=True)
    beat = {"pid": os.getpid(), "updated_at": now, "monotonic": time.monotonic()}
    (home / "state" / "gateway.heartbeat").write_text(json.dumps(beat))
kept = [open(home / "state.db", "rb") for _ in range(wants["open"])]
if wants["api"]:
    server = socket.create_server(("127.0.0.1", 0), backlog=5)
    port = server.getsockname()[1]
    def serve():
        while True:
            server.accept()[0].close()
    if wants["api"] == "answers":
        threading.Thread(target=serve, daemon=True).start()
print(port if wants["api"] else 0, flush=True)
sys.stdin.read()
"""


SECRET = "zQcanaryKx9pLm2Tw"
"""Set in its environment, and wherever else a test puts it."""


@dataclass(frozen=True)
class Sham:
    """A running fake gateway."""

    process: subprocess.Popen[str]
    port: int
    pid: int


@contextlib.contextmanager
def gateway(
    home: Path, *, limit: int | None = None, apart: Sequence[str] = (), **wants: Any
) -> Iterator[Sham]:
    """Run a fake gateway on a home: `api` is None, "answers" or "silent"; see the script for more.

    `apart` is the command that makes it the first process of a pid namespace.
    """
    script = support.put(home.parent / "sham" / "hermes", _SCRIPT)
    said = {"state": "running", "platforms": {}, "beat": True, "open": 0, "api": None} | wants
    env = {"HERMES_HOME": str(home), "SHAM": json.dumps(said), "PATH": os.environ["PATH"]}
    env["OPENROUTER_API_KEY"] = SECRET
    started = datetime.now(UTC)
    process = subprocess.Popen(
        [*apart, sys.executable, "-I", str(script), "gateway", "run"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        pid = _child(process.pid) if apart else process.pid
        if limit is not None:
            import resource

            resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))
        note(home, 1 if apart else pid, started, "gateway.start")
        yield Sham(process, port, pid)
    finally:
        process.kill()
        process.communicate()


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def note(home: Path, pid: int, at: datetime, tag: str, **more: object) -> None:
    """Write one record of the exit diary."""
    line = json.dumps({"ts": at.isoformat(), "tag": tag, "pid": pid} | more)
    path = home / "logs" / "gateway-exit-diag.log"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as diary:
        diary.write(line + "\n")


DEAD = 2**22 - 3
"""The pid of a process that does not exist: the kernel's last but two."""


def ended(home: Path, *tags: tuple[str, dict[str, object]], **state: object) -> datetime:
    """Write a home whose gateway started an hour ago and ended five minutes ago with these tags.

    On a machine that booted only recently, it ended later than that.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    end = now - timedelta(seconds=min(300, up // 2))  # a reboot since then would explain the end
    note(home, DEAD, now - timedelta(hours=1), "gateway.start")
    for tag, more in tags:
        note(home, DEAD, end, tag, **more)
    record = {"pid": DEAD, "kind": "hermes-gateway", "start_time": 12345}
    said = record | {"gateway_state": "running", "updated_at": end.isoformat(), "platforms": {}}
    support.put(home / "gateway_state.json", json.dumps(said | state))
    support.put(home / "gateway.lock", json.dumps(record))
    return end
