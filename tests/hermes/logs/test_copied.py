"""Copied log files have new mtimes; a clock that was wrong once dates lines in the future."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.hermes.logs.copied import are_local, is_copied
from tests.helpers import support
from tests.helpers.log_lines import entries, line, write

HOUR = 3600.0
LOGS = ("agent.log", "gateway.log", "errors.log")

pytestmark = pytest.mark.usefixtures("utc")


def _plant(home: Path, ago: dict[str, float], zone: timezone = UTC) -> None:
    """Write logs whose last line is that old, with the mtime that writing it leaves."""
    now = time.time()
    for name, old in ago.items():
        write(home / "logs" / name, [line(now - old, name, zone=zone)], now - old)
    for name in ("config.yaml", ".env"):
        support.put(home / name, b"x: y\n")
        os.utime(home / name, (now - 90_000, now - 90_000))


def _copy(home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(home, tmp_path / "copy", copy_function=shutil.copyfile))


@pytest.mark.parametrize(
    "ago",
    [
        dict.fromkeys(LOGS, HOUR),
        dict.fromkeys(LOGS, 5 * HOUR + 1),
        {"agent.log": 20.0, "gateway.log": 20.0, "errors.log": 2 * HOUR},
        {"agent.log": HOUR, "gateway.log": 4 * HOUR, "errors.log": 9 * HOUR},
        {"agent.log": 700.0, "gateway.log": 2000.0},
        {"gateway.log": 1234.0},
    ],
)
def test_a_copy_tells_the_same_times(home: Path, tmp_path: Path, ago: dict[str, float]) -> None:
    """Also where the copy was made whole hours after the last line."""
    _plant(home, ago)
    copied = _copy(home, tmp_path)

    assert is_copied(Home(copied))
    assert not is_copied(Home(home))
    assert [one.at for one in entries(copied)] == [one.at for one in entries(home)]


@pytest.mark.parametrize("hours", [8, -5, 5.75])
def test_another_zone_is_not_a_copy(home: Path, hours: float) -> None:
    """Files that are still written tell the zone of their writer."""
    _plant(
        home,
        {"agent.log": 10.0, "gateway.log": 15.0, "errors.log": 7000.0},
        timezone(timedelta(hours=hours)),
    )

    assert not is_copied(Home(home))
    assert sorted(round(time.time() - one.at) // 5 for one in entries(home)) == [3, 1400]


def test_a_line_from_the_future_is_left_out(home: Path) -> None:
    """The clock was wrong once and is right again, which the log with every line shows."""
    now = time.time()
    wrong = line(now + 3 * HOUR, "wrong", level="ERROR")
    right = line(now - 60, "right")
    write(home / "logs" / "agent.log", [wrong, right], now - 60)
    write(home / "logs" / "gateway.log", [wrong, right], now - 60)
    write(home / "logs" / "errors.log", [wrong], now - HOUR * 50)

    assert [one.text for one in entries(home)] == ["right"]


def test_no_logs(home: Path) -> None:
    """An empty home is not a copy."""
    assert not is_copied(Home(home))


HOUR_OF_RECORDED_MOMENTS = 3600.0
ZONE = timezone(timedelta(hours=-3))

pytestmark_of_recorded_moments = pytest.mark.usefixtures("utc")


def iso(at: float) -> str:
    """A time as Hermes writes it into its state."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def plant(home: Path, ago: float, zone: timezone, mtime: float) -> float:
    """Write logs that start an hour before they end so long ago; return when they start."""
    began = time.time() - ago - HOUR_OF_RECORDED_MOMENTS
    lines = [
        line(began, "Starting Hermes Gateway...", zone=zone),
        line(began + HOUR_OF_RECORDED_MOMENTS, "failed", level="ERROR", zone=zone),
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
    began = plant(home, 3 * HOUR_OF_RECORDED_MOMENTS, UTC, now)
    record(home, began + 1, began + 1)  # type: ignore[operator]

    assert are_local(Home(home), 3 * HOUR_OF_RECORDED_MOMENTS) is True
    assert is_copied(Home(home))
    assert {round((now - one.at) / HOUR_OF_RECORDED_MOMENTS) for one in entries(home)} == {4, 3}


@pytest.mark.parametrize("record", [state, diary, starts])
def test_another_zone(home: Path, record: object) -> None:
    """The gateway started three hours after the time that its log shows."""
    now = time.time()
    began = plant(home, 0, ZONE, now)
    record(home, began + 1, began + 1)  # type: ignore[operator]

    assert are_local(Home(home), 3 * HOUR_OF_RECORDED_MOMENTS) is False
    assert not is_copied(Home(home))
    assert {round((now - one.at) / HOUR_OF_RECORDED_MOMENTS) for one in entries(home)} == {1, 0}


def test_a_copied_state(home: Path) -> None:
    """If no line fits, a state file that is newer than its content shows a copy."""
    now = time.time()
    plant(home, 3 * HOUR_OF_RECORDED_MOMENTS, UTC, now)
    state(home, now - 5 * HOUR_OF_RECORDED_MOMENTS, now)

    assert is_copied(Home(home))


def test_nothing_is_known(home: Path) -> None:
    """Without any record the mtime tells the zone."""
    plant(home, 0, ZONE, time.time())

    assert are_local(Home(home), 3 * HOUR_OF_RECORDED_MOMENTS) is None
    assert not is_copied(Home(home))
