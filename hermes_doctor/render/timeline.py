"""Shows a timeline, as one line per event and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from hermes_doctor.examination.timeline import Timeline, TimelineEvent
from hermes_doctor.message import ago, clock
from hermes_doctor.terminal.lines import BLANK, Line, row, tilde

_MARKS = {
    "start": ("▶", "good"),
    "end": ("■", "strong"),
    "recovery": ("✓", "good"),
    "edit": ("✎", "info"),
    "update": ("↑", "info"),
    "backup": ("⛁", "faint"),
}
_SEVERITIES = {"critical": "✗", "error": "✗", "warning": "!", "info": "·"}


def lines(home: Path, timeline: Timeline) -> Iterator[Line]:
    """The events by day, in local time."""
    yield row((tilde(home), "strong"), f" since {ago(timeline.since)}, local times")
    if not timeline.events:
        yield BLANK
        yield row("No restart, error, edit, backup or repair was found.")
    for day, events in groupby(timeline.events, key=lambda one: _local(one.at).date()):
        yield BLANK
        yield row((f"{day:%A}, {day:%b} {day.day} {day.year}", "strong"))
        for event in events:
            yield from _event(event)
    if timeline.unknown:
        yield BLANK
    for doubt in timeline.unknown:
        yield row(("? ", "warning"), f"could not check: {doubt}", hang=2)


def _event(event: TimelineEvent) -> Iterator[Line]:
    mark, style = _MARKS.get(event.kind, ("•", ""))
    if event.severity:
        mark, style = _SEVERITIES[event.severity], event.severity
    code = [(f"{event.code} ", style)] if event.code else []
    where = [(f"  {event.where}", "faint")] if event.where else []
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
        "events": [_dict(event) for event in timeline.events],
        "unknown": list(timeline.unknown),
    }


def _dict(event: TimelineEvent) -> dict[str, Any]:
    return {
        "at": _iso(event.at),
        "until": _iso(event.until) if event.until else None,
        "kind": event.kind,
        "code": event.code or None,
        "severity": event.severity or None,
        "what": event.what,
        "where": event.where or None,
        "times": event.times,
    }


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")
