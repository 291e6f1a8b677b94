"""CRON-NO-GATEWAY, CRON-JOB-FAILED and CRON-SCRIPT-MISSING."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import store_files, support
from tests.helpers.cron_homes import at, findings, jobs, running, ticked
from tests.helpers.store_files import job

ONCE = {"kind": "once", "run_at": "2026-01-01T00:00:00+00:00"}


@pytest.mark.parametrize("gateway", [None, 60])
def test_healthy(home: Path, monkeypatch: pytest.MonkeyPatch, gateway: float | None) -> None:
    """No jobs, jobs of the future, and jobs that are switched off."""
    running(monkeypatch, gateway)
    assert findings("cron-jobs", home) == []
    jobs(home, job("a"), job("b", next_run_at=at(-60), enabled=False), job("c", next_run_at=None))
    assert findings("cron-jobs", home) == []
    jobs(home, job("a", next_run_at=at(-60), state="paused"), job("b", next_run_at=at(-3)))
    assert findings("cron-jobs", home) == []


def test_no_gateway(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job is due and nobody looks; where somebody else looks, all is well."""
    running(monkeypatch, None)
    jobs(home, job("alpha", next_run_at=at(-60)), job("beta"))

    [found] = findings("cron-jobs", home)

    assert (found.code, found.severity) == ("CRON-NO-GATEWAY", "warning")
    assert found.title == "1 scheduled job overdue: no gateway is running"
    assert found.evidence[0].where == "job alpha"
    ticked(home, 1, 1)
    assert findings("cron-jobs", home) == []


def test_passed_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway looks for jobs and begins this one not; a young one catches up first."""
    ticked(home, 1, 1)
    jobs(home, job("alpha", next_run_at=at(-60)))
    running(monkeypatch, 2)
    assert findings("cron-jobs", home) == []
    running(monkeypatch, 60)
    [found] = findings("cron-jobs", home)
    assert (found.code, found.fix) == ("CRON-JOB-FAILED", None)


@pytest.mark.parametrize(
    ("version", "claimed", "fix"),
    [("0.18.2", 600, "release-runs"), ("0.19.0", 600, None), ("0.18.2", -5, "under way")],
)
def test_mark_of_a_run(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, claimed: float, fix: str | None
) -> None:
    """A mark of the future holds a job back in two releases; a fresh one is a run under way."""
    store_files.installed(monkeypatch, version)
    running(monkeypatch, 60)
    ticked(home, 1, 1)
    claim = {"at": at(claimed), "by": "host"}
    jobs(home, job("alpha", next_run_at=at(-60), schedule=ONCE, run_claim=claim))

    found = findings("cron-jobs", home)

    assert [one.fix for one in found] == ([fix] if fix == "release-runs" else [])


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("watch.sh", None),
        ("gone.sh", "missing in scripts/"),
        ("/etc/passwd", "outside"),
        ("../.env", "outside"),
        ("folder", "not a file"),
    ],
)
def test_scripts(
    home: Path, monkeypatch: pytest.MonkeyPatch, script: str, fault: str | None
) -> None:
    """Scripts that are there, gone, elsewhere, and none at all."""
    running(monkeypatch, 60)
    support.put(home / "scripts/watch.sh", "true\n")
    (home / "scripts/folder").mkdir()
    jobs(home, job("alpha", script=script))

    found = findings("cron-jobs", home)

    assert [one.code for one in found] == (["CRON-SCRIPT-MISSING"] if fault else [])
    assert all((fault or "") in one.evidence[0].what for one in found)


@pytest.mark.parametrize(
    ("version", "late", "up", "found"),
    [
        ("0.16.0", 300, 400, 1),
        ("0.16.0", 60, 400, 0),
        ("0.16.0", 300, 60, 0),
        ("0.19.0", 300, 400, 0),
    ],
)
def test_no_sign(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, late: int, up: int, found: int
) -> None:
    """Up to 0.17 nothing tells whether jobs are looked for, but what is due for hours."""
    store_files.installed(monkeypatch, version)
    running(monkeypatch, up)
    jobs(home, job("alpha", next_run_at=at(-late)))

    assert [one.code for one in findings("cron-jobs", home)] == ["CRON-JOB-FAILED"] * found


def test_list_that_hermes_reads(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare list is no reason to look away where Hermes reads it."""
    store_files.installed(monkeypatch, "0.19.0")
    running(monkeypatch, 60)
    support.put(home / "cron/jobs.json", json.dumps([job("alpha", script="gone.sh")]))

    assert [one.code for one in findings("cron-jobs", home)] == ["CRON-SCRIPT-MISSING"]


@pytest.mark.parametrize(
    ("minutes", "more", "found"),
    [
        (-60, {}, ["info"]),
        (-1, {}, []),
        (-60, {"last_run_at": "2026-01-01T00:00:00+00:00"}, []),
        (-60, {"enabled": False}, []),
        (60, {}, []),
    ],
)
def test_once_and_too_late(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    minutes: int,
    more: dict[str, object],
    found: list[str],
) -> None:
    """Up to 0.18 a job can be planned once for a time that has passed; nothing begins it."""
    running(monkeypatch, 60)
    once = {"kind": "once", "run_at": at(minutes)}
    jobs(home, job("alpha", schedule=once, next_run_at=None, **more))

    assert [one.severity for one in findings("cron-jobs", home)] == found
