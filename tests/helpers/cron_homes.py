"""Create homes with scheduled jobs, with or without a running gateway."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermes_doctor.core.model import Finding, Gateway
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from tests.helpers import store_files, support
from tests.helpers.one_check import ask


def at(minutes: float) -> str:
    """Return a time this many minutes from now, in the format of jobs."""
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()


def jobs(home: Path, *made: dict[str, Any]) -> Path:
    """Write these jobs into a home."""
    return support.put(home / "cron/jobs.json", json.dumps({"jobs": made}))


def running(monkeypatch: pytest.MonkeyPatch, minutes: float | None) -> None:
    """Fake a gateway that has run for this many minutes, or none, without a supervisor."""
    began = datetime.now(UTC) - timedelta(minutes=minutes or 0)
    found = [] if minutes is None else [Gateway(os.getpid(), began)]
    monkeypatch.setattr(GatewayView, "running", lambda _: found)
    monkeypatch.setattr(GatewayView, "supervision", lambda _: SimpleNamespace(owner=None, units=()))


def ticked(home: Path, beat: float, success: float) -> None:
    """Write when the ticker last ran and last succeeded, in minutes ago."""
    now = datetime.now(UTC).timestamp()
    support.put(home / "cron/ticker_heartbeat", str(now - 60 * beat))
    support.put(home / "cron/ticker_last_success", str(now - 60 * success))


def findings(check: str, home: Path) -> list[Finding]:
    """Return the findings of a check, which must not contain text of a job."""
    result, found = ask(check, home)
    assert result.status in ("ok", "problem", "skipped"), result
    assert store_files.SECRET not in repr([one._replace(data={}) for one in found])
    return found
