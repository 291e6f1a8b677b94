"""move-port: a port of its own for a platform."""

from __future__ import annotations

from pathlib import Path

from tests import support
from tests.curing import cure

CLASH = (
    "WECOM_CALLBACK_CORP_ID=ww1\nWECOM_CALLBACK_CORP_SECRET=abcd\n"
    "BLUEBUBBLES_SERVER_URL=http://mac:1234\nBLUEBUBBLES_PASSWORD=abcd\n"
)


def test_moves(home: Path) -> None:
    """A variable is added that sets another port; undone byte for byte."""
    support.put(home / ".env", CLASH)

    cured = cure(home, "PLATFORM-PORT-CLASH", "move-port", "bluebubbles wecom_callback")

    added = (home / ".env").read_text().removeprefix(CLASH)
    name, _, port = added.strip().partition("=")
    assert (name, int(port) > 8646) == ("WECOM_CALLBACK_PORT", True)
    cured.undo()


def test_moves_what_is_set(home: Path) -> None:
    """A port that stands in .env is changed where it stands."""
    support.put(home / ".env", f"WECOM_CALLBACK_PORT=8645\n{CLASH}")

    cured = cure(home, "PLATFORM-PORT-CLASH", "move-port", "bluebubbles wecom_callback")

    assert (home / ".env").read_text().endswith(CLASH)
    cured.undo()
