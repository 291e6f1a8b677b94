"""Which gateways are down while Hermes is exchanged, and which run afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import Update
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.updates import after_update, downtime
from hermes_doctor.operations.updates.before_update import UpdatePreflight, record_state
from hermes_doctor.render import update as render_update
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.gateway.process_handle import ProcessHandle
from tests.helpers import support


class Keeper(GatewayControl):
    """An owner whose gateway is not up."""

    def __init__(self, home: Home, *, laid: bool = False, tries: bool = False) -> None:
        super().__init__(home)
        self.laid = laid
        self.tries = tries
        self.started = False

    def describe(self) -> str:
        return "its keeper"

    def running(self) -> int | None:
        return None

    def ask_to_stop(self, process: ProcessHandle) -> None:
        raise AssertionError("there is none")

    def was_stopped_on_purpose(self) -> bool:
        return self.laid

    def restless(self) -> bool:
        return self.tries

    def is_restart_looping(self) -> bool:
        return self.tries

    def trouble(self) -> str | None:
        return "it ended with 3 again and again"

    def start(self, limit: float) -> None:
        assert limit > 0
        self.started = True


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A healthy home."""
    return Home(support.healthy(tmp_path / "home"))


def an_update(home: Home, gateway: int | None) -> Update:
    """The record of one, with the gateway that ran before it."""
    made = record_state(home, None, None, UpdatePreflight((), ()))
    made.gateway = gateway
    return made


def owned(monkeypatch: pytest.MonkeyPatch, keeper: Keeper) -> None:
    """From here on this is the owner."""
    monkeypatch.setattr(control, "gateway_control", lambda _: keeper)
    monkeypatch.setattr(GatewayView, "running", lambda _: [])


@pytest.mark.parametrize(
    ("gateway", "laid", "starts"),
    [(42, False, True), (42, True, False), (None, False, False)],
)
def test_one_that_the_update_has_broken_runs_afterwards(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    gateway: int | None,
    laid: bool,
    starts: bool,
) -> None:
    """Its owner has given up; but not one that somebody told to stop, or that did not run."""
    update = an_update(home, gateway)
    keeper = Keeper(home, laid=laid)
    owned(monkeypatch, keeper)

    with downtime.gateways_stopped(home, update, lambda _: None) as up_again:
        up_again()

    assert keeper.started == starts
    assert update.down == []


def test_one_that_nobody_keeps_is_not_started(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started it in a terminal starts it again there."""
    keeper = Keeper(home)
    keeper.keeps = False
    owned(monkeypatch, keeper)

    with downtime.gateways_stopped(home, an_update(home, 42), lambda _: None) as up_again:
        up_again()

    assert not keeper.started


def test_nobody_can_tell_who_owns_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """That stands in the way only where something runs."""

    def unknown(_: Probes) -> GatewayControl:
        raise CannotFix("two claim it")

    monkeypatch.setattr(control, "gateway_control", unknown)
    update = an_update(home, 42)
    assert downtime.gateways_to_stop(home, update) == []
    update.down = [str(home.path)]
    with pytest.raises(CannotFix, match="two claim it"):
        downtime.gateways_to_stop(home, update)


def test_a_gateway_that_never_came_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before nor after: that is told, and not called the update's doing."""
    update = an_update(home, None)
    owned(monkeypatch, Keeper(home, tries=True))

    outcome = after_update.examine(home, update, load.load(), settle_seconds=0)

    assert not outcome.gateway_up and not outcome.good
    assert "again and again" in outcome.gateway
    assert "does not start, as before the update" in render_update.versions(outcome)
    update.beside = {str(home / "profiles" / "shop"): 42}
    assert "The update broke something" in render_update.versions(outcome)
