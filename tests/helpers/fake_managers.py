"""A minimal fake gateway, and fake service managers that record their calls and control it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from tests.helpers import support

STRAW = """
import datetime, fcntl, json, os, pathlib, signal, sys, time
home = pathlib.Path(os.environ["HERMES_HOME"])
lock = open(home / "gateway.lock", "a+")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
def say(state):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    told = {"pid": os.getpid(), "gateway_state": state, "updated_at": now, "platforms":
            {"qqbot": {"state": os.environ.get("QQ", "retrying"), "updated_at": now}}}
    (home / "new.json").write_text(json.dumps(told))
    os.replace(home / "new.json", home / "gateway_state.json")
    (home / "state").mkdir(exist_ok=True)
    (home / "state" / "gateway.heartbeat").write_text(
        json.dumps({"pid": os.getpid(), "updated_at": now, "monotonic": time.monotonic()}))
def end(*_):
    note = home / ".gateway-planned-stop.json"
    (home / "noted").write_text(note.read_text() if note.exists() else "")
    note.unlink(missing_ok=True)
    say("draining")
    time.sleep(float(os.environ.get("DRAIN", "0.3")))
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
if status := os.environ.get("STATUS"):
    sys.exit(int(status))
say("running")
while True:
    time.sleep(60)
"""


@dataclass
class Straw:
    """A minimal fake gateway on one home."""

    home: Home
    program: Path

    @property
    def command(self) -> list[str]:
        """The command line that starts it, which is that of a gateway."""
        return [sys.executable, str(self.program), "gateway", "run"]

    def start(self, **env: str) -> subprocess.Popen[bytes]:
        """Start it, and wait until its state is running."""
        process = subprocess.Popen(
            self.command,
            env={"PATH": os.environ["PATH"], "HERMES_HOME": str(self.home.path), **env},
            stdin=subprocess.DEVNULL,
        )
        until(lambda: b'"running"' in state(self.home) and b"%d" % process.pid in state(self.home))
        return process


def straw(tmp_path: Path) -> Straw:
    """Return one on a healthy home."""
    home = support.healthy(tmp_path / "home").resolve()
    return Straw(Home(home), support.put(tmp_path / "bin" / "hermes", STRAW, 0o755))


def state(home: Home) -> bytes:
    """Return the contents of its state file."""
    try:
        return (home / "gateway_state.json").read_bytes()
    except OSError:
        return b""


def until(true: Callable[[], bool]) -> None:
    """Wait until a condition is true, at most 30 seconds."""
    limit = time.monotonic() + 30
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.02)


def command(folder: Path, name: str, body: str = "") -> Path:
    """Write a manager's command that records its arguments, then runs `body`."""
    said = folder / "asked"
    text = f'#!/bin/sh\necho "{name} $*" >>{said}\n{body}\n'
    return support.put(folder / name, text, 0o755)


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of managers, first on the PATH, and a bus where they are looked for."""
    support.put(folder.parent / "run" / "bus", "")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder.parent / "run"))
    for name in ("loginctl", "systemctl"):
        command(folder, name)
    return folder


def asked(folder: Path) -> list[str]:
    """Return the recorded calls, in order."""
    try:
        return (folder / "asked").read_text().splitlines()
    except OSError:
        return []
