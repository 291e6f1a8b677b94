"""Real gateways whose trouble looks like another one: the screen names the true cause."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.real import chat_partner, qq
from tests.helpers.real.controlled_gateways import VERSION, Ward
from tests.helpers.real.gateways import gateway, until
from tests.helpers.real.release_homes import MakeHome, Patient
from tests.helpers.real.wrong_clock import WrongClock
from tests.real.test_proof import ask

pytestmark = pytest.mark.real
UNKNOWN_NAMES = """
import gateway.platforms.qqbot.adapter as adapter
adapter.API_BASE = "https://api.qq.invalid"
adapter.TOKEN_URL = "https://bots.qq.invalid/app/getAppAccessToken"

async def handle(event, context):
    pass
"""
"""No name server knows the hosts of QQ."""


def port_of(pid: int) -> int:
    """Where the API server of a gateway listens."""
    environ = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return int(next(one for one in environ if one.startswith("API_SERVER_PORT=")).split("=")[1])


@pytest.mark.wide
def test_no_dns_for_the_login_and_a_jump_of_the_clock(
    hermes_home: MakeHome, tmp_path: Path
) -> None:
    """Neither is a wrong secret or a missing library, and the bot answers where it can."""
    home, clock = hermes_home(VERSION), WrongClock(tmp_path / "clock", -3600)
    with qq.platform(tmp_path) as platform:
        chat_partner.set_up(home, platform)
        support.put(home / "hooks" / "loopback" / "handler.py", UNKNOWN_NAMES)
        direct = {"NO_PROXY": "*"}
        with gateway(VERSION, home, extra=clock.environment | direct) as running:

            def state() -> dict[str, str]:
                found = json.loads((home / "gateway_state.json").read_bytes())
                return dict(found["platforms"].get("qqbot", {}))

            until(lambda: state().get("state") == "retrying", "the failed login")
            clock.correct(home)
            patient = Patient(VERSION, home)
            screen = patient.doctor("check").out
            found = patient.check().json
            one = Ward(VERSION, home, port_of(running.pid))
            platform.tell("model answer")
            assert ask(one) == "stop", "the API server works"
            answered = patient.doctor("check").out

    assert "QQ: the server name cannot be resolved" in screen
    assert state()["error_message"].rpartition("[Errno")[2] in screen
    assert "✓ API server" in screen
    assert "running for" in screen and "1 h" not in screen.split("platforms")[0]
    for wrong in ("login rejected", "AppSecret", "a library is missing", "-character"):
        assert wrong not in screen
    severities = {finding["code"]: finding["severity"] for finding in found["findings"]}
    assert severities["CLOCK-STEP"] == "info"
    assert severities["PLATFORM-DOWN"] == "error"
    assert not severities.keys() & {"QQ-TOKEN", "PLATFORM-DEPS", "GW-CODE-SKEW"}
    assert "Your bot is working, but nobody on QQ gets an answer." in answered


@pytest.mark.wide
def test_a_relay_that_is_set_only_by_variables(hermes_home: MakeHome, tmp_path: Path) -> None:
    """Hermes asks OpenRouter; after the command on the screen it asks the relay, and answers."""
    home = hermes_home(VERSION)
    with qq.platform(tmp_path) as platform:
        platform.tell("model answer")
        address = f"http://{platform.place}/model"
        support.put(home / "config.yaml", "model:\n  default: thinker\n")
        key = "sk-relay-not-a-key"
        support.put(home / ".env", f"OPENAI_BASE_URL={address}\nOPENAI_API_KEY={key}\n")
        os.utime(home / ".env", (1_700_000_000, 1_700_000_000))
        with gateway(VERSION, home) as running:
            one = Ward(VERSION, home, port_of(running.pid))
            screen = one.doctor("check").out
            assert "✗ Your bot is not working: messages go to OpenRouter" in screen
            command = screen.rpartition("hermes-doctor switch-provider")[2].splitlines()[0]
            words = ["switch-provider", *command.partition(" --home")[0].split()]
            assert words == [
                *("switch-provider", "relay", "--base-url", address),
                *("--key-env", "OPENAI_API_KEY", "--no-fallback"),
            ]
            assert key not in screen

            assert one.doctor(*words, "--apply", "--yes").code == 0
            assert ask(one) == "stop"
            assert "asked" in platform.said.read_text(), "the relay got the message"
            after = one.doctor("check").out
            platform.tell("model reject")
            assert ask(one) == "error"
            refused = one.doctor("check").out

    assert "Your bot is working" in after
    assert "✓ relay, thinker" in after
    assert ": relay rejects the key or login" in refused, "not `custom`, as Hermes calls it"
    assert "✗ relay, thinker: key rejected" in refused
