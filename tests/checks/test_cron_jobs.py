"""CRON-NO-GATEWAY, CRON-JOB-FAILED and CRON-SCRIPT-MISSING."""

from __future__ import annotations

import json
from datetime import datetime
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


REFUSED = "[blocked_config] Provider 'acme' has no API key"
DRIFTED = (
    "RuntimeError: [drift_skip:silent] Skipped to prevent unintended spend: global inference "
    "config drifted since this job was created (model 'a' -> 'b'), and this job is unpinned."
)
OLD_DRIFT = DRIFTED.replace("[drift_skip:silent] ", "")


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        ("blocked_config", REFUSED, "Provider 'acme' has no API key"),
        ("error", DRIFTED, "Skipped to prevent unintended spend"),
        ("error", OLD_DRIFT, "Skipped to prevent unintended spend"),
    ],
)
def test_a_skipped_run(
    home: Path, monkeypatch: pytest.MonkeyPatch, status: str, error: str, words: str
) -> None:
    """A run that Hermes skipped did not fail; the reason is shown without the mark of Hermes."""
    running(monkeypatch, 60)
    ended = {"last_run_at": at(-30), "last_status": status, "last_error": error}
    jobs(home, job("alpha", failure_streak=3, **ended))

    [found] = findings("cron-jobs", home)

    assert (found.code, found.severity) == ("CRON-JOB-FAILED", "warning")
    assert found.title == "Hermes skipped the last run of 1 scheduled job"
    assert words in found.evidence[0].what
    assert "[" not in found.evidence[0].what
    assert found.evidence[0].what.endswith("; 3 runs in a row")
    assert found.since is not None
    jobs(home, job("alpha", last_run_at=at(-1), last_status="ok", last_error=None))
    assert findings("cron-jobs", home) == []


def test_a_failed_run_has_its_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since when, and how often in a row, as far as Hermes wrote it."""
    running(monkeypatch, 60)
    ended = {"last_run_at": at(-30), "last_status": "error", "last_error": "TimeoutError: x"}
    jobs(home, job("alpha", **ended), job("beta", failure_streak=4, **ended))

    [found] = findings("cron-jobs", home)

    assert found.title == "the last run of 2 scheduled jobs failed"
    assert found.since == datetime.fromisoformat(str(ended["last_run_at"]))
    assert found.evidence[0].what.endswith(": TimeoutError: x")
    assert found.evidence[1].what.endswith(": TimeoutError: x; 4 runs in a row")


def missed(minutes: float) -> dict[str, str]:
    """A failed start as Hermes 0.20.5 records it."""
    why = "gateway unreachable: ConnectError: All connection attempts failed"
    return {"at": at(minutes), "detail": why}


def test_a_start_that_failed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run followed, and nothing else in the file says so."""
    running(monkeypatch, 60)
    good = {"last_run_at": at(-6000), "last_status": "ok"}
    jobs(home, job("alpha", last_fire_error=missed(-700), **good), job("beta", **good))

    [found] = findings("cron-jobs", home)

    assert (found.code, found.severity) == ("CRON-JOB-FAILED", "warning")
    assert found.title == "1 scheduled job did not run at the last time"
    assert [one.where for one in found.evidence] == ["job alpha"]
    assert "gateway unreachable: ConnectError" in found.evidence[0].what
    assert "; last run " in found.evidence[0].what
    jobs(home, job("alpha", last_fire_error=missed(-700)))
    [found] = findings("cron-jobs", home)
    assert found.evidence[0].what.endswith("; no run yet")


@pytest.mark.parametrize("status", ["ok", "error"])
def test_a_run_after_a_start_that_failed(
    home: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    """A later run proves that the job is started again; what it did is another question."""
    running(monkeypatch, 60)
    ended = {"last_run_at": at(-60), "last_status": status, "last_error": "boom"}
    jobs(home, job("alpha", last_fire_error=missed(-700), **ended))

    titles = [one.title for one in findings("cron-jobs", home)]

    assert titles == (["the last run of 1 scheduled job failed"] if status == "error" else [])


@pytest.mark.parametrize("error", ["x", [], {}, {"at": "x", "detail": "y"}, {"at": at(-1)}])
def test_an_odd_failed_start(home: Path, monkeypatch: pytest.MonkeyPatch, error: object) -> None:
    """What Hermes does not write says nothing."""
    running(monkeypatch, 60)
    jobs(home, job("alpha", last_fire_error=error, failure_streak="x"))

    assert findings("cron-jobs", home) == []


def test_no_next_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hermes leaves the job switched on, without a next time; once it has one, all is well."""
    running(monkeypatch, 60)
    daily = {"kind": "cron", "expr": "0 9 * * *", "display": "0 9 * * *"}
    error = "Failed to compute next run for recurring schedule (is the 'croniter' package ...)"
    lost = {"schedule": daily, "state": "error", "last_status": "ok", "last_error": error}
    jobs(home, job("alpha", next_run_at=None, last_run_at=at(-60), **lost))

    [found] = findings("cron-jobs", home)

    assert found.title == "1 scheduled job will not run again: no next time"
    assert found.evidence[0].what.startswith("Failed to compute next run")
    jobs(home, job("alpha", **(lost | {"last_error": None})))
    assert findings("cron-jobs", home) == []
