"""Shows a timeline, as one line per event and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from hermes_doctor.core.message import ago, clock
from hermes_doctor.core.terminal.lines import BLANK, Line, row, tilde
from hermes_doctor.diagnosis.examination.timeline import Timeline, TimelineEvent

_MARKS = {
    "start": ("▶", "good"),
    "end": ("■", "strong"),
    "recovery": ("✓", "good"),
    "edit": ("✎", "info"),
    "update": ("↑", "info"),
    "backup": ("⛁", "faint"),
}
_SEVERITIES = {"critical": "✗", "error": "✗", "warning": "!", "info": "·"}


def lines(home: Path, timeline: Timeline, options: str = "") -> Iterator[Line]:
    """The events by day, in local time; `options` are those that `explain` needs."""
    yield row((tilde(home), "strong"), f" since {ago(timeline.since)}, local times")
    if not timeline.events:
        yield BLANK
        yield row("No restart, error, edit, backup or repair was found.")
    shown = _without_flapping(timeline.events)
    for day, events in groupby(shown, key=lambda one: _local(one.at).date()):
        yield BLANK
        yield row((f"{day:%A}, {day:%b} {day.day} {day.year}", "strong"))
        for event in events:
            yield from _event(event)
    if timeline.unknown:
        yield BLANK
    for doubt in timeline.unknown:
        yield row(("? ", "warning"), f"could not check: {doubt}", hang=2)
    if codes := [event.code for event in timeline.events if event.code]:
        yield BLANK
        yield row("Next: ", (f"hermes-doctor explain {codes[-1]}{options}", "command"))


FLAPPING = timedelta(minutes=10)
"""A problem that comes back within this time is shown as one event."""


def _without_flapping(events: Sequence[TimelineEvent]) -> list[TimelineEvent]:
    """Join a problem that ended and came back soon, possibly many times, to one event."""
    shown: list[TimelineEvent | None] = []
    last: dict[tuple[str, str], int] = {}
    over: dict[tuple[str, str], int] = {}
    for event in events:
        what = event.what.removeprefix("over: ")
        key = (event.code, what)
        if event.kind == "recovery":
            over[key] = len(shown)
        elif event.kind == "incident":
            place = last.get(key)
            before = shown[place] if place is not None else None
            if place is not None and before is not None:
                end = max(before.until or before.at, before.at)
                if event.at - end <= FLAPPING:
                    until = max(event.until or event.at, end)
                    times = before.times + event.times
                    shown[place] = before._replace(times=times, until=until)
                    if (recovery := over.pop(key, None)) is not None:
                        shown[recovery] = None
                    continue
            last[key] = len(shown)
        shown.append(event)
    return [event for event in shown if event is not None]


def _event(event: TimelineEvent) -> Iterator[Line]:
    mark, style = _MARKS.get(event.kind, ("•", ""))
    if event.severity:
        mark, style = _SEVERITIES[event.severity], event.severity
    code = [(f"{event.code} ", style)] if event.code else []
    known = not event.where or event.where in event.what
    where = [] if known else [(f"  {event.where}", "faint")]
    yield row(
        (f"{_local(event.at):%H:%M:%S} ", "faint"),
        (f"{mark} ", style),
        *code,
        f"{event.what}{_often(event)}",
        *where,
        indent=2,
        hang=11,
    )


def _local(at: datetime) -> datetime:
    """Convert to local time; dates at the limits of the calendar stay as they are."""
    try:
        return at.astimezone()
    except (OverflowError, ValueError, OSError):
        return at


def _often(event: TimelineEvent) -> str:
    if event.times < 2 or event.until is None:
        return ""
    until = _local(event.until)
    same = until.date() == _local(event.at).date()
    return f" ({event.times:,} times, until {f'{until:%H:%M:%S}' if same else clock(until)})"


def document(home: Path, version: str, timeline: Timeline) -> dict[str, Any]:
    """The timeline as JSON data."""
    return {
        "schema": "hermes-doctor/timeline/1",
        "version": version,
        "home": str(home),
        "since": _iso(timeline.since),
        "events": [
            {
                "at": _iso(event.at),
                "until": _iso(event.until) if event.until else None,
                "kind": event.kind,
                "code": event.code or None,
                "severity": event.severity or None,
                "what": event.what,
                "where": event.where or None,
                "times": event.times,
            }
            for event in timeline.events
        ],
        "unknown": list(timeline.unknown),
    }


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")
