"""A deep check says what it found or could not check; it never asks for another deep check."""

from __future__ import annotations

import gzip
import os
import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from hermes_doctor.cli import option_values
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.examination import report as reports
from hermes_doctor.diagnosis.plugins.load import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.render import document, report
from tests.checks.test_database_stamp import stamp
from tests.helpers import damage, support

FOUND = re.compile(r"hermes-doctor fix\b[^`\n\"]* --deep\b")
"""A repair looks again, so it needs the option to find what a deep check has found."""


def mixed_history(home: Path) -> None:
    """Its first page and its rows are of two databases."""
    stamp(damage.history(home / "state.db"), header=4242)


def many_retired_logs(home: Path) -> None:
    """More than a quick check compares, none of which can be compared."""
    damage.history(home / "state.db")
    for number in range(7):
        place = home / f"state.db.retired-wal-2026111{number}T070812Z-4242"
        support.put(place / "manifest.json", "{}")
        os.utime(place, (time.time() - 9 * 86400 + number,) * 2)


def packed_log(home: Path) -> None:
    """It holds more than a quick check unpacks."""
    at = time.time() - 3600
    line = f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S},004 INFO gateway.run: a message\n"
    packed = gzip.compress(line.encode() * 40_000)
    name = support.put(home / "logs" / "gateway.log.1.gz", packed)
    os.utime(name, (at, at))


def failing_writes(home: Path) -> None:
    """Log rules whose next step is about damage in state.db."""
    damage.rows_zeroed(damage.history(home / "state.db"))
    now = time.time()
    texts = (
        "WARNING agent.turn_finalizer: finalize_turn: _persist_session failed: database is odd",
        "ERROR tools.session_search_tool: FTS5 search failed: database disk image is malformed",
    )
    lines = [
        f"{datetime.fromtimestamp(now - ago):%Y-%m-%d %H:%M:%S},004 {text}\n"
        for ago in (240, 180, 120, 60)
        for text in texts
    ]
    support.put(home / "logs" / "errors.log", "".join(lines))


def damaged(fault: damage.Fault) -> Callable[[Path], None]:
    """A history with this fault."""

    def make(home: Path) -> None:
        fault(damage.history(home / "state.db"))

    make.__name__ = fault.__name__
    return make


def foreign_log(home: Path) -> None:
    """The write-ahead log of another version of the file."""
    damage.foreign_log(damage.history(home / "state.db"))


ASKS = (many_retired_logs, packed_log)
"""Homes for which a quick check asks for a deep one."""
HOMES = (
    *(*ASKS, mixed_history, failing_writes, foreign_log),
    *map(damaged, (damage.rows_zeroed, damage.index_lacks_rows, damage.search_lacks_rows)),
)


def said(home: Path, *, deep: bool) -> str:
    """All that `check` and `check -v` print, and the document."""
    plugins = load()
    probes = Probes(Home(home), deep=deep)
    options = option_values.repeat_options(home, deep=deep)
    made = reports.report(probes, plugins, plugins.checks, options=options)
    probes.close()
    lines = [*report.lines(made), *report.lines(made, verbose=True)]
    return "\n".join([*(line.text for line in lines), document.dump(document.of_report(made))])


@pytest.mark.sampled
@pytest.mark.parametrize("make", HOMES, ids=lambda make: make.__name__)
def test_deep_is_enough(home: Path, make: Callable[[Path], None]) -> None:
    """No text of a deep check names its own option, except in the command that repairs."""
    make(home)

    assert "--deep" not in FOUND.sub("", said(home, deep=True))
    assert make not in ASKS or "hermes-doctor check --deep" in said(home, deep=False)


def test_what_is_said_instead(home: Path) -> None:
    """The damage and its repair, in the next steps as well."""
    failing_writes(home)

    done = support.doctor("check", "--deep", "--home", home)
    found = {one["code"]: one for one in support.check(home, "--deep").json["findings"]}

    assert {"DB-MALFORMED", "SESSION-UNSAVED"} <= found.keys()
    assert "`hermes-doctor fix --deep`" in found["SESSION-UNSAVED"]["next"]
    assert f"hermes-doctor fix --home {home} --deep" in done.out
    assert "check --deep" not in done.out


def test_notes_are_shown_at_once(home: Path) -> None:
    """Nobody has to repeat a deep check to see its notes; after a quick one, -v shows them."""
    many_retired_logs(home)

    assert "note: hermes-doctor check -v" in said(home, deep=False)
    shown = said(home, deep=True)
    assert shown.count("\nNotes\n") == 2
    assert "hermes-doctor check -v" not in shown
