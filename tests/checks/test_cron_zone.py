"""CRON-TZ: zones that do not exist, that nobody set, and that were changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.cron_homes import findings, jobs, running
from tests.helpers.store_files import job

DAILY = {"kind": "cron", "expr": "0 8 * * *"}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock is in Berlin, and no gateway."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    running(monkeypatch, None)
    yield
    monkeypatch.undo()
    time.tzset()


def daily(home: Path, at: str = "2026-12-01T08:00:00+01:00") -> None:
    """A job with a time of day."""
    jobs(home, job("alpha", schedule=DAILY, next_run_at=at))


@pytest.mark.parametrize(
    ("config", "env", "found"),
    [
        ("", "", []),
        ("timezone: Europe/Berlin", "", []),
        ("timezone: Europe/Bärlin", "", ["warning"]),
        ("timezone: CET+1X", "", ["warning"]),
        ("timezone: nonsense", "HERMES_TIMEZONE=Europe/Berlin", []),
        ("", "HERMES_TIMEZONE=../etc/passwd", ["warning"]),
        ("timezone: Asia/Shanghai", "", ["warning"]),
    ],
)
def test_zones(home: Path, config: str, env: str, found: list[str]) -> None:
    """None, one that fits, ones that do not exist, and another than jobs were planned in."""
    support.put(home / "config.yaml", config + "\n")
    support.put(home / ".env", env + "\n")
    daily(home)

    assert [one.severity for one in findings("cron-zone", home)] == found


def test_summer(home: Path) -> None:
    """A job planned for the other side of a change of the clocks is in the same zone."""
    support.put(home / "config.yaml", "timezone: Europe/Berlin\n")
    daily(home, "2026-07-01T08:00:00+02:00")

    assert findings("cron-zone", home) == []


def test_utc(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine in UTC is told of where jobs have a time of day, and only there."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    jobs(home, job("alpha"))
    assert findings("cron-zone", home) == []
    daily(home, "2026-12-01T08:00:00+00:00")
    assert [one.severity for one in findings("cron-zone", home)] == ["info"]


@pytest.mark.parametrize(("zone", "found"), [("Etc/UTC", ["info"]), ("Asia/Tokyo", [])])
def test_clock_of_the_gateway(home: Path, zone: str, found: list[str]) -> None:
    """The time zone that the gateway is given counts, not that of whoever looks."""
    support.put(home / ".env", f"TZ={zone}\n")
    daily(home)

    assert [one.severity for one in findings("cron-zone", home)] == found


@pytest.mark.parametrize(
    ("target", "running_for", "found"),
    [
        ("/usr/share/zoneinfo/Etc/UTC", 60, ["info"]),
        ("/usr/share/zoneinfo/Asia/Tokyo", 60, []),
        ("/nowhere/Asia/Tokyo", 60, ["info"]),
        ("/usr/share/zoneinfo/Etc/UTC", None, []),
    ],
)
def test_clock_of_the_machine(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    running_for: float | None,
    found: list[str],
) -> None:
    """A gateway without a TZ of its own goes by /etc/localtime, without one by UTC; the TZ of the
    shell that looks counts only where no gateway runs that was started elsewhere."""
    there = {"/etc/localtime": target}
    real, exists = os.path.realpath, os.path.exists
    monkeypatch.setattr(
        "hermes_doctor.diagnosis.probes.cron.os.path.realpath",
        lambda path, **more: there.get(str(path)) or real(path, **more),
    )
    monkeypatch.setattr(
        "hermes_doctor.diagnosis.probes.cron.os.path.exists",
        lambda path: not target.startswith("/nowhere") if path == target else exists(path),
    )
    monkeypatch.setattr("hermes_doctor.hermes.processes.process_stat.environment", lambda _: {})
    running(monkeypatch, running_for)
    daily(home)

    assert [one.severity for one in findings("cron-zone", home)] == found
