"""A run that `kill -9` cut off is ended by a watch that heals, whatever else is due."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.backup.records import journal as journals
from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.records.journal import Journal, Journals
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, Gateway
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.operations.watch.events import EventKind
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.transaction.gateway import ASKED, STOPPED
from tests.helpers import support
from tests.operations.watch.test_heal import Ward, blot

ID = "20260102-030405-aaaa"


def cut_off(home: Path, **more: Any) -> None:
    """A run that was killed before it changed anything."""
    known = {"kind": "fix", "vault": "", "started_at": "2026-01-02T03:04:05+00:00"}
    log = Journal(ID, home=str(home), **{**known, "state": journals.STAGING, **more})
    log.save()


def state(home: Path) -> str:
    return Journals(Home(home)).load(ID).state


class Service:
    """Whoever owns a gateway of straw."""

    keeps = True

    def __init__(self) -> None:
        self.pid: int | None = None

    def recall(self, file: Path) -> None:
        """It knows that itself."""

    def settled(self, limit: float) -> int | None:
        return self.pid

    def running(self) -> int | None:
        return self.pid

    def start(self, limit: float) -> None:
        self.pid = 4711


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service()
    monkeypatch.setattr(control, "gateway_control", lambda _: made)
    return made


def test_it_is_ended_though_nothing_else_is_due(home: Path) -> None:
    """At the first look, without a repair being counted."""
    cut_off(home)
    ward = Ward(home)
    told = ward.rounds(2)

    assert told == ["found RUN-CUTOFF", "note", "gone RUN-CUTOFF"]
    assert "before it changed anything" in ward.heard.of(EventKind.NOTE)[0].title
    assert state(home) == journals.ABANDONED
    assert not ward.ledger.repairs


def test_the_budget_does_not_hold_it_up(home: Path) -> None:
    """The budget is for repairs; this one was counted when it began."""
    cut_off(home)
    ward = Ward(home)
    ward.ledger.repairs = [ward.clock.boot_clock()] * 3
    ward.rounds(1)

    assert state(home) == journals.ABANDONED


def test_what_is_due_besides_is_repaired_after_it(home: Path) -> None:
    """What is due besides is repaired after it."""
    cut_off(home)
    blot(home)
    ward = Ward(home, after=1)

    assert ward.rounds(1)[-1] == "note"
    assert "healed ENV-BOM" in ward.rounds(1)


def test_not_while_an_answer_is_written_up_to_a_limit(home: Path) -> None:
    """Not while an answer is written, up to a limit."""
    cut_off(home)
    ward = Ward(home, busy=lambda _: True, patience=100.0)

    assert "waits" in ward.rounds(3) and state(home) == journals.STAGING
    ward.rounds(3)
    assert state(home) == journals.ABANDONED


def test_not_under_another_run(home: Path) -> None:
    """Not while another run has the home's lock."""
    ward = Ward(home)
    report = ward.look()
    cut_off(home)
    seen = ward.look()
    assert "RUN-CUTOFF" in [one.code for one in seen.findings] and report.findings == ()
    with lock_home(Home(home)):
        ward.healer.attempt(seen, ward.watch.memory, ward.clock.now())
    assert state(home) == journals.STAGING


def test_one_that_only_looks_leaves_it(home: Path) -> None:
    """One that only looks leaves it."""
    cut_off(home)
    ward = Ward(home)
    ward.watch.healer = None
    before = support.tree(home, vault=True)
    ward.rounds(3)

    assert support.tree(home, vault=True) == before


def test_a_gateway_that_the_run_had_stopped_is_started_again(home: Path, service: Service) -> None:
    """That was part of what was agreed to when the run began."""
    cut_off(home, gateway=STOPPED)
    ward = Ward(home)
    ward.rounds(1)

    assert service.pid == 4711
    assert "is running again (process 4711)" in ward.heard.of(EventKind.NOTE)[0].title


def test_a_gateway_that_the_run_had_not_stopped_is_not_started(
    home: Path, service: Service
) -> None:
    """Somebody else may have stopped it, and nobody agreed to anything."""
    cut_off(home)
    Ward(home).rounds(2)

    assert service.pid is None and state(home) == journals.ABANDONED


def test_none_is_started_into_the_service_of_the_watch(
    home: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left to a person, and told once."""
    monkeypatch.setenv("HERMES_DOCTOR_SERVICE", "1")
    service.keeps = False
    cut_off(home, gateway=STOPPED)
    ward = Ward(home)

    assert ward.rounds(8) == ["found RUN-CUTOFF", "waits RUN-CUTOFF"]
    assert service.pid is None and state(home) == journals.STAGING


def test_one_that_waits_for_the_gateway_is_not_waited_for(
    home: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch looks on, and starts the gateway when the old one has ended."""
    running = [Gateway(os.getpid(), datetime.now(UTC))]
    monkeypatch.setattr(GatewayView, "running", lambda _: running)
    cut_off(home, gateway=ASKED, asked=os.getpid(), state=journals.ENDING, end=journals.ROLLED_BACK)
    ward = Ward(home)
    assert "waits RUN-CUTOFF" in ward.rounds(2) and service.pid is None
    running.clear()
    ward.rounds(5)

    assert service.pid == 4711 and state(home) == journals.ROLLED_BACK


def test_what_cannot_be_ended_is_told_once_and_blamed_on_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither it nor what is due besides counts as a repair that failed."""
    from hermes_doctor.repair.transaction import recovery

    def refuse(*_: object) -> None:
        raise CannotFix("somebody holds it")

    monkeypatch.setattr(recovery, "_finish_or_take_back", refuse)
    cut_off(home)
    blot(home)
    ward = Ward(home, after=1)
    told = ward.rounds(8)

    assert told.count("waits RUN-CUTOFF") == 1 and "failed ENV-BOM" not in told
    assert not ward.ledger.failures and not ward.ledger.repairs
