"""The ports where platforms wait for callers."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.other_homes import OtherGateway
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes.sockets import Connection
from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask, claim

SERVER = {"API_SERVER_KEY": "not-a-key-but-long", "API_SERVER_PORT": "8777"}
LISTENS = Connection(("127.0.0.1", 8777), None, "LISTEN", inode=5)


class Crowded(Scene):
    """Somebody else listens on the port."""

    def machine_listeners(self, pid: int) -> list[Connection]:
        """The port is taken."""
        return [LISTENS]


def test_listens(home: Path) -> None:
    """The gateway has its port."""
    scene = Scene(home, SERVER, [claim("api_server", "connected")], [LISTENS])

    assert ask("listening-ports", scene)[0].status == "ok"


def test_taken(home: Path) -> None:
    """Another process has it, and the gateway has given the platform up."""
    scene = Crowded(home, SERVER, [claim("api_server", "fatal", "api_server_port_in_use")])

    _, [finding] = ask("listening-ports", scene)

    assert (finding.code, finding.severity) == ("GW-PORT-IN-USE", "error")
    assert "8777" in finding.title


def test_taken_by_its_own_word(home: Path) -> None:
    """Whoever had it is gone, and the gateway still does without."""
    scene = Scene(home, SERVER, [claim("api_server", "fatal", "api_server_port_in_use")])

    assert [one.code for one in ask("listening-ports", scene)[1]] == ["GW-PORT-IN-USE"]


def test_deaf(home: Path) -> None:
    """Said to be connected, and nobody listens."""
    _, [finding] = ask("listening-ports", Scene(home, SERVER, [claim("api_server", "connected")]))

    assert (finding.code, finding.fix) == ("PLATFORM-DEAF", "restart-gateway")


def test_without_listeners(home: Path) -> None:
    """Most platforms call out."""
    assert ask("listening-ports", Scene(home, {}))[0].status == "skipped"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port where this very process listens."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_taken_before_the_start(home: Path, taken: int) -> None:
    """Without a gateway the real table tells who would be in its way: this test."""
    support.put(home / ".env", f"API_SERVER_KEY={'x' * 20}\nAPI_SERVER_PORT={taken}\n")

    _, [finding] = ask("listening-ports", Probes(Home(home)))

    assert (finding.code, finding.severity) == ("GW-PORT-IN-USE", "warning")
    assert str(os.getpid()) in finding.evidence[0].what


class Bridged(Scene):
    """Somebody listens on the port of WhatsApp's bridge."""

    name = "nginx"

    def machine_listeners(self, pid: int) -> list[Connection]:
        """The port is taken."""
        return [Connection(("0.0.0.0", 3000), None, "LISTEN", inode=5)]

    def machine_socket_owner(self, inode: int) -> int | None:
        """By a process that we may see."""
        return 77

    def machine_command(self, pid: int) -> str:
        """What it calls itself."""
        return self.name


def test_the_port_of_the_bridge(home: Path) -> None:
    """Hermes would end a stranger there; the bridge itself, and another port, are in order."""
    scene = Bridged(home, {"WHATSAPP_ENABLED": "true"})

    _, [finding] = ask("listening-ports", scene)

    assert (finding.code, finding.severity) == ("GW-PORT-IN-USE", "warning")
    assert "nginx" in finding.title
    scene.name = "node"
    assert ask("listening-ports", scene)[1] == []
    config = "platforms:\n  whatsapp:\n    extra:\n      bridge_port: 3100\n"
    support.put(home / "config.yaml", config)
    assert ask("listening-ports", Bridged(home, {"WHATSAPP_ENABLED": "true"}))[1] == []


def stopped(home: Path) -> Crowded:
    """A home without a gateway, whose port is taken."""
    support.put(home / ".env", "".join(f"{name}={value}\n" for name, value in SERVER.items()))
    return Crowded(home, {}, [], [LISTENS._replace(inode=5)], running=False)


def test_taken_by_a_gateway_out_of_sight(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener may be the bot's own gateway: nothing says that it should be ended."""
    scene = stopped(home)
    runtime = scene.gateway.runtime()._replace(unseen="a gateway may run in another container")
    monkeypatch.setattr(scene.gateway, "runtime", lambda: runtime)

    result, findings = ask("listening-ports", scene)

    assert (result.status, findings) == ("unknown", [])
    assert "perhaps by the gateway of this home" in (result.reason or "")


def test_taken_by_the_gateway_of_another_home(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copied home needs another port; the gateway of the original must not be ended."""
    other = OtherGateway(77, tmp_path / "original")
    scene = stopped(home)
    monkeypatch.setattr(scene.machine, "socket_owner", lambda _: 77)
    monkeypatch.setattr(scene.machine, "command", lambda _: "hermes")
    monkeypatch.setattr(scene.gateway, "others", lambda: [other])

    _, [finding] = ask("listening-ports", scene)

    assert finding.next.startswith("Set another port")
    assert "End" not in finding.next


def test_taken_by_an_unknown_process(home: Path) -> None:
    """Whose process cannot be seen has to be found before it is ended."""
    _, [finding] = ask("listening-ports", stopped(home))

    assert finding.next.startswith("Find the process")
