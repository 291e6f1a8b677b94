"""release-runs: the mark of a run that is none goes, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_doctor.backup.records.journal import ItemRecord
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.transaction.run import Run
from hermes_doctor.repair.transaction.targets import Item
from tests.helpers import planned_steps, support
from tests.helpers.cron_homes import at, jobs
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.store_files import job


def test_takes_the_mark_away(home: Path) -> None:
    """The job keeps everything else, the other one all; a second time there is nothing to do."""
    marked = job("alpha", run_claim={"at": at(600), "by": "host"})
    path = jobs(home, marked, job("beta", run_claim={"at": at(-1), "by": "host"}))
    before = json.loads(path.read_text())
    found = planned_steps.finding(
        "CRON-JOB-FAILED", "release-runs", "cron/jobs.json", jobs=["idalpha"]
    )

    [step] = planned_steps.plan(Probes(Home(home)), found)
    assert step.lines() == ("jobs.json, jobs:", "~ idalpha")
    record = ItemRecord("release-runs", "CRON-JOB-FAILED", "cron/jobs.json", "cron-jobs", [])
    run = Run(Home(home), Vault(Home(home)), "fix", "test")
    sick = support.contents(home)
    log = run.apply([Item(record, [step])], lambda records: [None])

    assert log.items[0].outcome == "verified"
    after = json.loads(path.read_text())
    del before["jobs"][0]["run_claim"]
    assert after == before
    assert planned_steps.plan(Probes(Home(home)), found) == []
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_list_that_cannot_be_read(home: Path) -> None:
    """It declines where the list is damaged."""
    from hermes_doctor.core.model import CannotFix

    support.put(home / "cron/jobs.json", "{")
    found = planned_steps.finding("CRON-JOB-FAILED", "release-runs", "cron/jobs.json", jobs=["a"])

    with pytest.raises(CannotFix):
        planned_steps.plan(Probes(Home(home)), found)


PROVED_BY = ProvedBy(
    "fixes/test_release_runs.py::test_takes_the_mark_away",
    why="It needs a gateway that has run for an hour.",
)
