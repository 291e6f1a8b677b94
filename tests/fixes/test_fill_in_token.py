"""fill-in-token: a token where Hermes reads it."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import support
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import SECRET, cure


def test_fills_in(home: Path) -> None:
    """The value of the variable that config.yaml refers to, which is not shown; and undone."""
    token = f"7123456789:AAH{SECRET}{SECRET}"
    config = "platforms:\n  telegram:\n    enabled: true\n    token: ${TG}\n"
    support.put(home / "config.yaml", config)
    support.put(home / ".env", f"TG={token}\n")

    cured = cure(home, "PLATFORM-CREDENTIALS", "fill-in-token", "telegram platforms.telegram.token")

    assert (home / ".env").read_text() == f"TG={token}\nTELEGRAM_BOT_TOKEN={token}\n"
    assert (home / "config.yaml").read_text() == config
    cured.undo()


def planted(home: Path) -> None:
    """A token that is only a reference."""
    config = "platforms:\n  telegram:\n    enabled: true\n    token: ${TG}\n"
    support.put(home / "config.yaml", config)
    support.put(home / ".env", f"TG=7123456789:AAH{SECRET}{SECRET}\n")


PLANTED = Planted("PLATFORM-CREDENTIALS", planted)
