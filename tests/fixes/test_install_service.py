"""A service for a gateway without one; with real ones in tests/real/test_steering_systemd.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.schedule import choose
from hermes_doctor.repair.steps.machine import InstallService
from tests.helpers.fake_supervision import Told, unit
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import Steady, finding, owned, sentences

FOUND = finding("GW-UNSUPERVISED", "install-service")


def test_plan(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hermes' own installer makes the unit, and the gateway moves under it."""
    owned(monkeypatch, Detached(Home(home), None))
    monkeypatch.setattr(choose, "refuse_temporary_home", lambda home: None)
    monkeypatch.setattr(InstallService, "refuse", lambda self: None)
    with pytest.raises(CannotFix, match="No Hermes installation was found"):
        sentences(Told(home, [], True, booted=True), FOUND)
    monkeypatch.setattr(InstallService, "require_installer", lambda self: None)
    install, move = sentences(Told(home, [], True, booted=True), FOUND)
    assert "hermes gateway install" in install
    assert move.startswith("restart the gateway with the systemd user service hermes-gateway.")


def test_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a home that does not last, or where there is a unit already.

    Without systemd, cron restarts it: tests/repair/planning/test_install_service.py.
    """
    owned(monkeypatch, Detached(Home(home), None))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(home.parent))
    with pytest.raises(CannotFix, match="temporary folder"):
        sentences(Told(home, [], True, booted=True), FOUND)
    owned(monkeypatch, Steady(home, 7, home.parent))
    with pytest.raises(CannotFix, match=r"The gateway runs .* already"):
        sentences(Told(home, [unit(home)], True, booted=True), FOUND)


PROVED_BY = ProvedBy(
    "real/test_steering_systemd.py::test_under_its_own_unit",
    why="It needs a real gateway under a real systemd.",
)
