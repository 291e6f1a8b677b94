"""The end of the log, as the running process wrote it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.diagnosis.probes import last_log_lines
from tests.helpers import support

NOW = datetime.now(UTC)


def write(home: Path, *lines: str) -> None:
    """A log whose last line was written now.

    The settings are older, so that the home does not look freshly copied.
    """
    support.put(home / "logs" / "gateway.log", "\n".join(lines) + "\n")
    os.utime(home / "logs" / "gateway.log", (NOW.timestamp(), NOW.timestamp()))
    for name in ("config.yaml", ".env"):
        os.utime(home / name, (NOW.timestamp() - 3600,) * 2)


def read(
    home: Path, began: datetime = NOW - timedelta(days=9)
) -> list[last_log_lines.GatewayLogLine]:
    """What is read of it."""
    return last_log_lines.read(Home(home), began)


@pytest.mark.parametrize("zone", [0, 8, -11])
def test_time_zones(home: Path, zone: int) -> None:
    """Lines bear the local time of the process; the file's own time tells the difference."""
    local = NOW + timedelta(hours=zone)
    write(
        home,
        f"{local - timedelta(minutes=5):%Y-%m-%d %H:%M:%S},250 WARNING a.b: first",
        f"{local:%Y-%m-%d %H:%M:%S},000 INFO [sid] a.b-c: second: with words",
    )

    first, second = read(home)

    assert abs(second.at - NOW) < timedelta(seconds=1)
    assert timedelta(minutes=4.9) < second.at - first.at < timedelta(minutes=5.1)
    assert (second.logger, second.text) == ("a.b-c", "second: with words")


def test_only_this_life(home: Path) -> None:
    """From the last start on; tracebacks and garbage are no lines."""
    stamp = f"{NOW:%Y-%m-%d %H:%M:%S},000"
    write(
        home,
        f"{stamp} INFO x: old",
        f"{stamp} INFO gateway.run: Starting Hermes Gateway...",
        "Traceback (most recent call last):",
        "\x00\xff",
        "2026-99-99 99:99:99,000 INFO x: no time",
        f"{stamp} INFO x: new",
    )

    assert [word.text for word in read(home)][-1] == "new"
    assert "old" not in [word.text for word in read(home)]


def test_log_of_before(home: Path) -> None:
    """A file that was not written since the start is an earlier process's."""
    write(home, f"{NOW:%Y-%m-%d %H:%M:%S},000 INFO x: old")

    assert read(home, NOW + timedelta(seconds=5)) == []


def test_huge_log(home: Path) -> None:
    """Only the end is read."""
    stamp = f"{NOW:%Y-%m-%d %H:%M:%S},000"
    write(home, *[f"{stamp} INFO x: {'y' * 200} {n}" for n in range(9000)])

    found = read(home)

    assert 500 < len(found) < 1300
    assert found[-1].text.endswith(" 8999")


def test_odd_logs(home: Path) -> None:
    """None, empty, and something that is no file."""
    assert read(home) == []
    write(home, "")
    assert read(home) == []
    (home / "logs" / "gateway.log").unlink()
    os.mkfifo(home / "logs" / "gateway.log")
    with pytest.raises(CouldNotLook):
        read(home)
