"""Copied log files have new mtimes; a clock that was wrong once dates lines in the future."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.logs.copied import is_copied
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
