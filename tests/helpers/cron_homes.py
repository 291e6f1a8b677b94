"""Homes with jobs at set times, and a gateway that runs or does not."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermes_doctor.model import Finding, Gateway
from hermes_doctor.probes.probes import Probes
from tests.helpers import store_files, support
from tests.helpers.one_check import ask


def at(minutes: float) -> str:
    """A moment so many minutes from now, as jobs have it."""
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()


def jobs(home: Path, *made: dict[str, Any]) -> Path:
    """Give a home these jobs."""
    return support.put(home / "cron/jobs.json", json.dumps({"jobs": made}))


def running(monkeypatch: pytest.MonkeyPatch, minutes: float | None) -> None:
    """Let a gateway run for so long, or none; nothing else looks after it."""
    began = datetime.now(UTC) - timedelta(minutes=minutes or 0)
    found = [] if minutes is None else [Gateway(os.getpid(), began)]
    monkeypatch.setattr(Probes, "gateways", lambda _: found)
    monkeypatch.setattr(Probes, "supervision", lambda _: SimpleNamespace(owner=None, units=()))


def ticked(home: Path, beat: float, success: float) -> None:
    """Let the ticker have looked so many minutes ago, and that have gone well."""
    now = datetime.now(UTC).timestamp()
    support.put(home / "cron/ticker_heartbeat", str(now - 60 * beat))
    support.put(home / "cron/ticker_last_success", str(now - 60 * success))


def findings(check: str, home: Path) -> list[Finding]:
    """What a check finds; no word of a job's task comes out."""
    result, found = ask(check, home)
    assert result.status in ("ok", "problem", "skipped"), result
    assert store_files.SECRET not in repr([one._replace(data={}) for one in found])
    return found
