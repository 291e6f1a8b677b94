"""A gateway that is down; with real ones in tests/real/test_steering*.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.transaction import plan as planning
from tests.helpers.fake_supervision import Told
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.one_check import PLUGINS
from tests.helpers.planned_steps import Steady, finding, owned, sentences

FOUND = finding("GW-DOWN", "start-gateway")


def test_plan(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started through its owner."""
    owned(monkeypatch, Steady(home, None, home.parent))
    [said] = sentences(Probes(Home(home)), FOUND)
    assert said.startswith(
        "start the gateway with the systemd user service hermes-gateway.service "
        "(`systemctl --user start hermes-gateway.service`): "
    )


@pytest.mark.parametrize("ran", [True, False, None])
def test_asks(home: Path, monkeypatch: pytest.MonkeyPatch, ran: bool | None) -> None:
    """Only a gateway that ran when the fault occurred is started without a question."""
    owned(monkeypatch, Steady(home, None, home.parent))
    found = finding("GW-DOWN", "start-gateway", ran=ran)
    [one] = planning.plan(Probes(Home(home)), PLUGINS, [found])
    assert one.refusal is None and one.asks is (ran is not True)


def test_up_by_now(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs already is left alone."""
    owned(monkeypatch, Steady(home, 7, home.parent))
    with pytest.raises(CannotFix, match="is running already"):
        sentences(Probes(Home(home)), FOUND)


def test_no_hermes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an installed Hermes nothing can be started, so the plan refuses."""
    probes = Told(home, [], False)
    monkeypatch.setattr(type(probes.hermes), "installation", lambda _: None)

    with pytest.raises(CannotFix, match="No Hermes installation was found"):
        sentences(probes, finding("GW-DOWN", "start-gateway"))


PROVED_BY = ProvedBy(
    "real/test_steering_systemd.py::test_under_its_own_unit",
    why="It needs a real gateway; it changes no file, so there is nothing to undo.",
)
