"""GW-STALE-UNIT: units of older releases beside the installed Hermes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.knowledge.releases import load_knowledge
from tests.helpers import support
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look

RELEASES = load_knowledge("services")


@pytest.fixture
def installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with Hermes 0.19.0, and no other one in sight."""
    folder = home / "hermes-agent/venv/lib/python3.11/site-packages"
    (folder / "hermes_agent-0.19.0.dist-info").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.setenv("PATH", str(home.parent))
    return home


def written_by(home: Path, version: str, **changes: str) -> Any:
    """The unit that a release wrote."""
    settings = dict(RELEASES[version]["unit"]) | changes
    declared = {"Description": "Hermes Agent Gateway - Messaging Platform Integration", **settings}
    return unit(home, declared={name: value for name, value in declared.items() if value})


def test_healthy(home: Path, installed: Path) -> None:
    """No unit, or the one that the release itself writes."""
    assert look("service-age", home)[0].status == "skipped"
    assert codes("service-age", installed, written_by(installed, "0.19.0")) == []


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.18.2"])
def test_older_and_harmless(installed: Path, version: str) -> None:
    """An older unit that lacks something is worth a word, not a warning."""
    assert codes("service-age", installed, written_by(installed, version)) == [
        ("GW-STALE-UNIT", "info")
    ]


@pytest.mark.parametrize("name", ["StartLimitIntervalSec", "Restart"])
def test_weighty(installed: Path, name: str) -> None:
    """Without these the gateway stays down."""
    _, [finding] = ask("service-age", installed, written_by(installed, "0.19.0", **{name: ""}))

    assert (finding.code, finding.severity) == ("GW-STALE-UNIT", "warning")
    assert [one.where for one in finding.evidence] == [name]


def test_too_little_time(installed: Path) -> None:
    """systemd must wait as long as config.yaml lets work end; its own word counts first."""
    support.put(installed / "config.yaml", "agent:\n  restart_drain_timeout: 100\n")
    stale = written_by(installed, "0.19.0")
    assert codes("service-age", installed, stale) == [("GW-STALE-UNIT", "warning")]

    over = stale._replace(settings={"TimeoutStopUSec": "2min 30s"})
    assert codes("service-age", installed, over) == []
    endless = stale._replace(settings={"TimeoutStopUSec": "infinity"})
    assert codes("service-age", installed, endless) == []


def test_own_unit(installed: Path) -> None:
    """A unit that the operator wrote is his own business."""
    own = unit(installed, declared={"Restart": "on-failure", "TimeoutStopSec": "20"})

    assert codes("service-age", installed, own) == []


def test_variables_that_only_the_unit_sets(installed: Path) -> None:
    """Hermes would drop them when it writes the unit again, so they have to be moved first."""
    old = written_by(installed, "0.19.0", Restart="")
    unit = old._replace(environment={"PATH": "/bin", "OPENROUTER_API_KEY": "sk-canary"})

    _, [finding] = ask("service-age", installed, unit)

    assert finding.next.startswith("Move OPENROUTER_API_KEY from the unit into .env")
    assert "canary" not in repr(finding._replace(data={}))
