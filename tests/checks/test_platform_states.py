"""The gateway's own word about its platforms, and what its log adds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.hermes.installation.find import Installation
from tests.helpers import support
from tests.helpers.gateway_home import QQ, TELEGRAM, Scene, ask, claim, old

OTHERS = {
    "slack": {"SLACK_BOT_TOKEN": "x", "SLACK_APP_TOKEN": "y"},
    "discord": {"DISCORD_BOT_TOKEN": "x"},
    "feishu": {"FEISHU_APP_ID": "x", "FEISHU_APP_SECRET": "y"},
    "wecom": {"WECOM_BOT_ID": "x", "WECOM_SECRET": "y"},
    "weixin": {"WEIXIN_TOKEN": "x", "WEIXIN_ACCOUNT_ID": "y"},
}


@pytest.fixture(autouse=True)
def settled(home: Path) -> None:
    """The settings are older than the gateway."""
    old(home / ".env")
    old(home / "config.yaml")


def log(home: Path, *lines: str) -> None:
    """Lines of the QQ adapter, a second apart, the last one just now."""
    start = datetime.now() - timedelta(seconds=len(lines))
    text = "".join(
        f"{start + timedelta(seconds=n):%Y-%m-%d %H:%M:%S},000 INFO {line}\n"
        for n, line in enumerate(lines)
    )
    support.put(home / "logs" / "gateway.log", text)


def qq(text: str) -> str:
    """A line of the QQ adapter."""
    return f"gateway.platforms.qqbot.adapter: [QQBot:102000001] {text}"


@pytest.mark.parametrize(
    ("variables", "said", "code", "restart"),
    [
        (QQ, ("qqbot", "fatal", "qq_offline/sandbox-only"), "QQ-FATAL-CLOSE", True),
        (QQ, ("qqbot", "fatal", "qq_banned"), "QQ-FATAL-CLOSE", True),
        (QQ, ("qqbot", "disconnected", None), "QQ-GIVEUP", True),
        (QQ, ("qqbot", "retrying", "qq_connect_error"), "PLATFORM-DOWN", False),
        (TELEGRAM, ("telegram", "fatal", "telegram_polling_conflict"), "TG-409", False),
        (TELEGRAM, ("telegram", "retrying", "telegram_network_error"), "TG-NETWORK", False),
        (TELEGRAM, ("telegram", "retrying", "telegram_connect_error"), "TG-NETWORK", False),
        (OTHERS["discord"], ("discord", "retrying", "discord_gateway_task_exited"), "DC-ZOMBIE", 0),
        (OTHERS["feishu"], ("feishu", "disconnected", None), "FEISHU-WS-DEAD", True),
        (OTHERS["slack"], ("slack", "disconnected", None), "SLACK-ZOMBIE", True),
        (OTHERS["wecom"], ("wecom", "fatal", "wecom_connect_error"), "PLATFORM-DOWN", True),
        (OTHERS["wecom"], ("wecom", "retrying", "wecom_connect_error"), "PLATFORM-DOWN", False),
    ],
)
def test_not_in_service(
    home: Path,
    variables: dict[str, str],
    said: tuple[str, str, str | None],
    code: str,
    restart: bool,
) -> None:
    """Each state that means trouble has its code, and a restart only where that is the way back."""
    result, [finding] = ask("platform-states", Scene(home, variables, [claim(*said)]))

    assert result.status == "problem"
    assert (finding.code, finding.severity, finding.subject) == (code, "error", said[0])
    assert (finding.fix == "restart-gateway") is bool(restart)
    assert finding.since


EMAIL = {
    "EMAIL_ADDRESS": "a@example.org",
    "EMAIL_PASSWORD": "x",
    "EMAIL_IMAP_HOST": "h",
    "EMAIL_SMTP_HOST": "h",
}
LINE = {"LINE_CHANNEL_ACCESS_TOKEN": "x", "LINE_CHANNEL_SECRET": "y"}
OWN = [
    (QQ, "qqbot", "retrying", "qq_missing_dependency", "QQ does not start: a library is missing"),
    (QQ, "qqbot", "fatal", "qq_quick_disconnect", "QQ closes every new connection"),
    (
        OTHERS["weixin"],
        "weixin",
        "fatal",
        "weixin_missing_account",
        "Weixin does not start: a setting is missing or wrong",
    ),
    (TELEGRAM, "telegram", "fatal", "telegram_auth_error", "Telegram rejects the login of the bot"),
    (EMAIL, "email", "fatal", "email_auth_error", "Email rejects the login of the bot"),
    (LINE, "line", "retrying", "bind_failed", "LINE cannot listen on its port"),
    (
        OTHERS["slack"],
        "slack",
        "fatal",
        "missing_slack_app_token",
        "Slack does not start: a setting is missing or wrong",
    ),
]


@pytest.mark.parametrize(("variables", "name", "state", "error", "title"), OWN)
def test_an_error_of_the_adapter(
    home: Path, variables: dict[str, str], name: str, state: str, error: str, title: str
) -> None:
    """The adapter says itself what is wrong; a restart alone would not help."""
    said = claim(name, state, error)._replace(error_message="its own words")

    _, [finding] = ask("platform-states", Scene(home, variables, [said]))

    code = "TG-BAD-TOKEN" if name == "telegram" else "PLATFORM-DOWN"
    assert (finding.code, finding.title, finding.fix) == (code, title, None)
    assert finding.evidence[-1].what == f"{state}: its own words"
    assert finding.next
    assert ("keeps trying" in finding.detail) is (state == "retrying")


def test_tried_for_hours(home: Path) -> None:
    """The gateway writes since when it tries; the time of the last state is younger."""
    began = datetime.now(UTC) - timedelta(hours=2, minutes=50)
    said = claim("telegram", "retrying", "telegram_connect_error")._replace(retrying_since=began)

    _, [finding] = ask("platform-states", Scene(home, TELEGRAM, [said]))

    assert finding.since == began


@pytest.mark.parametrize("state", ["connected", "connecting", "paused"])
def test_in_service(home: Path, state: str) -> None:
    """What is connected, or about to be, is no fault."""
    result, findings = ask("platform-states", Scene(home, QQ, [claim("qqbot", state)]))

    assert (result.status, findings) == ("ok", [])


def test_ghosts(home: Path) -> None:
    """The state file keeps platforms of earlier lives, and ones that are no longer set up."""
    earlier = claim("qqbot", "fatal", "qq_banned", ago=timedelta(days=2))
    gone = claim("telegram", "fatal", "telegram_polling_conflict")

    scene = Scene(home, OTHERS["wecom"], [earlier, gone, claim("wecom", "connected")])

    assert ask("platform-states", scene)[1] == []


def test_moment_of_reconnecting(home: Path) -> None:
    """QQ closes connections now and then; seconds later the adapter is back."""
    just_now = claim("qqbot", "disconnected", ago=timedelta(seconds=5))

    assert ask("platform-states", Scene(home, QQ, [just_now]))[1] == []


def test_never_started(home: Path) -> None:
    """Set up before the start, and never mentioned: its library is missing."""
    _, [finding] = ask("platform-states", Scene(home, OTHERS["feishu"]))

    assert (finding.code, finding.subject) == ("PLATFORM-DEPS", "feishu")
    assert "FEISHU_APP_ID" in finding.evidence[0].where


def test_a_missing_library_comes_with_the_whole_command(home: Path) -> None:
    """Here for a git checkout, whose environment has no copy of Hermes."""
    checkout = home.parent / "hermes-agent"
    support.put(checkout / "pyproject.toml", "")
    folder = checkout / "venv" / "lib" / "python3.11" / "site-packages"
    support.put(folder / "yaml" / "__init__.py", "")

    class Installed(Scene):
        def hermes_installation(self) -> Installation:
            return Installation(self.version, checkout / "venv", running=True)

    _, [finding] = ask("platform-states", Installed(home, OTHERS["feishu"]))

    python = checkout / "venv" / "bin" / "python"
    assert f"`uv pip install --python {python} --editable '{checkout}[feishu]'`" in finding.next


def test_set_up_after_the_start(home: Path) -> None:
    """A gateway cannot know what was written after it began."""
    support.put(home / ".env", "FEISHU_APP_ID=x\nFEISHU_APP_SECRET=y\n")

    assert ask("platform-states", Scene(home, {}))[1] == []


@pytest.mark.parametrize(
    ("answer", "quote", "title"),
    [
        (
            "{'code': 100016, 'message': 'invalid appid or secret'}",
            "code: 100016, invalid appid or secret",
            "QQ rejects the app secret",
        ),
        ("{'code': 100007, }", "code: 100007", "QQ gives the bot no access token"),
    ],
)
def test_no_token(home: Path, answer: str, quote: str, title: str) -> None:
    """The evidence quotes QQ's answer from the log."""
    log(
        home,
        "gateway.run: Starting Hermes Gateway...",
        qq(f"QQ startup failed: QQ Bot token response missing access_token: {answer}"),
    )

    _, [finding] = ask(
        "platform-states", Scene(home, QQ, [claim("qqbot", "retrying", "qq_connect_error")])
    )

    assert (finding.code, finding.title) == ("QQ-TOKEN", title)
    assert finding.evidence[0].what.endswith(quote)


@pytest.mark.parametrize(
    ("error", "title"),
    [
        ("[Errno -2] Name or service not known", "QQ: the server name cannot be resolved"),
        ("[Errno 111] Connection refused", "QQ is not connected"),
        ("Server error '502 Bad Gateway' for url 'https://bots.qq.com/app'", "QQ is not connected"),
    ],
)
def test_login_without_an_answer(home: Path, error: str, title: str) -> None:
    """Only words of QQ are a refusal; an error of the network is shown as it is."""
    message = f"QQ startup failed: Failed to get QQ Bot access token: {error}"
    refused = "QQ startup failed: QQ Bot token response missing access_token: {'code': 100016}"
    log(home, "gateway.run: Starting Hermes Gateway...", qq(refused), qq(message))
    said = claim("qqbot", "retrying", "qq_connect_error")._replace(error_message=message)

    _, [finding] = ask("platform-states", Scene(home, QQ, [said]))

    assert (finding.code, finding.title) == ("PLATFORM-DOWN", title)
    assert finding.evidence[-1].what == f"retrying: {message}"


def test_given_up(home: Path) -> None:
    """A hundred attempts, and the adapter's last word."""
    log(home, qq("WebSocket closed: code=4009 reason=x"), qq("Max reconnect attempts reached"))

    _, [finding] = ask("platform-states", Scene(home, QQ, [claim("qqbot", "disconnected")]))

    assert finding.code == "QQ-GIVEUP"


def test_4009_without_recovery(home: Path) -> None:
    """Closed with 4009, and not back after two minutes."""
    log(home, qq("WebSocket closed: code=4009 reason=Session timed out"))

    _, [finding] = ask("platform-states", Scene(home, QQ, [claim("qqbot", "disconnected")]))

    assert (finding.code, finding.fix) == ("QQ-4009", "restart-gateway")
    assert "code 4009, Session timed out" in finding.evidence[0].what


def test_4009_for_ever(home: Path) -> None:
    """Every attempt ends in a closing, while the state says connected."""
    loop = [qq("WebSocket closed: code=4009 reason=x"), qq("Reconnected")] * 12
    log(home, qq("Ready, session_id=one"), *loop)

    _, [finding] = ask("platform-states", Scene(home, QQ, [claim("qqbot", "connected")]))

    assert finding.code == "QQ-4009"
    assert "closed 12 times" in finding.evidence[0].what


def test_4009_as_usual(home: Path) -> None:
    """With a session after each closing it is QQ's habit."""
    usual = [qq("WebSocket closed: code=4009 reason=x"), qq("Session resumed")] * 20
    log(home, *usual)

    assert ask("platform-states", Scene(home, QQ, [claim("qqbot", "connected")]))[1] == []


def test_expired_login(home: Path) -> None:
    """Weixin says connected while its login has expired."""
    log(home, "gateway.platforms.weixin: [Weixin] Session expired; pausing for 10 minutes")

    _, [finding] = ask(
        "platform-states", Scene(home, OTHERS["weixin"], [claim("weixin", "connected")])
    )

    assert finding.code == "WX-SESSION-EXPIRED"


def test_log_of_an_earlier_gateway(home: Path) -> None:
    """What was written before the start of this process says nothing about it."""
    log(
        home,
        *[qq("WebSocket closed: code=4009 reason=x")] * 20,
        "gateway.run: Starting Hermes Gateway...",
        qq("Ready, session_id=two"),
    )

    assert ask("platform-states", Scene(home, QQ, [claim("qqbot", "connected")]))[1] == []


def test_secrets_stay(home: Path) -> None:
    """A hostile error code or log line is not repeated."""
    log(home, qq("QQ startup failed: Failed to get QQ Bot access token: s3cr3t-in-a-url"))
    said = claim("qqbot", "fatal", "qq_\x1b[31m s3cr3t=" + "x" * 100)

    _, [finding] = ask("platform-states", Scene(home, QQ, [said]))

    assert "s3cr3t" not in repr(finding)


def test_no_gateway(home: Path) -> None:
    """Without a gateway there is nobody to ask."""
    result, findings = ask("platform-states", Scene(home, QQ, running=False))

    assert (result.status, findings) == ("skipped", [])


def test_since_the_first_failure(home: Path) -> None:
    """The outage began with the first failure after the last connection, not at the last retry."""
    telegram = "plugins.platforms.telegram.adapter: [Telegram]"
    log(
        home,
        f"{telegram} Connect attempt 1/8 failed: ConnectError",
        "gateway.run: ✓ telegram connected",
        f"{telegram} Connect attempt 1/8 failed: ConnectError",
        "gateway.run: ✗ telegram error: telegram connect timed out after 30s",
        "gateway.run: Reconnecting telegram (attempt 2)...",
    )
    retrying = claim("telegram", "retrying", ago=timedelta(0))

    _, [finding] = ask("platform-states", Scene(home, TELEGRAM, [retrying]))

    assert finding.since and retrying.updated_at
    assert 1 < (retrying.updated_at - finding.since).total_seconds() < 5


def test_words_of_the_error(home: Path) -> None:
    """The message that the gateway wrote is evidence; a key in it is hidden."""
    message = "Cannot connect to host api.telegram.org, token=abc123secret"
    retrying = claim("telegram", "retrying")._replace(error_message=message)

    _, [finding] = ask("platform-states", Scene(home, TELEGRAM, [retrying]))

    assert "Cannot connect to host api.telegram.org" in finding.evidence[-1].what
    assert "abc123secret" not in repr(finding)


def test_lines_about_one_library_are_one_problem(home: Path) -> None:
    """Hermes logs a missing library three times, once with the name that people use."""
    log(
        home,
        "gateway.run: Connecting to feishu...",
        "gateway.platform_registry: Platform 'Feishu / Lark' requirements not met "
        "(pip install 'hermes-agent[feishu]')",
        "gateway.run: Platform 'feishu' is registered but adapter creation failed (check it)",
        "gateway.run: No adapter available for feishu",
    )
    text = (home / "logs" / "gateway.log").read_text().replace(" INFO ", " WARNING ")
    support.put(home / "logs" / "gateway.log", text)

    finding = support.finding(support.check(home), "PLATFORM-DEPS")

    assert "pip install 'hermes-agent[feishu]'" in str(finding["evidence"])
    assert "within 0 s" not in finding["detail"]
