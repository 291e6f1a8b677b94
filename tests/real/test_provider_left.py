"""A real gateway whose relay is set up while its provider is left at OpenRouter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import need_release
from tests.helpers import fake_provider, support
from tests.helpers.real import chat_partner, qq
from tests.helpers.real.gateways import gateway, until
from tools import real_home

pytestmark = [pytest.mark.real, pytest.mark.wide]
VERSION = "0.19.0"
KEY = "sk-relay-canary-0123456789"
CONFIG = """\
model:
  provider: openrouter
  base_url: {url}
  default: deepseek-chat
providers:
  relay:
    base_url: {url}
    key_env: RELAY_KEY
"""


def test_the_relay_answers_after_the_fix(tmp_path: Path) -> None:
    """The next message goes to the relay with its key; undo restores the bytes."""
    need_release(VERSION)
    home = real_home.make(VERSION, tmp_path / "home")
    with fake_provider.serving() as relay, qq.platform(tmp_path) as platform:
        chat_partner.set_up(home, platform)
        config = CONFIG.format(url=relay.url)
        support.put(home / "config.yaml", config)
        env = (home / ".env").read_text()
        support.put(home / ".env", f"{env}OPENROUTER_API_KEY=sk-or-v1-0123\nRELAY_KEY={KEY}\n")
        extra = qq.through(platform) | {"API_SERVER_ENABLED": "false", "API_SERVER_KEY": ""}
        with gateway(VERSION, home, extra=extra):
            until(lambda: platform.sessions() > 0, "the session")
            assert "CFG-PROVIDER-LEFT" in support.check(home).codes

            fixed = support.doctor(
                *("fix", "CFG-PROVIDER-LEFT", "--apply", "--yes", "--json", "--home", home)
            )
            assert fixed.code == 0, fixed.out + fixed.err
            chat_partner.Chat(platform).say("Are you there?")
            until(
                lambda: any(one.path.endswith("/chat/completions") for one in relay.asked),
                "the relay to be asked",
                120,
            )

        request = next(one for one in relay.asked if one.path.endswith("/chat/completions"))
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        assert request.body["model"] == "deepseek-chat"
        assert KEY not in fixed.out + fixed.err
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert (home / "config.yaml").read_text() == config
