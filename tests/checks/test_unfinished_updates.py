"""UPD-CUTOFF: updates that nobody looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import Update, UpdateRecords, process_identity
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Severity, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes


def look(home: Path) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home."""
    checks = [check for check in load.load().checks if check.id == "unfinished-updates"]
    [result], findings = examine(Probes(Home(home)), checks)
    return result, findings


def record(home: Path, stage: str, guard: list[int] | None = None) -> None:
    """An update that has come so far."""
    made = Update("20261115-000000-000aa", "b", "", None, "2026-11-15T00:00:00+00:00", stage)
    made.guard = guard or []
    UpdateRecords(Home(home)).save(made)


def test_without_any_update_there_is_nothing_to_ask(home: Path) -> None:
    """A healthy home."""
    assert look(home)[0].status is Status.SKIPPED


@pytest.mark.parametrize("stage", ["updating", "updated", "going-back"])
def test_cut_off(home: Path, stage: str) -> None:
    """The process that saw it through is gone."""
    record(home, stage, [2**22 + 1, 5])
    _, [finding] = look(home)
    assert (finding.code, finding.severity) == ("UPD-CUTOFF", Severity.ERROR)
    assert "hermes-doctor rollback" in finding.next


@pytest.mark.parametrize("stage", ["backed-up", "checked", "back"])
def test_what_came_to_its_end_is_not_reported(home: Path, stage: str) -> None:
    """Nor a backup after which no update came."""
    record(home, stage)
    assert look(home)[0].status is Status.OK


def test_one_that_is_under_way_is_not_reported(home: Path) -> None:
    """Its guard lives."""
    record(home, "updating", process_identity(os.getpid()))
    assert look(home)[0].status is Status.OK
