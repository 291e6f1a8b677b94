"""TOKEN-DUP: the same bot in two homes under one root."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import locked_out_users, support
from tests.helpers.gateway_home import Scene, ask


def two(home: Path, name: str = "work", env: str = locked_out_users.TOKEN) -> Path:
    """A profile beside the root home."""
    support.put(home / ".env", locked_out_users.TOKEN)
    other = home / "profiles" / name
    support.put(other / ".env", env)
    return other


def test_copied(home: Path) -> None:
    """A profile that was copied with its .env; the token is not shown."""
    other = two(home)

    _, [finding] = ask("shared-tokens", Scene(home, {}, running=False))

    assert (finding.code, finding.severity) == ("TOKEN-DUP", "warning")
    assert finding.title == "profiles/work uses the same bot on Telegram"
    assert "No file there shows that a gateway has run" in finding.detail
    assert finding.subject == "telegram work"
    assert locked_out_users.SECRET not in repr(finding)
    support.put(other / "gateway_state.json", "{}")
    _, [finding] = ask("shared-tokens", Scene(home, {}, running=False))
    assert finding.severity == "warning"
    assert "none has run" not in finding.detail


def test_seen_from_the_profile(home: Path) -> None:
    """It is told for both."""
    other = two(home)
    support.put(other / "config.yaml", support.CONFIG)

    _, findings = ask("shared-tokens", Scene(other, {}, running=False))

    assert [one.code for one in findings] == ["TOKEN-DUP"]


@pytest.mark.parametrize(
    "env", ["", "TELEGRAM_BOT_TOKEN=654321:another\n", "# " + locked_out_users.TOKEN]
)
def test_bots_of_their_own(home: Path, env: str) -> None:
    """Another token, or none."""
    two(home, env=env)

    result, findings = ask("shared-tokens", Scene(home, {}, running=False))

    assert (result.status, findings) == ("ok", [])


def test_no_bot(home: Path) -> None:
    """A home without platforms."""
    result, _ = ask("shared-tokens", Scene(home, {}, running=False))

    assert result.status == "skipped"


def test_a_profile_that_is_closed_to_us(home: Path) -> None:
    """One that cannot be read tells nothing."""
    other = two(home)
    (other / ".env").unlink()
    (other / ".env").mkdir()

    assert ask("shared-tokens", Scene(home, {}, running=False))[1] == []
