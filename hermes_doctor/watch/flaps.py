"""Reports a problem that keeps coming and going once, and then only that it has settled.

The events of each change are still printed. Only the notices about them are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from hermes_doctor.history import flapping
from hermes_doctor.history.flapping import STATES, Flapping
from hermes_doctor.model import Severity
from hermes_doctor.watch.changes import CurrentFinding
from hermes_doctor.watch.events import PRESENT, EventKind, Key, WatchEvent

ABSENT = "-"
_LETTERS = {severity: severity.value[0] for severity in Severity}
_SEVERITIES = {letter: severity for severity, letter in _LETTERS.items()}
_CHANGES = (*PRESENT, EventKind.GONE)
MOST = 1000
"""Problems whose states are kept."""


def follow(
    known: dict[Key, Flapping],
    before: Mapping[Key, CurrentFinding],
    after: Mapping[Key, CurrentFinding],
    at: datetime,
) -> list[WatchEvent]:
    """Add the states of this round; return an event for each that starts or stops to flap."""
    events = []
    for key in list(dict.fromkeys((*known, *before, *after))):
        now = after.get(key)
        if now is not None and not now.rounds:  # its check has no answer
            continue
        old = known.get(key)
        made = flapping.after(old, _state(before.get(key)), _state(now))
        if made.flaps != (old is not None and old.flaps):
            seen = now or before.get(key)
            muted = seen is not None and seen.muted
            events.append(_event(key, made, before.get(key), now, at)._replace(muted=muted))
        if made.is_steady or (old is None and len(known) >= MOST):
            known.pop(key, None)
        else:
            known[key] = made
    return events


def is_quiet(known: Mapping[Key, Flapping], event: WatchEvent) -> bool:
    """Whether no notice is sent for this event, because its problem flaps."""
    found = known.get(event.key)
    return event.kind in _CHANGES and found is not None and found.flaps


def is_valid(states: str) -> bool:
    """Whether a stored text can be the last states of a problem."""
    return 0 < len(states) <= STATES and set(states) <= {ABSENT, *_SEVERITIES}


def _state(finding: CurrentFinding | None) -> str:
    return ABSENT if finding is None else _LETTERS[finding.severity]


def _event(
    key: Key,
    made: Flapping,
    before: CurrentFinding | None,
    now: CurrentFinding | None,
    at: datetime,
) -> WatchEvent:
    seen = [_SEVERITIES[one] for one in made.states if one in _SEVERITIES]
    worst = min(seen, key=lambda one: one.rank, default=Severity.WARNING)
    title = next((one.title for one in (now, before) if one is not None), "")
    name = f"{title}; it" if title else "it"
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
