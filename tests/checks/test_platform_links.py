"""The kernel's word about the gateway's connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.processes.sockets import Connection
from tests.helpers import support
from tests.helpers.gateway_home import QQ, TELEGRAM, Scene, ask, claim, to

DISCORD = {"DISCORD_BOT_TOKEN": "x"}
WEIXIN = {"WEIXIN_TOKEN": "x", "WEIXIN_ACCOUNT_ID": "y"}
SLACK = {"SLACK_BOT_TOKEN": "x", "SLACK_APP_TOKEN": "y"}
FEISHU = {"FEISHU_APP_ID": "x", "FEISHU_APP_SECRET": "y"}
TENCENT = to("43.128.5.6")


@pytest.mark.parametrize(
    ("variables", "name", "connection"),
    [
        (QQ, "qqbot", TENCENT),
        (QQ, "qqbot", to("43.159.200.1")),
        (QQ, "qqbot", to("109.244.1.1")),
        (QQ, "qqbot", to("2402:4e00:1::1")),
        (WEIXIN, "weixin", TENCENT),
        (TELEGRAM, "telegram", to("149.154.167.220")),
        (TELEGRAM, "telegram", to("2001:67c:4e8:f004::9")),
        (QQ | {"HTTPS_PROXY": "http://127.0.0.1:7890"}, "qqbot", to("127.0.0.1", 7890)),
        (QQ | {"ALL_PROXY": "socks5://u:p@localhost:1080"}, "qqbot", to("::1", 1080)),
        (TELEGRAM | {"TELEGRAM_PROXY": "socks5://10.1.1.1:1"}, "telegram", to("10.1.1.1", 1)),
        (WEIXIN | {"WEIXIN_BASE_URL": "http://127.0.0.1:99/"}, "weixin", to("127.0.0.1", 99)),
        (QQ, "qqbot", to("198.18.0.77")),
    ],
)
def test_connected(
    home: Path, variables: dict[str, str], name: str, connection: Connection
) -> None:
    """To its network, through a proxy or a tunnel, or where the operator has moved it to."""
    scene = Scene(home, variables, [claim(name, "connected")], [connection])

    result, findings = ask("platform-links", scene)

    assert (result.status, findings) == ("ok", [])


@pytest.mark.parametrize(
    ("variables", "name", "code"),
    [
        (QQ, "qqbot", "PLATFORM-DEAF"),
        (TELEGRAM, "telegram", "PLATFORM-DEAF"),
        (DISCORD, "discord", "DC-ZOMBIE"),
        (SLACK, "slack", "SLACK-ZOMBIE"),
        (FEISHU, "feishu", "FEISHU-WS-DEAD"),
        (WEIXIN, "weixin", "WX-ZOMBIE-POLL"),
    ],
)
def test_deaf(home: Path, variables: dict[str, str], name: str, code: str) -> None:
    """Said to be connected, without a connection: closed ones and attempts do not count."""
    table = [
        Connection(("0.0.0.0", 8642), None, "LISTEN"),
        Connection(("127.0.0.1", 8642), ("127.0.0.1", 40000), "ESTABLISHED"),
        to("43.128.5.6", state="CLOSE_WAIT"),
        to("43.128.5.6", state="SYN_SENT"),
    ]

    result, [finding] = ask(
        "platform-links", Scene(home, variables, [claim(name, "connected")], table)
    )

    assert result.status == "problem"
    assert (finding.code, finding.severity, finding.fix) == (code, "error", "restart-gateway")
    assert "1 CLOSE_WAIT, 1 ESTABLISHED, 1 SYN_SENT" in finding.evidence[1].what


def test_not_said_to_be_connected(home: Path) -> None:
    """What the gateway itself calls broken is another check's business."""
    scene = Scene(home, QQ, [claim("qqbot", "fatal", "qq_banned")])

    assert ask("platform-links", scene)[1] == []


def test_likely(home: Path) -> None:
    """Behind a CDN a connection at 443 that is no other platform's counts, and is said to."""
    scene = Scene(
        home,
        QQ | DISCORD,
        [claim("qqbot", "connected"), claim("discord", "connected")],
        [TENCENT, to("162.159.135.234")],
    )

    result, [finding] = ask("platform-links", scene)

    assert result.status == "ok"
    assert (finding.code, finding.severity, finding.subject) == (
        "PLATFORM-LIKELY",
        "info",
        "discord",
    )
    assert "162.159.135.234:443" in finding.evidence[0].what
    assert "--network" in finding.next


def test_other_platforms_connections_do_not_count(home: Path) -> None:
    """QQ's connection does not make Discord connected."""
    scene = Scene(
        home,
        QQ | DISCORD,
        [claim("qqbot", "connected"), claim("discord", "connected")],
        [TENCENT],
    )

    assert [one.code for one in ask("platform-links", scene)[1]] == ["DC-ZOMBIE"]


def test_outside_the_known_ranges(home: Path) -> None:
    """A connection that leads elsewhere is named, and is no alarm."""
    scene = Scene(home, QQ, [claim("qqbot", "connected")], [to("203.0.113.7")])

    _, [finding] = ask("platform-links", scene)

    assert (finding.code, finding.severity) == ("PLATFORM-LIKELY", "info")
    assert "outside" in finding.detail


def test_providers_connection_is_no_platforms(home: Path) -> None:
    """The model on this machine is not QQ."""
    config = "model: {provider: custom, default: m, base_url: 'http://127.0.0.1:11434/v1'}\n"
    support.put(home / "config.yaml", config)
    scene = Scene(home, QQ, [claim("qqbot", "connected")], [to("127.0.0.1", 11434)])

    assert [one.code for one in ask("platform-links", scene)[1]] == ["PLATFORM-DEAF"]


@pytest.mark.parametrize(
    ("dead", "others", "found"),
    [
        ({"unsent": 96, "tries": 7, "silent": 40.0, "quiet": 60.0}, [], True),
        ({"unsent": 96, "tries": 7, "silent": 40.0}, [{}], True),
        ({"unsent": 96, "tries": 7, "silent": 40.0}, [{"quiet": 300.0}], True),
        ({"unsent": 96, "tries": 7, "silent": 40.0}, [{"quiet": 2.0}], False),
        ({"unsent": 96, "tries": 1, "silent": 2.0}, [], False),
        ({"unsent": 96, "tries": 4, "silent": 3.0}, [], False),
        ({"unsent": 96}, [], False),
        ({"quiet": 4000.0, "silent": 5.0}, [], True),
        ({"quiet": 4000.0, "silent": 5.0}, [{"quiet": 500.0}], True),
        ({"quiet": 4000.0, "silent": 5.0}, [{"quiet": 12.0}], False),
        ({"quiet": 100.0, "silent": 5.0}, [], False),
        ({}, [], False),
    ],
)
def test_half_open(
    home: Path, dead: dict[str, float], others: list[dict[str, float]], found: bool
) -> None:
    """Bytes that nobody acknowledges, or no word for too long; a live one beside it is enough."""
    table = [TENCENT._replace(**one) for one in (dead, *others)]  # type: ignore[arg-type]

    _, findings = ask("platform-links", Scene(home, QQ, [claim("qqbot", "connected")], table))

    assert [one.code for one in findings] == (["NET-SLEEP-WAKE"] if found else [])
    if found:
        assert (findings[0].severity, findings[0].fix) == ("error", "restart-gateway")
        assert findings[0].since is not None


@pytest.mark.parametrize(
    ("count", "variables", "code", "severity"),
    [
        (19, TELEGRAM, None, ""),
        (20, TELEGRAM, "TG-POOL-EXHAUST", "warning"),
        (100, TELEGRAM, "TG-POOL-EXHAUST", "error"),
        (50, QQ, "NET-CLOSE-WAIT", "warning"),
    ],
)
def test_pile(
    home: Path, count: int, variables: dict[str, str], code: str | None, severity: str
) -> None:
    """Connections that only the other side has closed."""
    table = [to("149.154.167.220", state="CLOSE_WAIT")] * count

    _, findings = ask("platform-links", Scene(home, variables, (), table))

    assert [one.code for one in findings] == ([code] if code else [])
    assert all(one.severity == severity for one in findings)


def test_missing_rights(home: Path) -> None:
    """What may not be seen is unknown, never in order."""

    class Closed(Scene):
        def machine_connections(self, pid: int) -> list[Connection]:
            raise CouldNotLook("you may not see the connections of process 4242")

    result, findings = ask("platform-links", Closed(home, QQ, [claim("qqbot", "connected")]))

    assert (result.status, findings) == ("unknown", [])
    assert "may not" in (result.reason or "")


def test_no_gateway(home: Path) -> None:
    """Nobody to look at."""
    assert ask("platform-links", Scene(home, QQ, running=False))[0].status == "skipped"
