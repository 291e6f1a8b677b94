"""Lines bear the local time of their process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes_doctor.hermes.logs import clock
from hermes_doctor.hermes.logs.clock import LogClock
from tests.helpers.log_lines import NOON, entries, line, write

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(params=["UTC", "America/New_York"])
def ours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The zone of this tool's own process, which is not the gateway's."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("hours", [0, 8, -11, 5.75, 14, -3.5])
def test_file_tells(home: Path, ours: str, hours: float) -> None:
    """The file's own time tells the zone, whatever ours is."""
    zone = timezone(timedelta(hours=hours))
    stamps = [NOON - 5000, NOON - 100, NOON]
    write(home / "logs" / "gateway.log", [line(at, zone=zone) for at in stamps], NOON + 0.4)

    assert [one.at for one in entries(home)] == stamps
    assert len(entries(home, NOON - 200)) == 2


def test_process_tells(home: Path, ours: str) -> None:
    """A file that was touched later says nothing; the zone of the process does, else ours."""
    zone = ZoneInfo("Asia/Shanghai")
    write(home / "logs" / "gateway.log", [line(NOON, zone=zone)], NOON + 90_000)
    own = datetime.fromtimestamp(NOON, zone).replace(tzinfo=None).timestamp()

    assert [one.at for one in entries(home, zone=zone)] == [NOON]
    assert [one.at for one in entries(home)] == [own]


def test_no_such_zone(home: Path) -> None:
    """A file that was written to a quarter of an hour after its last line tells no zone."""
    write(home / "logs" / "gateway.log", [line(NOON), "words"], NOON + 900)

    assert [one.at for one in entries(home, zone=UTC)] == [NOON]


def test_file_is_stronger(home: Path) -> None:
    """A process of now may live in another zone than the one that wrote the file."""
    write(home / "logs" / "gateway.log", [line(NOON, zone=BERLIN)], NOON)

    assert [one.at for one in entries(home, zone=ZoneInfo("Asia/Tokyo"))] == [NOON]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_clocks_are_changed(home: Path, day: str) -> None:
    """Where the zone is known, an hour that is missing or comes twice is put right."""
    start = datetime.fromisoformat(f"{day} 00:00+01:00").timestamp() - 3600
    stamps = [start + 600 * n for n in range(40)]
    lines = [line(at, f"{at:.0f}", zone=BERLIN) for at in stamps]
    write(home / "logs" / "gateway.log", lines, stamps[-1])

    found = entries(home, zone=BERLIN)

    assert [(one.at, one.text) for one in found] == [(at, f"{at:.0f}") for at in stamps]
    late = entries(home, stamps[30], zone=BERLIN)
    assert [one.at for one in late] == stamps[30:]


SECOND = datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp()
"""When Berlin shows two o'clock for the second time."""


@pytest.mark.parametrize("window", [600.0, 2400.0, 5400.0, 9000.0])
@pytest.mark.parametrize("end", [1800.0, 4200.0])
def test_window_in_the_hour_that_comes_twice(home: Path, window: float, end: float) -> None:
    """Wherever the window begins and the file ends, all of it is told, in its own hour."""
    stamps = [SECOND - 20_000 + 10 * n for n in range(int(2000 + end / 10) + 1)]
    lines = [line(at, f"{at:.0f} {'x' * 90}", zone=BERLIN) for at in stamps]
    write(home / "logs" / "gateway.log", lines, stamps[-1])

    found = entries(home, stamps[-1] - window, zone=BERLIN)

    assert [one.at for one in found] == [at for at in stamps if at >= stamps[-1] - window]
    assert all(one.text.startswith(f"{one.at:.0f} ") for one in found)


def test_end_in_the_first_of_two_hours(home: Path) -> None:
    """The file's time tells which of the two it was."""
    stamps = [SECOND - 3000 + 10 * n for n in range(100)]
    lines = [line(at, zone=BERLIN) for at in stamps]
    write(home / "logs" / "gateway.log", lines, stamps[-1])

    assert [one.at for one in entries(home, zone=BERLIN)] == stamps


def test_rotated_in_another_season(home: Path) -> None:
    """Each file tells for itself: the offset may have changed between them."""
    winter, summer = NOON, NOON - 60 * 86400
    write(home / "logs" / "gateway.log", [line(winter, zone=BERLIN)], winter)
    write(home / "logs" / "gateway.log.1", [line(summer, zone=BERLIN)], summer)

    assert [one.at for one in entries(home)] == [summer, winter]


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        *[("Asia/Shanghai", 8), (":Asia/Shanghai", 8), ("CST-8", 8), ("EST5", -5), ("", 0)],
        *[("<+0545>-5:45", 5.75), ("UTC", 0), ("/usr/share/zoneinfo/Asia/Tokyo", 9)],
        *[
            ("Nowhere/At_all", None),
            ("../../etc/passwd", None),
            ("/etc/passwd", None),
            ("x" * 300, None),
        ],
        ("a\0b", None),
    ],
)
def test_names(name: str, hours: float | None) -> None:
    """What people write into TZ."""
    zone = clock.zone_named(name)

    offset = (
        zone.utcoffset(datetime.fromtimestamp(NOON, UTC).replace(tzinfo=None)) if zone else None
    )
    assert offset == (None if hours is None else timedelta(hours=hours))


def test_of_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its variables, else by what its machine is set to; unknown if neither may be seen."""

    def hours(zone: tzinfo | None) -> float | None:
        away = zone.utcoffset(datetime(2026, 11, 15)) if zone else None
        return None if away is None else away.total_seconds() / 3600

    assert hours(clock.zone_of_process(os.getpid(), {"TZ": "Asia/Tokyo"})) == 9
    assert clock.zone_of_process(os.getpid(), None) is None
    monkeypatch.setattr(clock, "_LOCAL", Path("usr/share/zoneinfo/Asia/Kolkata"))
    assert hours(clock.zone_of_process(os.getpid(), {})) == 5.5
    monkeypatch.setattr(clock, "_LOCAL", Path("no/such/file"))
    assert clock.zone_of_process(os.getpid(), {}) is None


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Europe/Berlin", "Africa/Abidjan", "Etc/GMT"])
def test_utc_is_known_without_the_tables(name: str) -> None:
    """The short way for UTC gives the same times as the tables do for every zone."""
    found = clock.zone_named(name)
    at = datetime(2026, 7, 1, 12, 0)

    assert (found is UTC) == (name in ("UTC", "Etc/UTC"))
    assert at.replace(tzinfo=found).timestamp() == at.replace(tzinfo=ZoneInfo(name)).timestamp()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Beirut", "America/Havana", "Asia/Kolkata"])
def test_every_hour_of_a_year(zone: str) -> None:
    """A clock that goes on from day to day agrees with the time zone at every hour."""
    read_by = LogClock(ZoneInfo(zone))
    begin = datetime(2026, 1, 1)
    for hour in range(365 * 24):
        shown = begin + timedelta(hours=hour, minutes=7)
        both = [shown.replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() for fold in (0, 1)]
        local = shown.replace(tzinfo=UTC).timestamp()
        assert read_by.latest(local) == max(both)
        assert read_by.twice(local) is (both[0] != both[1])
