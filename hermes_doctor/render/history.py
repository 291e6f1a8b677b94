"""Shows the history of a home: a strip of days, availability, problems, updates and repairs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from hermes_doctor import __version__
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import ago, clock, count, duration
from hermes_doctor.core.model import Severity
from hermes_doctor.core.terminal.lines import BLANK, Line, Span, row, rows_of, tilde
from hermes_doctor.operations.history import summary
from hermes_doctor.operations.history.layout import HOUR
from hermes_doctor.operations.history.reading import Episode, HistoryMark, HistoryRows
from hermes_doctor.operations.history.summary import Shares
from hermes_doctor.render.document import fields_of

SCHEMA = "hermes-doctor/history/1"
DAYS_IN_ROW = 30
"""Days in one row of the strip."""
ROWS, COLUMNS = 24, 80
"""The screen that this is made for."""
LEVELS = ((8, 8), (6, 6), (4, 4), (4, 3), (4, 2), (3, 1), (2, 1), (1, 1))
"""How many open problems and how many entries of other sections; the most that fit are shown."""
MOST_EPISODES = 18
_MARKS = {
    "working": ("✓", "good"),
    "limited": ("!", "warning"),
    "silent": ("✗", "error"),
    "unknown": ("·", "faint"),
}
_LEGEND = (
    ("working", "working"),
    ("limited", "limited or briefly silent"),
    ("silent", "silent for an hour"),
    ("unknown", "not watched"),
)
_NAMES = {"update": "Hermes", "doctor": "hermes-doctor"}
_RUNS = ("repair", "undo", "restore")
_STARTS = ("start", "restart")
_ENDS = {"gone": "gone", "repaired": "repaired", "unknown": "its end was not seen"}


class View(NamedTuple):
    """What to show: a home, its rows, the time, and one code if only that is wanted."""

    home: Path
    rows: HistoryRows
    since: int
    now: int
    first: date
    """The first day of the strip."""
    code: str = ""
    options: str = ""
    """Options that a suggested command must repeat to work when pasted, such as ` --home DIR`."""

    @property
    def episodes(self) -> list[Episode]:
        """The episodes to show."""
        return [episode for episode in self.rows.episodes if self.code in ("", episode.code)]


def lines(view: View) -> Iterator[Line]:
    """The screen for people."""
    if view.code:
        yield from _head(view)
        yield from _of_code(view)
        return
    for level in LEVELS:
        made = [*_head(view), *_screen(view, *level)]
        if sum(rows_of(line, COLUMNS) for line in made) < ROWS:
            break
    yield from made


def _head(view: View) -> Iterator[Line]:
    yield row(
        (tilde(view.home), "strong"),
        f" · history since {clock(_time(view.since), _time(view.now))}, local times",
    )
    yield BLANK


def _screen(view: View, most_open: int, most: int) -> Iterator[Line]:
    """Everything about a home, with at most so many entries in each section."""
    yield from _strip(view)
    if most > 1:
        yield BLANK
    yield from _availability(view)
    sections = [
        *_open(view, most_open),
        *_recurring(view, most),
        *_updates(view, most),
        *_repairs(view, most),
    ]
    yield from sections
    if view.rows.skipped:
        yield BLANK
        left_out = count(view.rows.skipped, "damaged record")
        yield row(("? ", "warning"), f"Left out: {left_out} in {view.rows.file}.", hang=2)
    known = {episode.code for episode in view.episodes}
    shown = (line.right[0] for line in sections if line.right)
    if code := next((one for one in shown if one in known), ""):
        yield BLANK
        command = f"hermes-doctor history {code}{view.options}"
        yield row("Next: ", (command, "command"), "  all occurrences", hang=8)


def day_mark(shares: Shares) -> str:
    """The condition that a day is shown with."""
    if not shares.watched:
        return "unknown"
    if shares.silent >= HOUR or 2 * shares.silent >= shares.watched:
        return "silent"
    if shares.silent >= 60 or shares.limited >= HOUR or 2 * shares.limited >= shares.watched:
        return "limited"
    return "working"


def _strip(view: View) -> Iterator[Line]:
    """One mark for each day, 30 days in a row."""
    days = summary.days(view.rows, view.first, view.since, view.now)
    for start in range(0, len(days), DAYS_IN_ROW):
        part = days[start : start + DAYS_IN_ROW]
        spans: list[Span] = []
        for day_shares in part:
            sign, style = _MARKS[day_mark(day_shares.shares)]
            spans += [(sign, style), (" ", "")]
        yield row(f"{_day(part[0].day):<6}  ", *spans, f" {_day(part[-1].day)}", indent=2)
    legend: list[Span] = []
    for name, words in _LEGEND:
        legend += [_MARKS[name], (f" {words}   ", "faint")]
    yield row(*legend, indent=2)


def _availability(view: View) -> Iterator[Line]:
    shares = summary.total(view.rows, view.since, view.now)
    if shares.percent is None:
        said = "The bot was not watched in this time."
    else:
        said = f"{_percent(shares.percent)} available in the time that was watched: "
        said += ", ".join(f"{name} {duration(spent)}" for name, spent in _spent(shares)) + "."
    if shares.percent is not None and shares.unknown >= 60:
        said += f" {duration(shares.unknown)} were not watched."
    yield row(said)
    if view.rows.first_seen > view.since:
        yield row((f"Recorded since {ago(_time(view.rows.first_seen), _time(view.now))}.", "faint"))
    starts = [mark for mark in view.rows.marks if mark.kind in _STARTS]
    if starts:
        times = count(sum(mark.times for mark in starts), "start")
        last = max(mark.until or mark.at for mark in starts)
        yield row(f"{times} of the gateway, the last at {ago(_time(last), _time(view.now))}.")


def _spent(shares: Shares) -> list[tuple[str, int]]:
    named = zip(("working", "limited", "silent"), shares, strict=False)
    return [(name, seconds) for name, seconds in named if seconds]


def _percent(share: float) -> str:
    """Percent with one decimal; only a bot that was never silent has 100 %."""
    return "100 %" if share == 100 else f"{min(share, 99.9):.1f} %"


def _open(view: View, most: int) -> Iterator[Line]:
    episodes = [one for one in view.episodes if one.ended is None and one.severity != Severity.INFO]
    episodes.sort(key=lambda one: (_rank(one.severity), one.first_seen))
    yield from _title("Open", len(episodes), most)
    for episode in episodes[:most]:
        said = f", since {ago(_time(episode.first_seen), _time(view.now))}"
        yield _problem(episode.severity, _titled(episode), said, episode.code)


def _recurring(view: View, most: int) -> Iterator[Line]:
    recurrings = [
        one for one in summary.recurring(view.episodes, view.now) if one.severity != Severity.INFO
    ]
    yield from _title("Occurred more than once", len(recurrings), most)
    for recurring in recurrings[:most]:
        last = clock(_time(recurring.last), _time(view.now))
        said = f"{count(recurring.times, 'time')}, last {last}, "
        said += f"{duration(recurring.seconds)} in total"
        about = f"{recurring.subject}: " if recurring.subject else ""
        yield _problem(recurring.severity, about, said, recurring.code)


def _updates(view: View, most: int) -> Iterator[Line]:
    marks = [mark for mark in view.rows.marks if mark.kind in _NAMES]
    yield from _title("Updates, and what appeared within a day after them", len(marks), most)
    followed = summary.appeared(view.rows)
    for mark in marks[: -most - 1 : -1]:
        when = clock(_time(mark.at), _time(view.now))
        yield row(("↑ ", "info"), f"{when}  {_NAMES[mark.kind]} {mark.what}", indent=2, hang=2)
        behind = [one for one in followed if one.update is mark]
        for number, appeared in enumerate(behind[:most], 1):
            after = (
                f"{duration(appeared.seconds)} later"
                if appeared.seconds >= 60
                else "in the same minute"
            )
            more = f" (and {len(behind) - most} more)" if number == most < len(behind) else ""
            said = f"└ {after}: {_titled(appeared.episode)}{more}"
            yield row(said, indent=4, hang=2, right=(appeared.episode.code, "faint"))


def _repairs(view: View, most: int) -> Iterator[Line]:
    marks = [mark for mark in view.rows.marks if mark.kind in _RUNS]
    yield from _title("Repairs", len(marks), most)
    for mark in marks[: -most - 1 : -1]:
        good = mark.what.endswith(": verified")
        sign, style = _MARKS["working" if good else "limited"]
        when = clock(_time(mark.at), _time(view.now))
        about = f" ({mark.subject})" if mark.subject else ""
        said = f"{when}  {mark.what.removesuffix(': verified')}{about}"
        said = said if mark.kind == "repair" else f"{said}, {mark.kind}"
        yield row((f"{sign} ", style), said, indent=2, hang=2, right=(mark.code or "", "faint"))


def _of_code(view: View) -> Iterator[Line]:
    """Each episode of one code, newest first."""
    episodes = view.episodes[::-1]
    if not episodes:
        yield row(f"{view.code} was not found in this time.")
        return
    seconds = sum(one.seconds(view.now) for one in episodes)
    times = count(sum(1 + one.returns for one in episodes), "time")
    yield row((episodes[0].title, "strong"), right=(view.code, "faint"))
    yield row(f"{times}, {duration(seconds)} in total", indent=2)
    yield BLANK
    for episode in episodes[:MOST_EPISODES]:
        about = episode.subject if episode.title == episodes[0].title else _titled(episode)
        yield _problem(episode.severity, f"{_span(episode, view.now)}  ", about, _how(episode))
    if len(episodes) > MOST_EPISODES:
        yield row((f"and {len(episodes) - MOST_EPISODES:,} earlier ones", "faint"), indent=4)
    yield BLANK
    yield row("Next: ", (f"hermes-doctor explain {view.code}", "command"))


def _span(episode: Episode, now: int) -> str:
    begin, lasted = clock(_time(episode.first_seen), _time(now)), duration(episode.seconds(now))
    if episode.ended is None:
        return f"{begin} – now ({lasted})"
    first, last = summary.local(episode.first_seen), summary.local(episode.ended)
    same = first.date() == last.date()
    end = f"{last:%H:%M}" if same else clock(_time(episode.ended), _time(now))
    return f"{begin} – {end} ({lasted})"


def _how(episode: Episode) -> str:
    said = "still there" if episode.ended is None else _ENDS.get(episode.how or "", "ended")
    if episode.repair:
        said += (
            f" by run {episode.repair}" if episode.ended is not None else f"; run {episode.repair}"
        )
    return f"{said}, came back {count(episode.returns, 'time')}" if episode.returns else said


def _problem(severity: str, start: str, said: str, right: str) -> Line:
    sign, style = _MARKS["silent" if _rank(severity) <= Severity.ERROR.rank else "limited"]
    return row((f"{sign} ", style), start, said, indent=2, hang=2, right=(right, "faint"))


def _title(title: str, number: int, most: int) -> Iterator[Line]:
    """The title of a section, if it has any entry."""
    if number:
        yield BLANK
        yield row((title, "strong"), (f" ({most} of {number:,})" if number > most else "", "faint"))


def _titled(episode: Episode) -> str:
    if not episode.subject or episode.subject in episode.title:
        return episode.title
    return f"{episode.subject}: {episode.title}"


def _rank(severity: str) -> int:
    return next((one.rank for one in Severity if one.value == severity), Severity.INFO.rank)


def _day(day: date) -> str:
    return f"{day:%b} {day.day}"


def _time(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def document(view: View) -> dict[str, Any]:
    """The history as JSON data."""
    shares = summary.total(view.rows, view.since, view.now)
    percent = None if shares.percent is None else round(shares.percent, 3)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "home": str(view.home),
        "file": str(view.rows.file),
        "since": _iso(view.since),
        "until": _iso(view.now),
        "recorded": {"first": _iso(view.rows.first_seen), "last": _iso(view.rows.last_seen)},
        "skipped": view.rows.skipped,
        "code": view.code or None,
        "availability": {**_seconds(shares), "percent": percent},
        "days": [
            {"day": day.day.isoformat(), **_seconds(day.shares)}
            for day in summary.days(view.rows, view.first, view.since, view.now)
        ],
        "episodes": [
            {
                **fields_of(episode, "code subject severity title"),
                "first_seen": _iso(episode.first_seen),
                "last_seen": _iso(episode.last_seen),
                "ended": None if episode.ended is None else _iso(episode.ended),
                **fields_of(episode, "how repair returns"),
                "seconds": episode.seconds(view.now),
            }
            for episode in view.episodes
        ],
        "recurring": [
            fields_of(recurring, "code subject title times")
            | {"last": _iso(recurring.last), "seconds": recurring.seconds}
            for recurring in summary.recurring(view.episodes, view.now)
        ],
        "marks": [_mark(mark) for mark in view.rows.marks],
        "appeared": [
            {
                **fields_of(appeared.episode, "code subject"),
                "at": _iso(appeared.episode.first_seen),
                "seconds_after": appeared.seconds,
                "update": _mark(appeared.update),
            }
            for appeared in summary.appeared(view.rows)
            if view.code in ("", appeared.episode.code)
        ],
    }


def _seconds(shares: Shares) -> dict[str, int]:
    return dict(zip(("working", "limited", "silent", "unknown"), shares, strict=True))


def _mark(history_mark: HistoryMark) -> dict[str, Any]:
    return {
        "at": _iso(history_mark.at),
        **fields_of(history_mark, "kind what code subject run times"),
        "until": None if history_mark.until is None else _iso(history_mark.until),
    }


def _iso(moment: int) -> str:
    return _time(moment).isoformat()
