"""A platform is connected when its own lines prove it, not when the gateway says so too early."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hermes_doctor.diagnosis.probes.last_log_lines import GatewayLogLine
from hermes_doctor.diagnosis.probes.platform_proof import PlatformProof, prove
from hermes_doctor.hermes.processes.runtime_files import PlatformState

NOW = datetime(2026, 11, 15, 4, 13, tzinfo=UTC)
QQ = "gateway.platforms.qqbot.adapter"
READY, RESUMED = "[QQBot:1] Ready, session_id=one", "[QQBot:1] Session resumed"
CLOSED = "[QQBot:1] WebSocket closed: code=4009 reason=refused"


def claim(state: str, name: str = "qqbot", message: str | None = None) -> PlatformState:
    """What the gateway reports."""
    return PlatformState(name, state, None, NOW, message)


def said(*texts: str, logger: str = QQ, level: str = "INFO") -> list[GatewayLogLine]:
    """Lines of an adapter, one second apart; a closed connection is a warning."""
    return [
        GatewayLogLine(
            NOW + timedelta(seconds=n), logger, text, "WARNING" if "closed" in text else level
        )
        for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize("last", [READY, RESUMED])
def test_qq_is_connected_once_it_has_a_session(last: str) -> None:
    """The gateway says "connected" before QQ has accepted anything."""
    early = prove("qqbot", claim("connected"), said("[QQBot:1] Connected"), running=True)
    assert not early.connected and not early.final and "accepted" in early.reason
    assert prove("qqbot", claim("connected"), said(CLOSED, last), running=True).connected


def test_qq_that_is_closed_again() -> None:
    """The reason is what QQ said, and the time is when the connection was lost."""
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
