"""Causes of errors that only files of Hermes have."""

from __future__ import annotations

import json
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.plugins.load import load
from hermes_doctor.diagnosis.plugins.recorded_causes import recorded_cause, recorded_codes
from tests.helpers import support
from tests.helpers.cron_homes import findings

FILES = "Script execution failed: [Errno 24] Too many open files"
MODULE = "ImportError: cannot import name 'turn_view' from 'agent.context' (/opt/context.py)"


def job(**more: object) -> dict[str, object]:
    """A scheduled job whose last run failed."""
    at = datetime.fromtimestamp(time.time() - 900, UTC).isoformat()
    known = {"id": "a1b2c3d4e5f6", "name": "watch", "enabled": True, "state": "scheduled"}
    schedule = {"kind": "interval", "minutes": 15}
    return {**known, "schedule": schedule, "last_run_at": at, "last_status": "error", **more}


def look(home: Path, *jobs: dict[str, object]) -> list[tuple[str, str, str]]:
    """What the check says about these jobs."""
    support.put(home / "cron" / "jobs.json", json.dumps({"jobs": list(jobs)}))
    found = findings("recorded-errors", home)
    return [(one.code, one.severity.value, str(one.title)) for one in found]


def test_jobs(home: Path) -> None:
    """One finding for each cause; an error that names none is left to the check of jobs."""
    assert look(home) == []
    assert look(home, job(last_error="RuntimeError: Connection error.")) == []
    found = look(home, job(last_error=FILES), job(id="b1b2c3d4e5f6", last_error=FILES))
    assert found == [("GW-FD-EXHAUST", "warning", "scheduled jobs: too many files are open")]
    assert [code for code, *_ in look(home, job(last_error=MODULE))] == ["GW-CODE-SKEW"]


def test_a_job_that_did_not_start(home: Path) -> None:
    """Its last start failed, and no run followed."""
    at = datetime.fromtimestamp(time.time() - 60, UTC).isoformat()
    error = {"at": at, "detail": "cannot resolve host: [Errno -2] Name or service not known"}
    given = job(last_status="ok", last_error=None, last_fire_error=error)
    assert [code for code, *_ in look(home, given)] == ["NET-DNS"]


def test_cards(home: Path) -> None:
    """The last error of a card that fails."""
    with sqlite3.connect(home / "kanban.db") as base:
        base.execute("DROP TABLE IF EXISTS tasks")
        base.execute("CREATE TABLE tasks (id, status, consecutive_failures, last_failure_error)")
        base.execute("INSERT INTO tasks VALUES ('t_1', 'blocked', 3, ?)", (FILES,))
        base.execute("INSERT INTO tasks VALUES ('t_2', 'done', 3, 'Name or service not known')")
    base.close()
    assert [code for code, *_ in look(home)] == ["GW-FD-EXHAUST"]


def test_no_secret(home: Path) -> None:
    """The error is redacted before it is shown."""
    key = "sk-" + "a1B2" * 12
    support.put(
        home / "cron" / "jobs.json",
        json.dumps({"jobs": [job(last_error=f"{FILES} api_key={key}")]}),
    )
    assert key not in str(findings("recorded-errors", home))


@pytest.mark.parametrize("error", ["", "  ", "done", "timed out"])
def test_nothing_to_say(error: str) -> None:
    """Too little to name a cause."""
    assert recorded_cause(error, "cron", "scheduled jobs", "scheduled jobs") is None


def test_what_a_platform_is_answered() -> None:
    """That is left to the check of platforms; the machine and the network are not."""
    refused = "HTTP 401 Unauthorized"
    port = "[Errno 98] error while attempting to bind on address ('0.0.0.0', 8443)"
    assert recorded_cause(refused, "platform", "telegram", "Telegram") is None
    found = recorded_cause(port, "platform", "telegram", "Telegram")
    assert found is not None and found.title == "Telegram: port 8443 is already in use"


def test_all_codes_are_declared() -> None:
    """The check declares what the table of causes can give it."""
    [check] = [one for one in load().checks if one.id == "recorded-errors"]
    assert recorded_codes("cron", "kanban", "platform", "update") <= set(check.codes)
