"""The history as a screen for people and as JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.terminal.lines import rows_of
from hermes_doctor.operations.history.layout import DAY, HOUR
from hermes_doctor.operations.history.reading import Episode, HistoryMark, HistoryRows, HourShare
from hermes_doctor.operations.history.summary import Shares
from hermes_doctor.render import history
from hermes_doctor.render.history import View, day_mark

pytestmark = pytest.mark.usefixtures("utc")
NOW = int(datetime(2026, 11, 17, 16, 0, tzinfo=UTC).timestamp())
SINCE = NOW - 30 * DAY


def episode(code: str, ago: int, lasts: int | None, **more: Any) -> Episode:
    """One episode that began so many seconds ago."""
    ended = None if lasts is None else NOW - ago + lasts
    how = None if lasts is None else "gone"
    made = Episode(code, "thing", "error", f"{code} is wrong", NOW - ago, NOW, ended, how, None, 0)
    return made._replace(**more)


def view(*episodes: Episode, code: str = "", marks: tuple[HistoryMark, ...] = ()) -> View:
    """A month in which an hour of yesterday was silent."""
    hours = (HourShare(NOW - DAY, 0, 0, HOUR), HourShare(NOW - 2 * DAY, HOUR, 0, 0))
    rows = HistoryRows(Path("/s/history.db"), NOW - 40 * DAY, NOW, episodes, hours, marks)
    return View(Path("/home/me/.hermes"), rows, SINCE, NOW, date(2026, 10, 19), code)


def text(shown: View) -> str:
    """The screen as plain text."""
    return "\n".join(line.text for line in history.lines(shown))


def mark(kind: str, ago: int, what: str, **more: Any) -> HistoryMark:
    """One mark so many seconds ago."""
    return HistoryMark(NOW - ago, kind, what, None, None, None, 1, None)._replace(**more)


def test_the_mark_of_a_day() -> None:
    """Silent for an hour or for half of the watched time; limited likewise, or briefly silent."""
    given = {
        Shares(0, 0, 0, DAY): "unknown",
        Shares(DAY): "working",
        Shares(DAY - 59, 0, 59): "working",
        Shares(DAY - 60, 0, 60): "limited",
        Shares(DAY - HOUR, 0, HOUR): "silent",
        Shares(100, 0, 100, DAY): "silent",
        Shares(0, 500, 0, DAY): "limited",
    }
    assert {shares: day_mark(shares) for shares in given} == given


def test_the_strip_has_a_sign_for_each_day() -> None:
    """The signs differ, so that colour alone carries no meaning; it fits 80 columns."""
    strip, legend = text(view()).splitlines()[2:4]

    assert strip.split()[2:-2] == ["·"] * 27 + ["✓", "✗", "·"]
    assert strip.strip().startswith("Oct 19") and strip.endswith("Nov 17")
    assert max(len(strip), len(legend)) <= 80


def test_long_periods_have_several_rows() -> None:
    """Thirty days in each."""
    shown = view()._replace(first=date(2026, 8, 20))
    rows = [line for line in text(shown).splitlines() if line.count("·") > 20]

    assert len(rows) == 3 and all(len(one) <= 80 for one in rows)


def test_availability() -> None:
    """Of the watched time, with what was not watched; never rounded up to 100."""
    assert "50.0 % available in the time that was watched: working 1 h, silent 1 h." in text(view())
    assert "29 d 22 h were not watched." in text(view())
    assert history._percent(99.999) == "99.9 %" and history._percent(100.0) == "100 %"
    empty = view()._replace(rows=view().rows._replace(hours=()))
    assert "was not watched in this time" in text(empty)


def test_a_screen_at_night() -> None:
    """With everything there is, it stays within 24 rows of 80 columns."""
    found = [episode(f"CODE-{n}", n * DAY + HOUR, 600) for n in range(2, 9)]
    found += [episode(f"CODE-{n}", n * HOUR, None) for n in range(2, 4)]
    found += [episode(code, 3 * DAY - 180, 600) for code in ("DB-SCHEMA", "GW-DOWN")]
    marks = (
        mark("update", 3 * DAY, "0.18.2 → 0.19.0"),
        mark("repair", 2 * DAY, "mend: verified", code="CODE-2", run="r1", subject="thing"),
        mark("restart", DAY, "gateway, process 7", times=4),
    )
    shown = view(*found, marks=marks)
    lines = list(history.lines(shown))

    assert sum(rows_of(line, 80) for line in lines) < 24
    said = text(shown)
    assert "Hermes 0.18.2 → 0.19.0" in said
    assert "└ 3 min later: thing: DB-SCHEMA is wrong (and 2 more)  DB-SCHEMA" in said
    assert "4 starts of the gateway" in said and "caused" not in said
    assert "✓ Nov 15 16:00  mend (thing)  CODE-2" in said


def test_of_one_code() -> None:
    """Each time with its length and its end, newest first."""
    found = [
        episode("A", 3 * DAY, 600, how="repaired", repair="run1"),
        episode("A", 2 * DAY, 60, how="unknown", returns=2),
        episode("A", HOUR, None),
        episode("B", HOUR, None),
    ]
    lines = text(view(*found, code="A")).splitlines()

    assert lines[2:4] == ["A is wrong  A", "  5 times, 1 h 11 min in total"]
    assert "still there" in lines[5] and "its end was not seen, came back 2 times" in lines[6]
    assert "(10 min)  thing" in lines[7] and "repaired by run run1" in lines[7]
    assert "A was not found in this time." in text(view(code="A"))


def test_damaged_records_are_named() -> None:
    """What was left out is said."""
    shown = view()._replace(rows=view().rows._replace(skipped=2))

    assert "Left out: 2 damaged records in /s/history.db." in text(shown)


def test_hostile_texts() -> None:
    """Control characters in the file do not reach the terminal."""
    odd = episode("A", HOUR, None, title="x\x1b[2Jy", subject="\x07")

    assert "\x1b" not in text(view(odd)) and "\x07" not in text(view(odd))


def test_the_document() -> None:
    """All of it in one document, with times in UTC."""
    marks = (mark("update", DAY, "1 → 2"),)
    made = json.loads(json.dumps(history.document(view(episode("A", HOUR, 60), marks=marks))))

    assert made["schema"] == "hermes-doctor/history/1" and len(made["days"]) == 30
    assert made["availability"]["percent"] == 50.0
    assert made["episodes"][0]["first_seen"] == "2026-11-17T15:00:00+00:00"
    assert made["appeared"][0]["seconds_after"] == DAY - HOUR
    assert made["marks"][0]["kind"] == "update" and made["recurring"] == []


@pytest.mark.parametrize(
    ("episodes", "suggested"),
    [
        # the newest one is a note, which is not shown
        ([episode("OLD", 5 * DAY, None), episode("NOTE", HOUR, None, severity="info")], "OLD"),
        # only so many open problems fit on the screen
        ([episode(f"OPEN-{n:02}", (30 - n) * HOUR, None) for n in range(20)], "OPEN-00"),
        # gone, and came once: nothing on the screen has a code
        ([episode("ONCE", 5 * DAY, HOUR)], ""),
    ],
)
def test_the_suggested_code_is_on_the_screen(episodes: list[Episode], suggested: str) -> None:
    """Nobody is sent to a problem that the screen does not show."""
    lines = text(view(*episodes)).splitlines()
    named = [line for line in lines if line.startswith("Next: hermes-doctor history ")]

    assert named == (
        [f"Next: hermes-doctor history {suggested}  all occurrences"] * bool(suggested)
    )
    assert sum(suggested in line for line in lines) == (2 if suggested else len(lines))
