"""set-home-channel: the chat that the results of jobs go to."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import support
from tests.helpers.check_home import TELEGRAM
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import cure
from tests.helpers.real.healthy_homes import job


def test_names_the_chat(home: Path) -> None:
    """The chat with the only user; undone byte for byte."""
    env = f"{TELEGRAM}TELEGRAM_ALLOWED_USERS=42\n"
    support.put(home / ".env", env)
    support.put(home / "cron" / "jobs.json", job("telegram"))

    cured = cure(home, "CRON-DELIVERY", "set-home-channel", "telegram")

    assert (home / ".env").read_text() == f"{env}TELEGRAM_HOME_CHANNEL=42\n"
    cured.undo()


def planted(home: Path) -> None:
    """A job for a platform with one user and no chat of its own."""
    support.put(home / ".env", f"{TELEGRAM}TELEGRAM_ALLOWED_USERS=42\n")
    support.put(home / "cron" / "jobs.json", job("telegram"))


PLANTED = Planted("CRON-DELIVERY", planted)
