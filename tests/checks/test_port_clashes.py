"""port-clashes: one port for one platform of one gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.check_home import look

ID = "port-clashes"
WECOM = "WECOM_CALLBACK_CORP_ID=ww1\nWECOM_CALLBACK_CORP_SECRET=abcd\n"
BUBBLES = "BLUEBUBBLES_SERVER_URL=http://mac:1234\nBLUEBUBBLES_PASSWORD=abcd\n"
GRAPH = "MSGRAPH_WEBHOOK_ENABLED=true\n"
LINE = "LINE_CHANNEL_ACCESS_TOKEN=abcd\nLINE_CHANNEL_SECRET=abcd\n"
API = "API_SERVER_KEY=0123456789abcdef0123456789abcdef\n"


@pytest.mark.parametrize(
    ("env", "port"),
    [
        (WECOM + BUBBLES, 8645),
        (GRAPH + LINE, 8646),
        (f"{API}API_SERVER_PORT=9000\nWEBHOOK_ENABLED=true\nWEBHOOK_PORT=9000\n", 9000),
    ],
)
def test_one_gateway(home: Path, env: str, port: int) -> None:
    """By their own ports or by those that were set."""
    _, [finding] = look(home, ID, env)

    assert (finding.code, finding.severity) == ("PLATFORM-PORT-CLASH", "error")
    assert f"port {port}" in finding.title
    assert finding.fix == "move-port"
    assert finding.data["port"] not in (8642, 8644, 8645, 8646, 9000)


def test_in_order(home: Path) -> None:
    """One of them has another port, or does not listen."""
    assert look(home, ID, WECOM + BUBBLES + "BLUEBUBBLES_WEBHOOK_PORT=9001\n")[1] == []
    assert look(home, ID, f"{WECOM}TELEGRAM_BOT_TOKEN=1:a\n")[1] == []
    assert look(home, ID)[0].status == "skipped"


def profile(home: Path, env: str, *, used: bool) -> Path:
    """A profile beside the root home."""
    support.put(home / "profiles" / "shop" / ".env", env)
    if used:
        support.put(home / "profiles" / "shop" / "gateway_state.json", "{}")
    return home / "profiles" / "shop"


@pytest.mark.parametrize(("used", "severity"), [(True, "warning"), (False, "info")])
@pytest.mark.parametrize("env", [API, "WHATSAPP_ENABLED=true\n"])
def test_profiles(home: Path, env: str, used: bool, severity: str) -> None:
    """A profile that has had a gateway wants the same port; one that never had may never."""
    profile(home, env, used=used)

    _, [finding] = look(home, ID, env)

    assert (finding.code, finding.severity) == ("PLATFORM-PORT-CLASH", severity)
    assert "profile shop" in finding.title


def test_from_the_profile(home: Path) -> None:
    """The same seen from there, unless one gateway works for all."""
    work = profile(home, API, used=True)
    support.put(home / ".env", API)

    assert "the root home" in look(work, ID, API)[1][0].title
    support.put(home / "config.yaml", "gateway:\n  multiplex_profiles: true\n")
    assert look(work, ID, API)[1] == []
    assert look(home, ID, API, "gateway:\n  multiplex_profiles: true\n")[1] == []


def test_other_ports(home: Path) -> None:
    """Profiles with ports of their own."""
    profile(home, f"{API}API_SERVER_PORT=8700\n", used=True)

    assert look(home, ID, API)[1] == []
