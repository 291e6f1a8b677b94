"""no-platform: a bot that people used, and that nobody can reach any more."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.helpers import fake_gateway, support
from tests.helpers.check_home import TELEGRAM, look
from tests.helpers.gateway_home import Scene, ask, claim

ID = "no-platform"


def talked(home: Path, source: str) -> None:
    """Write a conversation on a platform into the message history."""
    with sqlite3.connect(home / "state.db") as history:
        history.execute(
            "INSERT INTO sessions (id, source, started_at) VALUES ('talk', ?, 1.0)", (source,)
        )
    history.close()


def test_a_home_that_was_used(home: Path) -> None:
    """An error with the platform, its conversations and its variable."""
    talked(home, "telegram")

    _, [finding] = look(home, ID)

    assert (finding.code, finding.severity) == ("PLATFORM-NONE", "error")
    assert "Telegram" in finding.detail
    assert finding.evidence[0].where == "state.db"
    assert "TELEGRAM_BOT_TOKEN" in finding.next


def test_the_gateway_remembers_a_platform(home: Path) -> None:
    """gateway_state.json names a platform that was connected."""
    support.put(home / ".env", "")
    scene = Scene(home, {}, [claim("qqbot", "disconnected")], running=False)

    [finding] = ask(ID, scene)[1]

    assert finding.severity == "error"
    assert "QQ" in finding.detail


@pytest.mark.parametrize("source", ["cli", "cron", "api_server", "webhook"])
def test_never_used_by_people(home: Path, source: str) -> None:
    """A new home, or one that only programs and the command line use."""
    talked(home, source)

    result, findings = look(home, ID)

    assert (result.status, findings) == ("skipped", [])


def test_healthy(home: Path) -> None:
    """A platform is set up."""
    talked(home, "telegram")

    assert look(home, ID, TELEGRAM)[1] == []


def test_the_command_says_that_the_bot_is_silent(home: Path) -> None:
    """The verdict, the state and the exit code agree."""
    talked(home, "telegram")

    done = support.doctor("check", "--home", home)

    assert done.code == 1
    assert "not working: no platform is switched on any more" in done.out
    assert "not set up yet" not in done.out


def test_beside_a_stopped_gateway(home: Path) -> None:
    """It is a problem of its own: a gateway that is started again has no platform, either."""
    fake_gateway.ended(home)
    talked(home, "telegram")

    finding = support.finding(support.check(home), "PLATFORM-NONE")

    assert (finding["severity"], finding["caused_by"]) == ("error", None)
