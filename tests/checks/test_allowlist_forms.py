"""AUTHZ-UNAUTHORIZED: entries of allowlists that match nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, support

ID = "allowlist-forms"
SIGNAL = "SIGNAL_HTTP_URL=http://127.0.0.1:8080\nSIGNAL_ACCOUNT=+491701234567\n"
SLACK = "SLACK_BOT_TOKEN=xoxb-1234567890\nSLACK_APP_TOKEN=xapp-1234567890\n"
QQ = "QQ_APP_ID=1903879172\nQQ_CLIENT_SECRET=b45a750590c882504074addddbf84f9f\n"
TELEGRAM = config_homes.TELEGRAM
WRONG = {
    "telegram name": (TELEGRAM + "TELEGRAM_ALLOWED_USERS=@kelly\n", "error"),
    "one of two": (TELEGRAM + "TELEGRAM_ALLOWED_USERS=7001,kelly\n", "warning"),
    "chat of a group": (
        TELEGRAM + "TELEGRAM_ALLOWED_USERS=7001\nTELEGRAM_GROUP_ALLOWED_CHATS=@our_group\n",
        "warning",
    ),
    "slack name": (SLACK + "SLACK_ALLOWED_USERS=kelly\n", "error"),
    "qq number": (QQ + "QQ_ALLOWED_USERS=123456789\n", "error"),
    "signal number": (SIGNAL + "SIGNAL_ALLOWED_USERS=491701234568\n", "error"),
    "signal group": (
        SIGNAL + "SIGNAL_ALLOWED_USERS=+491701234568\nSIGNAL_GROUP_ALLOWED_USERS=group.ZXdHYWlu=\n",
        "warning",
    ),
}
RIGHT = {
    "telegram": TELEGRAM
    + "TELEGRAM_ALLOWED_USERS=7001, 7002\nTELEGRAM_GROUP_ALLOWED_CHATS=-1007\n",
    "everyone": TELEGRAM + "TELEGRAM_ALLOWED_USERS=*\n",
    "every group": SIGNAL
    + "SIGNAL_ALLOWED_USERS=+491701234568\nSIGNAL_GROUP_ALLOWED_USERS=group.ZXdHYWlu=,*\n",
    "no list": TELEGRAM
    + "TELEGRAM_ALLOW_ALL_USERS=true\nTELEGRAM_GROUP_ALLOWED_CHATS=@our_group\n",
    "slack": SLACK + "SLACK_ALLOWED_USERS=U0ASD8A5ZJP\n",
    "qq": QQ + "QQ_ALLOWED_USERS=3F1C9A77D0B24E5C8A6E9D21B7F04C11\n",
    "signal": SIGNAL + "SIGNAL_ALLOWED_USERS=+491701234568\nSIGNAL_GROUP_ALLOWED_USERS=ZXdHYWlu=\n",
}


@pytest.mark.parametrize("case", WRONG)
def test_found(home: Path, case: str) -> None:
    """The entry is named with its variable; it is an error if nobody else is approved."""
    env, severity = WRONG[case]

    _, [finding] = config_homes.look(config_homes.write(home, "", env), ID)

    assert (finding.code, finding.severity) == ("AUTHZ-UNAUTHORIZED", severity)
    assert finding.evidence[0].where.startswith(".env")
    assert finding.evidence[0].what in env


@pytest.mark.parametrize("case", RIGHT)
def test_right(home: Path, case: str) -> None:
    """Ids as the platforms write them."""
    _, findings = config_homes.look(config_homes.write(home, "", RIGHT[case]), ID)

    assert findings == []


def test_paired_user(home: Path) -> None:
    """A paired user still gets answers, so it is a warning."""
    support.put(home / "pairing" / "telegram-approved.json", '{"1": {}}')

    env = TELEGRAM + "TELEGRAM_ALLOWED_USERS=@kelly\n"
    _, [finding] = config_homes.look(config_homes.write(home, "", env), ID)

    assert finding.severity == "warning"
