"""A shift between lines and mtimes is a time zone only if recorded moments are shifted, too."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.logs.copied import is_copied
from hermes_doctor.logs.recorded_moments import are_local
from tests.helpers import support
from tests.helpers.log_lines import entries, line, write

HOUR = 3600.0
ZONE = timezone(timedelta(hours=-3))

pytestmark = pytest.mark.usefixtures("utc")


def iso(at: float) -> str:
    """A time as Hermes writes it into its state."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def plant(home: Path, ago: float, zone: timezone, mtime: float) -> float:
    """Write logs that start an hour before they end so long ago; return when they start."""
    began = time.time() - ago - HOUR
    lines = [
        line(began, "Starting Hermes Gateway...", zone=zone),
        line(began + HOUR, "failed", level="ERROR", zone=zone),
    ]
    for name in ("agent.log", "gateway.log", "errors.log"):
        write(home / "logs" / name, lines, mtime)
    for name in ("config.yaml", ".env"):
        os.utime(support.put(home / name, b"x: y\n"), (began, began))
    return began


def state(home: Path, at: float, mtime: float) -> None:
    """Write the state file of the gateway."""
    os.utime(support.put(home / "gateway_state.json", json.dumps({"updated_at": iso(at)})),
             (mtime, mtime))  # fmt: skip


def diary(home: Path, at: float, _: float) -> None:
    """Write its log of starts and exits."""
    said = {"tag": "gateway.start", "pid": 7, "ts": iso(at)}
    support.put(home / "logs/gateway-exit-diag.log", json.dumps(said) + "\n")


def starts(home: Path, at: float, _: float) -> None:
    """Write its list of starts."""
    support.put(home / "gateway-starts.log", f"{at:.3f}\n")


@pytest.mark.parametrize("record", [state, diary, starts])
def test_touched_whole_hours_later(home: Path, record: object) -> None:
    """The gateway started at the time that its log shows, so the mtime is that of a copy."""
    now = time.time()
    began = plant(home, 3 * HOUR, UTC, now)
    record(home, began + 1, began + 1)  # type: ignore[operator]

    assert are_local(Home(home), 3 * HOUR) is True
    assert is_copied(Home(home))
    assert {round((now - one.at) / HOUR) for one in entries(home)} == {4, 3}


@pytest.mark.parametrize("record", [state, diary, starts])
def test_another_zone(home: Path, record: object) -> None:
    """The gateway started three hours after the time that its log shows."""
    now = time.time()
    began = plant(home, 0, ZONE, now)
    record(home, began + 1, began + 1)  # type: ignore[operator]

    assert are_local(Home(home), 3 * HOUR) is False
    assert not is_copied(Home(home))
    assert {round((now - one.at) / HOUR) for one in entries(home)} == {1, 0}


def test_a_copied_state(home: Path) -> None:
    """If no line fits, a state file that is newer than its content shows a copy."""
    now = time.time()
    plant(home, 3 * HOUR, UTC, now)
    state(home, now - 5 * HOUR, now)

    assert is_copied(Home(home))


def test_nothing_is_known(home: Path) -> None:
    """Without any record the mtime tells the zone."""
    plant(home, 0, ZONE, time.time())

    assert are_local(Home(home), 3 * HOUR) is None
    assert not is_copied(Home(home))
