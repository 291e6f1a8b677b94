"""move-port: a port of its own for a platform."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.helpers import support
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import cure

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


def test_moves_the_bridge(home: Path) -> None:
    """Two profiles with WhatsApp: this one's bridge gets another port, in config.yaml."""
    support.put(home / ".env", "WHATSAPP_ENABLED=true\n")
    support.put(home / "profiles" / "shop" / ".env", "WHATSAPP_ENABLED=true\n")
    before = (home / "config.yaml").read_text()

    cured = cure(home, "PLATFORM-PORT-CLASH", "move-port", "whatsapp shop")

    after = (home / "config.yaml").read_text()
    added = yaml.safe_load(after)["platforms"]["whatsapp"]["extra"]
    assert (after.startswith(before), added["bridge_port"] > 3000) == (True, True)
    cured.undo()


PLANTED = Planted("PLATFORM-PORT-CLASH", lambda home: support.put(home / ".env", CLASH))
