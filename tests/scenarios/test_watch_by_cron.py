"""Rounds that cron or a timer starts one by one go on where the last one ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hermes_doctor.core.model import Report
from hermes_doctor.operations.watch.clocks import ClockReading
from tests.helpers.watch_parts import Hands, finding, report, watch
from tests.operations.watch.test_heal import Ward, blot, blotted

SICK, WELL = report(finding("A")), report()


class Cron:
    """A process for each round, under one clock."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.reading = Hands().reading

    def round(self, look: Report, after: float, *, asleep: float = 0.0) -> int:
        """One round, so much later; how often in a row the problem has been seen."""
        made, _, clock = watch(self.home, [look], after=9)
        clock.reading = self.reading
        clock.turn(after, asleep=asleep)
        self.reading = clock.reading
        made.once(always_report=False)
        known = made.memory.standing.get(("A", "thing"))
        return known.rounds if known else 0


def test_every_five_minutes_is_in_a_row(home: Path) -> None:
    """Though nobody said how often, and thirty seconds are the default."""
    cron = Cron(home)

    assert [cron.round(SICK, 300.0) for _ in range(4)] == [1, 2, 3, 4]
    assert [cron.round(one, 300.0) for one in (WELL, SICK)] == [0, 1]


def test_a_schedule_is_learned(home: Path) -> None:
    """Four times a day: the first two rounds show how far apart they are."""
    cron = Cron(home)

    assert [cron.round(SICK, 21600.0) for _ in range(5)] == [1, 1, 2, 3, 4]


def test_not_after_sleep_nor_a_long_pause(home: Path) -> None:
    """Not after sleep, nor after a long pause."""
    cron = Cron(home)
    assert [cron.round(SICK, 300.0) for _ in range(3)] == [1, 2, 3]
    assert cron.round(SICK, 300.0, asleep=900.0) == 1
    assert cron.round(SICK, 300.0) == 2
    assert cron.round(SICK, 30000.0) == 1


def test_another_boot_counts_anew(home: Path) -> None:
    """Its clocks begin anew, too."""
    cron = Cron(home)
    assert [cron.round(SICK, 300.0) for _ in range(2)] == [1, 2]
    cron.reading = ClockReading(10.0, 10.0, cron.reading.wall + 300.0)

    assert cron.round(SICK, 300.0) == 1


def healing(
    home: Path, reading: ClockReading | None, **more: Any
) -> tuple[list[str], ClockReading]:
    """One round that heals, five minutes later, by a process of its own."""
    ward = Ward(home, after=1, **more)
    ward.clock.reading = reading or ward.clock.reading
    ward.watch._single = True
    told = ward.rounds(1, every=300.0)
    ward.healer.lease.close()
    store = ward.watch.store
    if store._fd is not None:
        os.close(store._fd)
        store._fd = None
    return told, ward.clock.reading


def test_patience_ends_by_rounds_too(home: Path) -> None:
    """Ten minutes are two rounds; why it waits is told once."""
    blot(home)
    reading, told = None, []
    for _ in range(4):
        said, reading = healing(home, reading, busy=lambda _: True, patience=600.0)
        told.append(said)

    assert told == [
        ["found ENV-BOM", "waits"],
        ["found ENV-BOM"],
        ["found ENV-BOM", "healed ENV-BOM"],
        ["gone ENV-BOM"],
    ]
    assert not blotted(home)


def test_a_home_that_is_away_is_told_once(home: Path) -> None:
    """And once when it is back; what was seen before it went says little."""
    gone = home.with_name("elsewhere")
    told = []
    for away in (False, True, True, False, True):
        if home.exists() and away:
            home.rename(gone)
        elif gone.exists() and not away:
            gone.rename(home)
        made, heard, _ = watch(home, [WELL])
        assert (made.once(always_report=False) is None) is away
        told.append(heard.kinds)

    assert told == [["start"], ["away"], [], ["back"], ["away"]]
