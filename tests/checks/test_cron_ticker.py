"""CRON-TICKER-DEAD from the marks that the ticker leaves."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.installation.last_update import FileChange
from tests.helpers import store_files, support
from tests.helpers.cron_homes import findings, jobs, running, ticked


@pytest.mark.parametrize(
    ("gateway", "beat", "success", "found"),
    [
        (60, 1, 1, False),
        (60, 30, 30, True),
        (60, 1, 30, True),
        (2, 30, 30, False),
        (None, 9, 9, False),
    ],
)
def test_ticker(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    gateway: float | None,
    beat: float,
    success: float,
    found: bool,
) -> None:
    """Dead, failing, alive, too young to tell, and no gateway at all."""
    running(monkeypatch, gateway)
    ticked(home, beat, success)
    jobs(home, store_files.job("a"))

    said = findings("cron-ticker", home)

    assert [one.code for one in said] == (["CRON-TICKER-DEAD"] if found else [])
    for one in said:
        assert one.severity == "error"
        assert (one.fix == "restart-gateway") is (beat > 5)


def test_no_sign(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before 0.18 leave no marks, and another provider begins jobs in its own way."""
    running(monkeypatch, 60)
    assert findings("cron-ticker", home) == []
    ticked(home, 30, 30)
    support.put(home / "config.yaml", "cron: {provider: chronos}\n")
    assert findings("cron-ticker", home) == []


@pytest.mark.parametrize(
    ("version", "minutes", "state", "changed", "found"),
    [
        ("0.19.0", 60, "running", None, True),
        ("0.18.0", 60, "degraded", 90, True),
        ("0.17.0", 60, "running", None, False),
        ("0.19.0", 6, "running", None, False),
        ("0.19.0", 60, "starting", None, False),
        ("0.19.0", 60, "running", 30, False),
    ],
)
def test_never_began(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    minutes: float,
    state: str,
    changed: float | None,
    found: bool,
) -> None:
    """No sign beside a gateway that is up: not of an old release, a young one, one that still
    starts, or one that was updated under the running gateway."""
    running(monkeypatch, minutes)
    installed = Installation(version, Path("/nowhere"), running=True)
    monkeypatch.setattr(HermesView, "installation", lambda _: installed)
    at = datetime.now(UTC) - timedelta(minutes=changed or 0)
    change = FileChange(Path("/nowhere/x.py"), at) if changed else None
    monkeypatch.setattr(HermesView, "code_change", lambda _: change)
    support.put(home / "gateway_state.json", json.dumps({"gateway_state": state}))
    jobs(home, store_files.job("a"))

    said = findings("cron-ticker", home)

    assert [one.severity for one in said] == (["error"] if found else [])
    assert all("did not start" in one.title and one.fix is None for one in said)
    support.put(home / "config.yaml", "cron: {provider: chronos}\n")
    assert findings("cron-ticker", home) == []
