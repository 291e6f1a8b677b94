"""What a watch may do unattended: `--also GW-DOWN` agrees to a start, and to nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.operations.watch import consent
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.transaction.plan import PlannedItem
from tests.helpers.one_check import PLUGINS


def start(home: Path, severity: Severity) -> PlannedItem:
    """The plan to start a gateway that is not known to have been running."""
    found = Finding("GW-DOWN", severity, "the gateway is not running", "gateway")
    step = GatewayStep(Detached(Home(home), None), restart=False, why="it is not running")
    return PlannedItem(found, PLUGINS.fix("start-gateway"), (step,))


def test_a_start_that_asks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crontab line that restarts the gateway agrees beforehand; a plain watch does not."""
    monkeypatch.delenv("HERMES_DOCTOR_SERVICE", raising=False)
    item = start(home, Severity.ERROR)

    assert "you must agree to a start" in (consent.refusal(item, frozenset()) or "")
    assert consent.refusal(item, frozenset({"GW-DOWN"})) is None
    assert consent.refusal(item, frozenset({"start-gateway"})) is None
    assert "you must agree to a start" in (consent.refusal(item, frozenset({"GW-OOM"})) or "")


def test_a_gateway_that_a_person_stopped(home: Path) -> None:
    """That is a note, for which no watch starts a gateway."""
    item = start(home, Severity.INFO)

    assert "not enough to start" in (consent.refusal(item, frozenset({"GW-DOWN"})) or "")
