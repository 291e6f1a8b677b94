"""Real gateways with the real QQ adapter, on a platform that does what the test says."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.system import limits
from hermes_doctor.diagnosis.probes import links
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.processes import sockets
from tests.helpers import gateway_home, support
from tests.helpers.real import qq
from tests.helpers.real.gateways import gateway, until
from tests.helpers.real.release_homes import MakeHome, Patient

pytestmark = pytest.mark.real
VERSION = "0.19.0"
"""The only release whose QQ adapter runs as installed: older ones lack a library, or a fix."""
INSIDE, OUTSIDE = "43.128.0.1", "203.0.113.7"


def codes(patient: Patient) -> list[tuple[str, str]]:
    """What the checks of the connections find, information included."""
    done = patient.doctor("check", "--json", "--only", "connections")
    assert {check["status"] for check in done.json["checks"]} <= {"ok", "skipped", "problem"}
    return [(one["code"], one["severity"]) for one in done.json["findings"]]


def found(patient: Patient, code: str) -> bool:
    """Whether this is the one thing that is found."""
    return [name for name, _ in codes(patient)] == [code]


def state(home: Path) -> str:
    """What the gateway says of QQ."""
    text = (home / "gateway_state.json").read_text()
    return text.partition('"qqbot"')[2].partition('"state":')[2].split('"')[1]


def test_one_life(hermes_home: MakeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connected; closed with 4009 and back; a platform that stands still; 4914 and dead for good.

    The gateway goes through a proxy, which is the platform itself, so nothing else is reached.
    """
    home = hermes_home(VERSION)
    patient = Patient(VERSION, home)
    with qq.platform(tmp_path) as platform, qq.bot(VERSION, home, platform) as running:
        assert codes(patient) == []

        sessions = platform.sessions()
        platform.tell("close 4009")
        assert codes(patient) == []  # it is about to come back, and that is QQ's habit
        until(lambda: platform.sessions() > sessions, "the session after the 4009")
        assert codes(patient) == []

        facts = load_knowledge("platforms")["platforms"]["qqbot"]
        enough = limits.stretch(2.0)  # one heartbeat a second, later on a busy machine
        monkeypatch.setitem(facts, "quiet_after", enough)
        assert quiet(running.pid, home) == []
        with platform.frozen():
            time.sleep(enough + 1.5)
            assert quiet(running.pid, home) == ["NET-SLEEP-WAKE"]

        until(lambda: platform.sessions() > 0 and state(home) == "connected", "the adapter")
        platform.tell("close 4914")
        until(lambda: state(home) == "fatal", "the adapter to give up")
        assert codes(patient) == [("QQ-FATAL-CLOSE", "error")]
        finding = support.finding(patient.check("--only", "connections"), "QQ-FATAL-CLOSE")
        assert "offline/sandbox-only" in finding["title"]
        assert any("4914" in one["what"] for one in finding["evidence"]), finding["evidence"]
        assert finding["since"]

    assert codes(patient) == []  # without a gateway there is nothing to say about connections


def quiet(pid: int, home: Path) -> list[str]:
    """What this very process finds: the threshold is changed here only."""
    _, findings = gateway_home.ask("platform-links", Probes(Home(home)))
    [row] = links.assign(Probes(Home(home)).settings.platforms(), sockets.connections(pid))
    assert row.how == "proxy"
    return [one.code for one in findings]


@pytest.mark.wide
def test_wrong_secret_and_what_is_missing(hermes_home: MakeHome, tmp_path: Path) -> None:
    """No token, no library, no port: each is named, on a gateway that calls itself running."""
    home = hermes_home(VERSION)
    patient = Patient(VERSION, home)
    with taken_port() as port, qq.platform(tmp_path) as platform:
        platform.tell("token bad")
        qq.set_up(home, platform)
        more = f"FEISHU_APP_ID=x\nFEISHU_APP_SECRET=y\nWEBHOOK_ENABLED=true\nWEBHOOK_PORT={port}\n"
        support.put(home / ".env", (home / ".env").read_text() + more)
        os.utime(home / ".env", (1_700_000_000, 1_700_000_000))
        with gateway(VERSION, home, extra=qq.through(platform)):
            until(lambda: state(home) == "retrying", "the adapter to fail")
            assert sorted(codes(patient)) == [
                ("GW-PORT-IN-USE", "error"),
                ("PLATFORM-DEPS", "error"),
                ("PLATFORM-DOWN", "error"),
                ("QQ-TOKEN", "error"),
            ]
            shown = patient.doctor("check", "-v", "--only", "connections").out

    assert "100016" in shown
    assert "not-a-secret" not in shown
    assert str(os.getpid()) in shown  # this test has the port


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    """A port where this test listens."""
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.mark.wide
def test_two_homes_with_one_bot(hermes_home: MakeHome, tmp_path: Path) -> None:
    """The second gateway finds the bot taken: its home is told so, and the first one's is not."""
    first = hermes_home(VERSION)
    second = support.copy_home(first, tmp_path / "second")
    with qq.platform(tmp_path) as platform, qq.bot(VERSION, first, platform) as holder:
        qq.set_up(second, platform)
        with gateway(VERSION, second, extra=qq.through(platform)):
            assert found(Patient(VERSION, second), "TOKEN-DUP")
            assert codes(Patient(VERSION, first)) == []
            done = Patient(VERSION, second).check("--only", "TOKEN-DUP")
            assert str(holder.pid) in support.finding(done, "TOKEN-DUP")["title"]


@pytest.mark.wide
@pytest.mark.needs("ip")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make networks of its own")
def test_networks(hermes_home: MakeHome, tmp_path: Path) -> None:
    """In Tencent's range, outside of it, and cut off without a word; each home gets its own."""
    first = hermes_home(VERSION)
    inside = Patient(VERSION, first)
    outside = Patient(VERSION, support.copy_home(first, tmp_path / "second"))
    with (
        qq.network(INSIDE, OUTSIDE) as network,
        qq.platform(tmp_path, INSIDE, 443, inside=network.far) as known,
        qq.platform(tmp_path, OUTSIDE, 443, inside=network.far) as unknown,
        qq.bot(VERSION, inside.home, known, inside=network.near) as running,
        qq.bot(VERSION, outside.home, unknown, app="102000002", inside=network.near),
    ):
        assert codes(inside) == []
        assert codes(outside) == [("PLATFORM-LIKELY", "info")]

        network.cut(INSIDE)
        until(
            lambda: any(
                one.tries and (one.silent or 0) > 16 for one in sockets.connections(running.pid)
            ),
            "the kernel to try for a while",
        )
        assert codes(inside) == [("NET-SLEEP-WAKE", "error")]
        assert codes(outside) == [("PLATFORM-LIKELY", "info")]
        assert state(inside.home) == "connected"  # which is what it says of itself
