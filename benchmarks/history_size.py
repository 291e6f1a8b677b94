"""How large the history of a year becomes, with a round each minute, in three kinds of years.

    python -m benchmarks.history_size [DAYS, by default 14]

The rounds are recorded with a clock of our own; a day is one transaction. In the worst year, five
problems come and go all the time, and the gateway never stays up. The size of a year is taken from
the growth in these days.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.operations.history import database, write_observation
from hermes_doctor.operations.history.layout import EVERY, to_seconds
from hermes_doctor.operations.history.observation import Observation, observe
from hermes_doctor.operations.history.write_observation import Continuity
from tests.helpers.histories import found, gateway
from tests.helpers.watch_parts import finding

START = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 20_000_000
TITLE = "a title of the usual length, with the name of a thing"


def problem(number: int, minute: int) -> Observation:
    """A round with one problem, and a gateway that is as old as the problem."""
    one = finding(f"CODE-{number}", subject=f"subject {number}")._replace(title=TITLE)
    started = START + timedelta(minutes=minute)
    return observe(found(one, gateways=gateway(100 + minute, started)), started)


QUIET = observe(found(gateways=gateway(7, START)), START)


def usual(minute: int) -> Observation:
    """A problem of twenty minutes, three times a day."""
    return problem(minute // 480 % 5, 0) if minute % 480 < 20 else QUIET


def worst(minute: int) -> Observation:
    """Another problem every minute, and another gateway."""
    return problem(minute // 2 % 5, minute) if minute % 2 else QUIET


def year(days: int, round_at: Callable[[int], Observation]) -> tuple[int, float]:
    """Record so many days; return the bytes of the file and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        home, file = Path(folder, "home"), Path(folder, "history.db")
        home.mkdir()
        began, start = time.monotonic(), to_seconds(START)
        last, written = None, 0
        for day in range(days):
            with database.transaction(file) as db:
                for minute in range(day * 1440, (day + 1) * 1440):
                    seen, at = round_at(minute), start + 60 * minute
                    if last is not None and not seen.differs(last) and at - written < EVERY:
                        continue
                    known = Continuity(240, since=written or None)
                    write_observation.record(db, Home(home), seen._replace(at=at), known, "boot")
                    last, written = seen, at
        return file.stat().st_size, time.monotonic() - began


def main() -> None:
    """Measure, and fail if a year is too large."""
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 14
    failed = False
    for name, round_at in (("quiet", lambda _: QUIET), ("usual", usual), ("worst", worst)):
        size, seconds = year(days, round_at)
        failed = failed or size * max(1, 365 / days) > LIMIT
        print(f"{name:<6} {days} days: {size / 1e6:5.1f} MB, recorded in {seconds:.0f} s")
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
