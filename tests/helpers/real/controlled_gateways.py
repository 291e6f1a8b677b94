"""Gateways that a test lets the doctor stop and start, and a hook inside them that obeys files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support
from tests.helpers.real.gateways import Running, answers, gateway, until
from tests.helpers.real.release_homes import Patient

VERSION = "0.19.0"
SOONER = {
    "hermes_doctor.repair.gateway.startup_proof.SETTLE": 1.0,
    "hermes_doctor.repair.gateway.base.LOOK_EVERY": 0.5,
    "hermes_doctor.repair.gateway.base.SILENCE": 4.0,
    "hermes_doctor.diagnosis.probes.pulse.LONG": 1.0,
}
"""How many seconds the doctor waits here. `test_steering_systemd.py` waits as operators do: there
systemd kills a frozen gateway, so nothing has to be watched for two minutes."""
HOOK = "name: obey\ndescription: for tests\nevents: [gateway:startup]\n"
HANDLER = """
import asyncio, os, threading, time
from pathlib import Path
from hermes_state import SessionDB

home = Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes")

def obey(loop):
    history = None
    n = 40
    while True:
        time.sleep(0.02)
        if (home.parent / "freeze").exists():
            (home.parent / "freeze").unlink()
            loop.call_soon_threadsafe(time.sleep, 100000)
        if (home.parent / "write").exists():
            history = history or SessionDB(home / "state.db")
            history.append_message("one", "user", f"message number {n}")
            n += 1
            (home.parent / "written").write_text(str(n))

async def handle(event, context):
    threading.Thread(target=obey, args=[asyncio.get_running_loop()], daemon=True).start()
"""
"""Blocks the event loop, or writes messages, as soon as a file beside the home says so."""


@dataclass(frozen=True)
class Ward(Patient):
    """A home whose gateway the doctor may stop and start."""

    port: int = 0

    @property
    def pid(self) -> int:
        """The one gateway of this home."""
        [found] = Probes(Home(self.home.resolve())).gateway.running()
        return found.pid

    def fix(self, *args: str) -> support.Done:
        """`fix --apply --yes --json`, with time enough for a restart on a busy machine."""
        options = ("--apply", "--yes", "--json", "--home", str(self.home))
        return support.doctor("fix", *args, *options, env=self.env, timeout=300, settings=SOONER)

    def doctor(self, *args: str | Path) -> support.Done:
        """Run the command on this home."""
        return support.doctor(
            *args, "--home", self.home, env=self.env, timeout=120, settings=SOONER
        )

    def freeze(self) -> None:
        """Block the event loop, and let no heartbeat tell of it."""
        freeze(self.home, self.port)


def obeying(home: Path) -> None:
    """Put the hook into a home."""
    support.put(home / "hooks" / "obey" / "HOOK.yaml", HOOK)
    support.put(home / "hooks" / "obey" / "handler.py", HANDLER)


def freeze(home: Path, port: int) -> None:
    """Block the event loop of a gateway that obeys; its heartbeat is older than the process is,
    so that it tells nothing, as in a release without one."""
    (home.parent / "freeze").touch()
    until(lambda: not answers(port, 1), "the loop to stand still")
    beat = home / "state" / "gateway.heartbeat"
    told = json.loads(beat.read_bytes())
    told["monotonic"] -= 600
    told["updated_at"] = "2026-01-01T00:00:00+00:00"
    beat.write_text(json.dumps(told))


@contextmanager
def ward(home: Path, extra: Mapping[str, str] | None = None) -> Iterator[Ward]:
    """A running gateway with the hook and an API server; whoever runs there at the end is ended."""
    obeying(home)
    with gateway(VERSION, home, extra=extra) as running:
        try:
            yield Ward(VERSION, home, _settle(running, home))
        finally:
            end_gateways(home, running.pid)


def _settle(running: Running, home: Path) -> int:
    """Write into .env where its API server listens: a gateway started anew shall listen there."""
    environ = Path(f"/proc/{running.pid}/environ").read_text().split("\0")
    own = [pair for pair in environ if pair.startswith("API_SERVER_")]
    with (home / ".env").open("a") as file:
        file.write("".join(f"\n{pair}" for pair in own) + "\n")
    os.utime(home / ".env", (time.time() - 3600,) * 2)
    return int(next(pair for pair in own if "PORT" in pair).partition("=")[2])


def end_gateways(home: Path, first: int) -> None:
    for found in Probes(Home(home.resolve())).gateway.running():
        if found.pid != first:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
