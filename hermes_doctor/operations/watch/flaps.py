"""Sends one notice when a problem keeps coming and going, and one when it has settled.

The events of each change are still printed. Only the notices about them are left out, unless the
problem gets worse than reported before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from hermes_doctor.core.model import Severity
from hermes_doctor.operations.history import flapping
from hermes_doctor.operations.history.flapping import STATES, Flapping
from hermes_doctor.operations.watch.changes import CurrentFinding, RoundChanges
from hermes_doctor.operations.watch.events import PRESENT, EventKind, Key, WatchEvent

ABSENT = "-"
_LETTERS = {severity: severity.value[0] for severity in Severity}
_SEVERITIES = {letter: severity for severity, letter in _LETTERS.items()}
_CHANGES = (*PRESENT, EventKind.GONE)
MOST = 1000
"""Problems whose states are kept."""


def follow(
    known: dict[Key, Flapping],
    before: Mapping[Key, CurrentFinding],
    round_changes: RoundChanges,
    at: datetime,
) -> list[WatchEvent]:
    """Add the states of this round; return an event for each that starts or stops flapping."""
    events = []
    for key in list(dict.fromkeys((*known, *before, *round_changes.current))):
        now, old = round_changes.current.get(key), known.get(key)
        if _has_no_answer(now, old, round_changes):
            continue
        made = flapping.after(old, _state(before.get(key)), _state(now))
        seen = now or before.get(key)
        if seen is not None:
            made = made._replace(title=seen.title, check=seen.check, muted=seen.muted)
        made = made._replace(reported=_reported(old, made, before.get(key)))
        if made.flaps != (old is not None and old.flaps):
            events.append(_event(key, made, now, at)._replace(muted=made.muted))
        if made.is_steady or (old is None and len(known) >= MOST):
            known.pop(key, None)
        else:
            known[key] = made
    return events


def is_quiet(known: Mapping[Key, Flapping], event: WatchEvent) -> bool:
    """Whether no notice is sent for this event: its problem flaps and is not worse than before."""
    flapping = known.get(event.key)
    if event.kind not in _CHANGES or flapping is None or not flapping.flaps:
        return False
    reported = _SEVERITIES.get(flapping.reported)
    return event.severity is None or (reported is not None and event.severity.rank >= reported.rank)


def restored(
    states: str,
    flaps: bool,
    title: str = "",
    check: str = "",
    muted: bool = False,
    reported: str | None = None,
) -> Flapping:
    """The states of a problem as they were stored; an older watch stored only the first two."""
    if reported not in ("", *_SEVERITIES):
        reported = _worst(states) if flaps else ""
    return Flapping(states, flaps, title, check, muted, reported or "")


def is_valid(states: str) -> bool:
    """Whether a stored text can be the last states of a problem."""
    return 0 < len(states) <= STATES and set(states) <= {ABSENT, *_SEVERITIES}


def _state(finding: CurrentFinding | None) -> str:
    return ABSENT if finding is None else _LETTERS[finding.severity]


def _has_no_answer(
    now: CurrentFinding | None, old: Flapping | None, round_changes: RoundChanges
) -> bool:
    """Whether this round cannot tell if the problem is there."""
    if now is not None:
        return not now.rounds
    return old is not None and old.check in round_changes.unanswered


def _reported(old: Flapping | None, made: Flapping, before: CurrentFinding | None) -> str:
    """The worst state that was reported before this round, or is reported as it starts to flap."""
    if not made.flaps:
        return ""
    if old is None or not old.flaps:
        return "" if made.muted else _worst(made.states)
    told = before is not None and not before.muted
    return _worst(old.reported + (_state(before) if told else ""))


def _worst(states: str) -> str:
    """The worst of some states; empty if the problem was in none of them."""
    seen = [state for state in states if state in _SEVERITIES]
    return min(seen, key=lambda one: _SEVERITIES[one].rank, default="")


def _event(key: Key, made: Flapping, now: CurrentFinding | None, at: datetime) -> WatchEvent:
    worst = _SEVERITIES.get(_worst(made.states), Severity.WARNING)
    name = f"{made.title}; it" if made.title else "it"
    page = f"hermes-doctor explain {key[0]}"
    if made.flaps:
        text = (
            f"{name} keeps coming and going: {made.changes} changes in the last {STATES} checks. "
            "No more notices until it settles"
        )
        return WatchEvent(
            EventKind.FLAPS, at, text, severity=worst, code=key[0], subject=key[1], command=page
        )
    if now is None:
        text = f"{name} has settled and is gone"
        return WatchEvent(EventKind.STABLE, at, text, code=key[0], subject=key[1], was=worst)
    return WatchEvent(
        EventKind.STABLE,
        at,
        f"{name} has settled and is still there",
        severity=now.severity,
        code=key[0],
        subject=key[1],
        was=worst if worst is not now.severity else None,
        command=page,
    )
