"""The full reset."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import support
from tests.helpers.fake_supervision import unit
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import Steady, finding, owned, sentences


def test_plan(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged databases are repaired, sound ones are not touched, then it is started once."""
    owned(monkeypatch, Steady(home, None, home.parent))
    support.clobber(home / "kanban.db")
    found = finding("GW-UNIT-FAILED", "reset-gateway", unit=unit(home, state="failed"))

    repair, forget, start = sentences(Probes(Home(home)), found)

    assert repair.startswith("kanban.db: repair the damaged database")
    assert forget.endswith("reset-failed hermes-gateway.service")
    assert start.startswith("restart the gateway with the systemd user service")


def test_loop(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that goes on trying has nothing to forget."""
    owned(monkeypatch, Steady(home, None, home.parent))
    found = finding("GW-CRASH-LOOP", "reset-gateway", unit=unit(home, state="activating"))
    assert len(sentences(Probes(Home(home)), found)) == 1


PROVED_BY = ProvedBy(
    "real/test_steering_systemd.py::test_under_its_own_unit",
    why="It needs a real gateway under a real systemd.",
)
