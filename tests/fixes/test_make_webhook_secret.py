"""make-webhook-secret: the secret by which Telegram's calls are known."""

from __future__ import annotations

import re
from pathlib import Path

from tests.helpers import support
from tests.helpers.check_home import TELEGRAM
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import cure


def test_makes(home: Path) -> None:
    """A fresh one each time, never shown; undone byte for byte."""
    env = f"{TELEGRAM}TELEGRAM_WEBHOOK_URL=https://bot.example/telegram\n"
    support.put(home / ".env", env)
    shown = support.doctor("fix", "WEBHOOK-SECRET", "--home", home)

    cured = cure(home, "WEBHOOK-SECRET", "make-webhook-secret", "telegram")

    added = (home / ".env").read_text().removeprefix(env)
    match = re.fullmatch(r"TELEGRAM_WEBHOOK_SECRET=([0-9a-f]{64})\n", added)
    assert match
    assert not re.search(r"[0-9a-f]{64}", shown.out)
    for receipt in (home / "backups" / "doctor" / "runs").rglob("*.json"):
        assert match[1] not in receipt.read_text()
    cured.undo()


WEBHOOK = f"{TELEGRAM}TELEGRAM_WEBHOOK_URL=https://bot.example/telegram\n"
PLANTED = Planted("WEBHOOK-SECRET", lambda home: support.put(home / ".env", WEBHOOK))
