"""QQ-IS-RECONNECT before the gateway has tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from tests.helpers import support
from tests.helpers.cron_homes import running
from tests.helpers.one_check import ask

QQ = "QQ_APP_ID=102000001\nQQ_CLIENT_SECRET=x\n"
DISCORD = "DISCORD_BOT_TOKEN=abcdefghijkl\n"
ADAPTER = "gateway/platforms/qqbot/adapter.py"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Where the code of the installed Hermes lies."""
    return tmp_path / "venv/lib/python3.11/site-packages"


def found(
    home: Path, monkeypatch: pytest.MonkeyPatch, packages: Path, version: str, env: str
) -> list[Finding]:
    """What is said of these settings and this release."""
    place = Installation(version, packages.parents[2], running=False)
    monkeypatch.setattr(HermesView, "installation", lambda _: place)
    running(monkeypatch, None)
    support.put(home / ".env", env)
    return ask("release-breaks", home)[1]


@pytest.mark.parametrize(
    ("version", "env", "takes", "broken"),
    [
        ("0.18.0", QQ, "self", True),
        ("0.18.2", QQ, "self", True),
        ("0.18.2", QQ, "self, *, is_reconnect=False", False),
        ("0.18.2", DISCORD, "self", False),
        ("0.17.0", QQ, "self", False),
        ("0.19.0", QQ, "self, *, is_reconnect=False", False),
    ],
)
def test_qq(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    packages: Path,
    version: str,
    env: str,
    takes: str,
    broken: bool,
) -> None:
    """Only these releases, only where QQ is set up, and not where somebody mended the code."""
    support.put(packages / ADAPTER, f"async def connect({takes}): ...\n")

    said = found(home, monkeypatch, packages, version, env)

    assert [one.code for one in said] == (["QQ-IS-RECONNECT"] if broken else [])
    for one in said:
        assert (one.subject, one.severity) == ("qqbot", "error")
        assert one.title == f"Hermes {version} cannot start QQ"
        assert "Update Hermes to 0.19.0" in one.next


def test_knowledge() -> None:
    """Every fault that is known is cured by some release."""
    for faults in load_knowledge("breaks").values():
        for fault in faults:
            assert fault["cured_by"] not in (None, *fault["releases"])
