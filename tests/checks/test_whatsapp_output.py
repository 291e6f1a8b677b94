"""WA-BRIDGE and WA-NOT-PAIRED: the bridge's own output tells why it does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding
from tests.helpers import support
from tests.helpers.gateway_home import Scene, ask, claim

WORKS = "🌉 WhatsApp bridge listening on port 3000 (mode: bot)\n✅ WhatsApp connected!\n"
MODULE = (
    "node:internal/modules/package_json_reader:316\n  throw new ERR_MODULE_NOT_FOUND(name);\n"
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@whiskeysockets/baileys' imported from x\n"
)


def _ask(
    home: Path, output: str, *, running: bool = False, state: str = "disconnected"
) -> list[Finding]:
    support.put(home / "whatsapp" / "bridge.log", output)
    support.put(home / ".env", "WHATSAPP_ENABLED=true\n")
    scene = Scene(home, {"WHATSAPP_ENABLED": "true"}, [claim("whatsapp", state)], running=running)
    return ask("whatsapp-output", scene)[1]


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        (WORKS + MODULE, "WA-BRIDGE", "npm package"),
        ("Error: listen EADDRINUSE: address already in use 127.0.0.1:3000\n", "WA-BRIDGE", "3000"),
        (WORKS + "❌ Logged out. Delete session and restart to re-auth\n", "WA-NOT-PAIRED", "out"),
        ("⚠️  Connection closed (reason: 405). Reconnecting in 3s...\n" * 6, "WA-BRIDGE", "closes"),
        (WORKS + "TypeError: fetch failed\n    at node:internal\n", "WA-BRIDGE", "error"),
    ],
)
def test_reasons(home: Path, output: str, code: str, words: str) -> None:
    """Each reason has its own words."""
    [finding] = _ask(home, output)

    assert (finding.code, finding.severity, finding.subject) == (code, "error", "whatsapp")
    assert words in finding.title


def test_healthy(home: Path) -> None:
    """An error before the connection, one lost connection, or a platform that is connected."""
    assert _ask(home, WORKS) == []
    assert _ask(home, MODULE + WORKS) == []
    assert _ask(home, WORKS + "⚠️  Connection closed (reason: 428). Reconnecting in 3s...\n") == []
    assert _ask(home, MODULE, running=True, state="connected") == []
