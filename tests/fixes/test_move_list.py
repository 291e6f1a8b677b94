"""move-list: users get to the variable that is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle
from tests.helpers.fix_contract import Planted

SLACK = "SLACK_BOT_TOKEN=xoxb-1234567890\nSLACK_APP_TOKEN=xapp-1234567890\n"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "SLACK_ALLOWED_USERS=U1,U2\n"),
        ("SLACK_ALLOWED_USERS=U0\n", "SLACK_ALLOWED_USERS=U0,U1,U2\n"),
    ],
)
def test_cures_and_undoes(home: Path, before: str, after: str) -> None:
    """Those who are let in already stay."""
    config_homes.write(home, "slack:\n  allow_from: [U1, U2]\n  reactions: true\n", SLACK + before)

    cured = fix_cycle.cure(home, "CFG-ALLOWLIST-KEY", "move-list", "slack.allow_from")

    assert (home / ".env").read_text() == SLACK + after
    assert (home / "config.yaml").read_text() == "slack:\n  reactions: true\n"
    cured.undo()


PLANTED = Planted(
    "CFG-ALLOWLIST-KEY",
    lambda home: config_homes.write(home, "slack:\n  allow_from: [U1, U2]\n", SLACK),
)
