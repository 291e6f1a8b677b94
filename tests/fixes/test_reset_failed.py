"""A unit that systemd has given up; with a real one in tests/real/test_steering_systemd.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers.fake_supervision import unit
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import Steady, finding, owned, sentences


def test_plan(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgotten, then started once; not where a gateway runs all the same."""
    found = finding("GW-STARTLIMIT", "reset-failed", unit=unit(home, state="failed"))
    owned(monkeypatch, Steady(home, None, home.parent))
    forget, start = sentences(Probes(Home(home)), found)
    assert forget.endswith("systemctl --user reset-failed hermes-gateway.service")
    assert start.startswith("start the gateway")
    owned(monkeypatch, Steady(home, 7, home.parent))
    with pytest.raises(CannotFix, match="A gateway runs already"):
        sentences(Probes(Home(home)), found)


PROVED_BY = ProvedBy(
    "real/test_steering_systemd.py::test_under_its_own_unit",
    why="It needs a real gateway; it changes no file, so there is nothing to undo.",
)
