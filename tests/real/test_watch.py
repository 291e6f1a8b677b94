"""A watch beside real gateways: it brings one back, within its budget, and spares an answer."""

from __future__ import annotations

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Severity
from hermes_doctor.operations.watch.channels import HermesChannel, Notice, NotSent
from hermes_doctor.operations.watch.events import EventKind, WatchEvent
from tests.conftest import need_release
from tests.helpers.real.controlled_gateways import VERSION, ward
from tests.helpers.real.gateways import sealed, until
from tests.helpers.real.release_homes import MakeHome, machine
from tests.helpers.watch_parts import AT
from tests.scenarios.test_watch_process import watching
from tools import releases

pytestmark = pytest.mark.real
SOONER = """
import hermes_doctor.repair.gateway.startup_proof
hermes_doctor.repair.gateway.startup_proof.SETTLE = 1.0
hermes_doctor.repair.gateway.startup_proof.STEADY = 1.0
from hermes_doctor.__main__ import main
main()
"""
"""The command, which does not wait long for a gateway to stay up."""


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be taken note of does not."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def test_a_gateway_that_is_killed_comes_back(hermes_home: MakeHome) -> None:
    """A gateway that is killed comes back."""
    home = hermes_home(VERSION)
    with (home / ".env").open("a") as file:  # what is started anew is as sealed as the first
        file.write("".join(f"\n{name}={value}" for name, value in sealed(None).items()) + "\n")
    with ward(home) as one:
        options = ("--heal", "--after", "2", "--budget", "2/30m")
        env: dict[str, str | None] = {**one.env}
        with watching(home, *options, env=env, program=("-c", SOONER)) as child:
            child.until("gateway running")
            seen = {one.pid}
            for number in range(1, 3):
                os.kill(one.pid, signal.SIGKILL)

                def healed(count: int = number) -> bool:
                    return sum("healed GW-DOWN" in line for line in child.lines) == count

                until(healed, "the watch to bring it back")
                assert one.pid not in seen and alive(one.pid)
                seen.add(one.pid)

                def seen_again(count: int = number) -> bool:
                    return sum("gone   GW-DOWN" in line for line in child.lines) == count

                until(seen_again, "a look")
            last = one.pid
            os.kill(last, signal.SIGKILL)
            child.until("the budget of 2 in 30 min is used up; the next repair is possible at ")
            assert not alive(last)
            assert child.end() == 0


class Signal(BaseHTTPRequestHandler):
    """What signal-cli listens with, on this machine."""

    said: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.said.append(asked)
        answer = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": {"timestamp": 1}})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        pass


def installed(bin: Path) -> set[str]:
    """What is installed beside a release."""
    return {path.name for path in bin.parent.glob("lib/*/site-packages/*.dist-info")}


@pytest.mark.wide
@pytest.mark.parametrize("version", ["0.16.0", "0.19.0"])
def test_hermes_send_arrives(
    hermes_home: MakeHome, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a platform that works, whatever else is broken."""
    home = hermes_home(version)
    bin = releases.python_of(version).parent
    machines = machine(home.parent, bin)
    for name, value in (machines | sealed(None)).items():
        monkeypatch.setenv(name, value)
    before = installed(bin)  # left to itself, 0.16.0 installs what it thinks it lacks
    server = ThreadingHTTPServer(("127.0.0.1", 0), Signal)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with (home / ".env").open("a") as file:
            settings = sealed(None) | {
                "SIGNAL_HTTP_URL": f"http://127.0.0.1:{server.server_address[1]}",
                "SIGNAL_ACCOUNT": "+15550000001",
            }
            file.write("".join(f"\n{name}={value}" for name, value in settings.items()) + "\n")
        Signal.said.clear()
        notice = Notice(EVENT, str(home), frozenset({"telegram"}))
        HermesChannel(Home(home.resolve()), "signal:+15550000002").send(notice)
    finally:
        server.shutdown()
        server.server_close()

    [sent] = [one["params"] for one in Signal.said if one["method"] == "send"]
    assert installed(bin) == before
    assert sent["message"] == notice.words() and "+15550000002" in str(sent["recipient"])


EVENT = WatchEvent(
    EventKind.NEW, AT, "state.db is damaged", Severity.CRITICAL, "DB-NOTADB", "state.db"
)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("0.13.0", "has no `hermes send`"),
        ("0.16.0", "failed with exit code 1"),
        ("0.19.0", "failed with exit code 1"),
    ],
)
def test_hermes_send(
    hermes_home: MakeHome, version: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releases that have it understand how it is asked; here they have no platform to send by."""
    need_release(version)
    home = hermes_home(version)
    bin = releases.python_of(version).parent
    machines = machine(home.parent, bin)
    for name, value in (machines | sealed(None)).items():
        monkeypatch.setenv(name, value)
    before = installed(bin)
    with pytest.raises(NotSent, match=why):
        HermesChannel(Home(home.resolve()), "telegram:1").send(
            Notice(EVENT, str(home), frozenset())
        )
    assert installed(bin) == before
