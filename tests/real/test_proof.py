"""Real gateways: "working" needs an answer, and "repaired" needs a connection."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support
from tests.helpers.real import chat_partner, qq
from tests.helpers.real.controlled_gateways import SOONER, VERSION, Ward, end_gateways
from tests.helpers.real.gateways import free_port, gateway, until
from tests.helpers.real.release_homes import MakeHome

pytestmark = pytest.mark.real
CLOSINGS = 12
"""Closed connections in a row after which QQ is said to be down."""
FALLBACK = """
fallback_providers:
  - provider: custom
    model: spare
    base_url: http://127.0.0.1:{port}/v1
    api_key: not-a-key
"""
"""A fallback at a port where nobody listens."""


@contextmanager
def bot(home: Path, platform: qq.Qq) -> Iterator[Ward]:
    """A gateway with QQ and an API server, which the doctor may restart."""
    chat_partner.set_up(home, platform)
    with gateway(VERSION, home, extra=qq.through(platform)) as running:
        try:
            until(lambda: platform.sessions() > 0, "the session")
            environ = Path(f"/proc/{running.pid}/environ").read_text().split("\0")
            own = dict(pair.split("=", 1) for pair in environ if pair.startswith("API_SERVER_"))
            with (home / ".env").open("a") as file:  # for a gateway that is started again
                file.write("".join(f"\n{name}={value}" for name, value in own.items()) + "\n")
            os.utime(home / ".env", (1_700_000_000, 1_700_000_000))
            yield Ward(VERSION, home, int(own["API_SERVER_PORT"]))
        finally:
            end_gateways(home, running.pid)


def ask(one: Ward) -> str:
    """Send a message to the API server, and return how its answer ended."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{one.port}/v1/chat/completions",
        data=json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode(),
        headers={"Authorization": "Bearer not-a-key-but-long-enough"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as answer:
        reason: str = json.load(answer)["choices"][0]["finish_reason"]
        return reason


def headline(one: Ward) -> str:
    """The first sentence of `check`, as an operator sees it."""
    shown = one.doctor("check").out.splitlines()
    return shown[2]


@pytest.mark.wide
def test_the_newest_message_decides(hermes_home: MakeHome, tmp_path: Path) -> None:
    """Not tried; refused twice; answered; the fallback failed, too; answered by the main model."""
    with qq.platform(tmp_path) as platform, bot(hermes_home(VERSION), platform) as one:
        assert "not tried yet" in headline(one)

        platform.tell("model reject")
        assert [ask(one), ask(one)] == ["error", "error"]
        assert "has not been working" in headline(one)
        found = one.check().json
        assert found["summary"]["verdict"] == "not working"
        assert "PROVIDER-401" in [finding["code"] for finding in found["findings"]]

        platform.tell("model answer")
        assert ask(one) == "stop"
        assert "Your bot is working" in headline(one)
        assert "PROVIDER-401" not in one.check().codes

        port = free_port()
        with (one.home / "config.yaml").open("a") as file:
            file.write(FALLBACK.format(port=port))
        platform.tell("model reject")
        assert ask(one) == "error", "the fallback fails, too"
        assert "✗ Your bot is not working: custom rejects the key or login" in headline(one)
        failed = one.check().json
        assert failed["states"]["model"][0]["text"] == (
            "custom, thinker: key rejected; fallback custom, spare: local server does not answer"
        )
        titles = {found["code"]: found["title"] for found in failed["findings"]}
        assert titles["CFG-LOCAL-MODEL"] == (
            f"fallback: the model server at 127.0.0.1:{port} does not answer"
        )
        platform.tell("model answer")
        assert ask(one) == "stop"
        assert "Your bot is working" in headline(one), "the main model answers"
        assert not {"PROVIDER-401", "PROVIDER-DOWN"} & set(one.check().codes)


def closed(home: Path) -> int:
    """How often QQ has closed a connection."""
    return (home / "logs" / "gateway.log").read_text().count("WebSocket closed: code=4009")


def fix(one: Ward, code: str, *options: str, seconds: float) -> support.Done:
    """Repair a problem, and wait so long for the connection."""
    limit = {"hermes_doctor.repair.gateway.startup_proof.CONNECTING": seconds}
    return support.doctor(
        *("fix", code, "--apply", "--yes", *options, "--home", str(one.home)),
        env=one.env,
        timeout=300,
        settings=SOONER | limit,
    )


@pytest.mark.wide
def test_a_restart_that_does_not_connect(hermes_home: MakeHome, tmp_path: Path) -> None:
    """QQ refuses every session: restarted, but not repaired. It refuses only old ones: repaired."""
    home = hermes_home(VERSION)
    with qq.platform(tmp_path) as platform, bot(home, platform) as one:
        platform.tell("refuse 4009")
        platform.tell("close 4009")
        until(lambda: closed(home) >= CLOSINGS, "the loop of closed connections")
        first = one.pid

        done = fix(one, "QQ-4009", "--json", seconds=8)

        assert done.code == 1, done.out
        [run] = done.json["repair"]["runs"]
        [item] = run["items"]
        assert (item["outcome"], run["state"], run["gateway"]) == (
            "not-connected", "done", "started",
        )  # fmt: skip
        assert "QQ: WebSocket closed: code=4009" in item["reason"]
        summary = done.json["summary"]
        assert (summary["verdict"], summary["headline"]) == ("unknown", "Not connected yet: QQ.")
        assert one.pid != first, "the restart stays"

        before = closed(home)
        until(lambda: closed(home) >= before + CLOSINGS, "the loop of closed connections")
        shown = fix(one, "QQ-4009", seconds=4)
        assert shown.code == 1
        assert ": restarted, not connected yet" in shown.out
        assert "repaired and checked" not in shown.out and "no problem" not in shown.out
        os.kill(one.pid, signal.SIGKILL)
        until(lambda: not Probes(Home(home)).gateway.running(), "the end of the gateway")
        started = fix(one, "GW-DOWN", seconds=4)
        assert started.code == 1
        assert ": started, not connected yet" in started.out

        platform.tell("refuse 0")
        platform.tell("resume 4009")
        sessions = platform.sessions()
        until(lambda: platform.sessions() > sessions, "a session")
        platform.tell("close 4009")
        before = closed(home)
        until(lambda: closed(home) >= before + CLOSINGS, "the loop of closed connections")
        good = fix(one, "QQ-4009", "--json", seconds=45)
        assert good.code == 0, good.out
        [run] = good.json["repair"]["runs"]
        assert [item["outcome"] for item in run["items"]] == ["verified"]
        again = fix(one, "QQ-4009", "--json", seconds=4)
        assert again.json["repair"]["runs"] == [], "nothing more to do"
