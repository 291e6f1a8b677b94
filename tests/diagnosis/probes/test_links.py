"""Whose connection is whose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hermes_doctor.diagnosis.probes import links
from hermes_doctor.diagnosis.probes.links import PlatformConnections, PlatformProof, assign, prove
from hermes_doctor.diagnosis.probes.log_tails import GatewayLogLine
from hermes_doctor.hermes.processes.runtime_files import PlatformState
from hermes_doctor.hermes.processes.sockets import Connection
from hermes_doctor.hermes.settings import platforms
from hermes_doctor.hermes.settings.inputs import Settings
from hermes_doctor.hermes.settings.urls import Endpoint
from tests.helpers.gateway_home import QQ, TELEGRAM, to

DISCORD = {"DISCORD_BOT_TOKEN": "x"}
WEIXIN = {"WEIXIN_TOKEN": "x", "WEIXIN_ACCOUNT_ID": "y"}
ALL = QQ | TELEGRAM | DISCORD | WEIXIN | {"API_SERVER_KEY": "x" * 20}


def sort(
    variables: dict[str, str],
    *table: Connection,
    addresses: dict[str, frozenset[str]] | None = None,
    others: tuple[Endpoint, ...] = (),
) -> dict[str, PlatformConnections]:
    """The links of the platforms that these variables switch on, by name."""
    settings = Settings(variables, frozenset(), {}, ())
    found = platforms.find(settings, (0, 19, 0))
    return {
        one.platform.name: one
        for one in assign(found, table, addresses=addresses, providers=others)
    }


def hows(made: dict[str, PlatformConnections]) -> dict[str, str | None]:
    """How sure each is."""
    return {name: one.how for name, one in made.items()}


def test_each_to_its_own() -> None:
    """Two of Tencent's share its network; the listening platform holds no connection."""
    made = sort(ALL, to("43.128.1.1"), to("149.154.167.220"), to("162.159.1.1"))

    assert hows(made) == {
        "qqbot": "network",
        "weixin": "network",
        "telegram": "network",
        "discord": "likely",
    }
    assert [one.remote for one in made["discord"].connections] == [("162.159.1.1", 443)]


def test_asked_addresses_make_sure() -> None:
    """What the names lead to, where it was asked, is no guess any more."""
    table = [to("162.159.1.1"), to("104.18.9.9")]
    asked = {"gateway.discord.gg": frozenset({"162.159.1.1"})}

    made = sort(DISCORD, *table, addresses=asked)

    assert made["discord"].how == "address"
    assert [one.remote for one in made["discord"].connections] == [("162.159.1.1", 443)]


def test_providers_are_left_out() -> None:
    """A model's address, asked or written as a number, is no platform's."""
    asked = {"openrouter.ai": frozenset({"104.18.9.9"})}
    ends = (Endpoint("openrouter.ai", 443), Endpoint("10.0.0.7", 443))

    made = sort(DISCORD, to("104.18.9.9"), to("10.0.0.7"), addresses=asked, others=ends)

    assert made["discord"].how is None


def test_callers_are_not_connections_of_ours() -> None:
    """Whoever called our API server has nothing to do with a platform."""
    listens = Connection(("0.0.0.0", 8642), None, "LISTEN")
    called = Connection(("10.0.0.1", 8642), ("43.128.1.1", 443), "ESTABLISHED")

    assert hows(sort(QQ, listens, called)) == {"qqbot": None}


@pytest.mark.parametrize("state", ["SYN_SENT", "CLOSE_WAIT", "TIME_WAIT", "FIN_WAIT2"])
def test_only_established_counts(state: str) -> None:
    """What is not up yet, or no more, is no connection; attempts are counted."""
    made = sort(QQ, to("43.128.1.1", state=state))["qqbot"]

    assert (made.how, made.trying) == (None, int(state == "SYN_SENT"))


def test_moved_away_from_its_network() -> None:
    """A platform whose address the operator has set is not looked for in its usual network."""
    variables = WEIXIN | {"WEIXIN_BASE_URL": "http://10.0.0.9:99"}

    assert hows(sort(variables, to("10.0.0.9", 99))) == {"weixin": "address"}
    assert sort(variables, to("10.0.0.9", 98))["weixin"].how == "elsewhere"


def test_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes back within a moment was never lost; one that does not is."""
    monkeypatch.setattr(links, "PATIENCE", 0.6)
    tables = iter([[], [], [to("43.128.1.1")]])

    def look() -> list[Connection]:
        return next(tables, [])

    def those(table: list[Connection]) -> list[PlatformConnections]:
        return list(sort(QQ, *table).values())

    assert [one.how for one in links.wait_for_links(look, those, {"qqbot"})] == ["network"]
    assert [one.how for one in links.wait_for_links(look, those, {"qqbot"})] == [None]
    assert [one.how for one in links.wait_for_links(look, those, set())] == [None]


NOW = datetime(2026, 11, 15, 4, 13, tzinfo=UTC)
ADAPTER = "gateway.platforms.qqbot.adapter"
READY, RESUMED = "[QQBot:1] Ready, session_id=one", "[QQBot:1] Session resumed"
CLOSED = "[QQBot:1] WebSocket closed: code=4009 reason=refused"


def claim(state: str, name: str = "qqbot", message: str | None = None) -> PlatformState:
    """What the gateway reports."""
    return PlatformState(name, state, None, NOW, message)


def said(*texts: str, logger: str = ADAPTER, level: str = "INFO") -> list[GatewayLogLine]:
    """Lines of an adapter, one second apart; a closed connection is a warning."""
    return [
        GatewayLogLine(
            NOW + timedelta(seconds=n), logger, text, "WARNING" if "closed" in text else level
        )
        for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize("last", [READY, RESUMED])
def test_qq_is_connected_once_it_has_a_session(last: str) -> None:
    """The gateway says "connected" before ADAPTER has accepted anything."""
    early = prove("qqbot", claim("connected"), said("[QQBot:1] Connected"), running=True)
    assert not early.connected and not early.final and "accepted" in early.reason
    assert prove("qqbot", claim("connected"), said(CLOSED, last), running=True).connected


def test_qq_that_is_closed_again() -> None:
    """The reason is what ADAPTER said, and the time is when the connection was lost."""
    words = said(READY, CLOSED, "[QQBot:1] Reconnected", CLOSED)
    proof = prove("qqbot", claim("connected"), words, running=True)
    assert (proof.connected, proof.final) == (False, False)
    assert proof.reason == "WebSocket closed: code=4009 reason=refused"
    assert proof.since == NOW + timedelta(seconds=1)


def test_a_message_proves_it() -> None:
    """Whoever gets messages is connected."""
    came = said("inbound message: platform=qqbot user=U chat=U msg='x'", logger="gateway.run")
    assert prove("qqbot", claim("connected"), [*said(CLOSED), *came], running=True).connected


def test_weixin_that_cannot_poll() -> None:
    """Weixin is called connected before anything was sent."""
    words = said("[Weixin] poll error (1/3): timeout", logger="gateway.platforms.weixin")
    assert not prove("weixin", claim("connected", "weixin"), words, running=True).connected
    assert prove("weixin", claim("connected", "weixin"), [], running=True).connected


def test_a_platform_that_stays_away() -> None:
    """Fatal and never started are final; retrying is not."""
    fatal = prove("qqbot", claim("fatal", message="Bot is offline"), [], running=True)
    assert (fatal.final, fatal.reason) == (True, "Bot is offline")
    retrying = prove("telegram", claim("retrying", "telegram"), [], running=True)
    assert (retrying.connected, retrying.final, retrying.reason) == (False, False, "retrying")
    assert prove("feishu", None, [], running=True).final
    assert not prove("feishu", None, [], running=False).final


def test_a_reason_shows_no_secret() -> None:
    """The words of a server may repeat a token."""
    words = said(f"[QQBot:1] WebSocket closed: token=sk-{'a' * 40}")
    proof = prove("qqbot", claim("connected"), words, running=True)
    assert "a" * 40 not in proof.reason


@pytest.mark.parametrize(
    ("seconds", "connected", "expected"),
    [(5, False, True), (90, False, False), (None, False, False), (5, True, False)],
)
def test_a_connection_lost_just_now_is_reconnecting(
    seconds: int | None, connected: bool, expected: bool
) -> None:
    """For a minute; without a time nobody knows how long it has been lost."""
    since = None if seconds is None else datetime.now(UTC) - timedelta(seconds=seconds)

    assert PlatformProof(connected, since=since).is_reconnecting is expected
