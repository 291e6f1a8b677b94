"""platform-logins: what a platform needs to log in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.check_home import CANARY, TELEGRAM, look
from tests.helpers.gateway_home import Scene, ask, claim

ID = "platform-logins"
HALF = {
    "QQ_APP_ID=102081123\n": ("error", "QQ_CLIENT_SECRET"),
    f"QQ_CLIENT_SECRET={CANARY}\n": ("error", "QQ_APP_ID"),
    f"WEIXIN_TOKEN={CANARY}\n": ("error", "WEIXIN_ACCOUNT_ID"),
    "WEIXIN_ACCOUNT_ID=abc@im.bot\n": ("error", "WEIXIN_TOKEN"),
    f"SLACK_BOT_TOKEN=xoxb-1-{CANARY}\n": ("error", "SLACK_APP_TOKEN"),
    f"MATRIX_ACCESS_TOKEN=syt_{CANARY}\n": ("error", "MATRIX_HOMESERVER"),
    f"MATTERMOST_TOKEN={CANARY}\n": ("error", "MATTERMOST_URL"),
    "FEISHU_APP_ID=cli_a1b2c3\n": ("warning", "FEISHU_APP_SECRET"),
    f"DINGTALK_CLIENT_SECRET={CANARY}\n": ("warning", "DINGTALK_CLIENT_ID"),
    "SIGNAL_ACCOUNT=+15551234567\n": ("warning", "SIGNAL_HTTP_URL"),
    f"EMAIL_PASSWORD={CANARY}\nEMAIL_ADDRESS=a@b.example\n": ("info", "EMAIL_IMAP_HOST"),
    "EMAIL_ADDRESS=a@b.example\n": ("info", "EMAIL_PASSWORD"),
    "MATRIX_HOMESERVER=https://m.example\n": ("info", "MATRIX_ACCESS_TOKEN"),
}


@pytest.mark.parametrize("env", HALF)
def test_half(home: Path, env: str) -> None:
    """What is missing is named; how bad it is depends on whether Hermes starts it so."""
    severity, missing = HALF[env]

    _, [finding] = look(home, ID, env)

    assert (finding.code, finding.severity) == ("PLATFORM-CREDENTIALS", severity)
    assert missing in finding.title
    assert ".env:1" in [one.where for one in finding.evidence]


def test_switched_off(home: Path) -> None:
    """What config.yaml says is not wanted needs nothing."""
    assert look(home, ID, "FEISHU_APP_ID=cli_a\n", "feishu:\n  enabled: false\n")[1] == []


def test_the_login_of_weixin_is_kept(home: Path) -> None:
    """A login that was kept stands in for the token."""
    support.put(home / "weixin" / "accounts" / "abc.json", "{}")

    assert look(home, ID, "WEIXIN_ACCOUNT_ID=abc\n")[1] == []


@pytest.mark.parametrize("running", [True, False])
def test_only_switched_on(home: Path, running: bool) -> None:
    """Nothing sets the token: neither the gateway nor a service or a container."""
    _, [finding] = look(home, ID, config="telegram:\n  enabled: true\n", running=running)

    assert (finding.code, finding.severity) == ("PLATFORM-CREDENTIALS", "error")


def test_a_container_may_set_it(home: Path) -> None:
    """A home that was used in a container gets variables that cannot be seen: a warning."""
    support.put(home / "logs" / "container-boot.log", "")

    _, [finding] = look(home, ID, config="telegram:\n  enabled: true\n")

    assert finding.severity == "warning"
    assert "unless a service" in finding.detail


def test_the_service_may_bring_it(home: Path) -> None:
    """What the running gateway was started with counts."""
    token = TELEGRAM.strip().partition("=")[2]

    result, found = look(
        home,
        ID,
        config="telegram:\n  enabled: true\n",
        running=True,
        environment={"TELEGRAM_BOT_TOKEN": token},
    )

    assert (result.status, found) == ("ok", [])


@pytest.mark.parametrize(
    "value",
    ["your_bot_token_here", "***", "<token>", "changeme", "$MY_TOKEN", "xxxx", "123:AA..."],
)
@pytest.mark.parametrize("variable", ["TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN"])
def test_examples(home: Path, variable: str, value: str) -> None:
    """What stands in examples, in masked output and in templates is no token."""
    _, [finding] = look(home, ID, f"{variable}={value}\n")

    assert (finding.code, finding.severity) == ("PLATFORM-CREDENTIALS", "error")
    assert finding.evidence[0].where == ".env:1"


def test_references_are_not_expanded(home: Path) -> None:
    """A ${NAME} below platforms is sent as it stands; the fix knows the value where it is set."""
    config = "platforms:\n  telegram:\n    enabled: true\n    token: ${TG}\n"

    _, [unset] = look(home, ID, config=config)
    _, [known] = look(home, ID, f"TG=1:{CANARY}\n", config)

    assert (unset.severity, unset.fix) == ("error", None)
    assert known.fix == "fill-in-token"
    assert known.evidence[0].where == "config.yaml:4"
    assert known.evidence[0].what == "platforms.telegram.token: ${TG}"


SHAPES = {
    f"TELEGRAM_BOT_TOKEN={CANARY}\n": "error",
    f"TELEGRAM_BOT_TOKEN=123456:{CANARY}\n": "error",
    f"DISCORD_BOT_TOKEN={CANARY}\n": "error",
    f"SLACK_APP_TOKEN=xapp-1-A\nSLACK_BOT_TOKEN=xoxp-{CANARY}\n": "error",
    f"QQ_APP_ID=app{CANARY}\nQQ_CLIENT_SECRET=abcdef\n": "error",
    f"FEISHU_APP_ID={CANARY}\nFEISHU_APP_SECRET=abcdef\n": "error",
    f"MATRIX_HOMESERVER=m.example\nMATRIX_ACCESS_TOKEN=syt_{CANARY}\n": "error",
    f"DINGTALK_CLIENT_ID={CANARY}\nDINGTALK_CLIENT_SECRET=abcdef\n": "info",
}


@pytest.mark.parametrize("env", SHAPES)
def test_shapes(home: Path, env: str) -> None:
    """A wrong form is an error where the platform documents it, and else a note."""
    _, [finding] = look(home, ID, env)

    assert (finding.code, finding.severity) == ("TOKEN-SHAPE", SHAPES[env])
    assert finding.fix is None


def test_shape_of_a_login_that_works(home: Path) -> None:
    """A platform that is connected has accepted the token, whatever its form."""
    env = f"TELEGRAM_BOT_TOKEN={CANARY}\n"
    support.put(home / ".env", env)
    scene = Scene(home, {}, [claim("telegram", "connected")])

    _, [finding] = ask(ID, scene)

    assert (finding.code, finding.severity) == ("TOKEN-SHAPE", "warning")


def test_a_server_of_ones_own(home: Path) -> None:
    """Another server than Telegram's gives out tokens of its own."""
    config = "telegram:\n  base_url: http://127.0.0.1:8081/bot\n"

    assert look(home, ID, "TELEGRAM_BOT_TOKEN=mine-and-only-mine\n", config)[1] == []


def test_in_order(home: Path) -> None:
    """Tokens of the right form, several of Slack's, and none at all."""
    slack = "SLACK_BOT_TOKEN=xoxb-1-2,xoxb-3-4\nSLACK_APP_TOKEN=xapp-1-A\n"

    assert look(home, ID, TELEGRAM + slack)[1] == []
    assert look(home, ID)[0].status == "skipped"
