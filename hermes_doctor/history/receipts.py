"""Reads the receipts of a home: which runs have ended, and what they repaired."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_doctor.history import moments
from hermes_doctor.history.observation import Key, stored_key, stored_text
from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook, Trouble

_ID = re.compile(r"\d{8}-\d{6}-\d{3}[0-9a-f]{2}")
MOST = 50
"""Runs to read at one time; there are more only after a long time without a look."""


class RepairedItem(NamedTuple):
    """One item of a run: the finding, the fix, and how it went."""

    key: Key
    fix: str
    outcome: str


class EndedRun(NamedTuple):
    """A run that has ended."""

    id: str
    at: int
    kind: str
    """fix, undo or restore."""
    items: tuple[RepairedItem, ...]
    began: int


def ended_runs(home: Home, known: Sequence[EndedRun] = ()) -> list[EndedRun]:
    """The newest runs that have ended, oldest first. Stops at the first run that has not ended yet.

    What is in `known` is not read again. A receipt that cannot be read is left out.
    """
    before = {one.id: one for one in known}
    found = []
    for id in _ids(home)[-MOST:]:
        try:
            run = before.get(id) or _load(home, id)
        except Exception:  # noqa: BLE001 (whatever is in the agent's home, the history goes on)
            continue
        if run is None:
            break
        found.append(run)
    return found


def _load(home: Home, id: str) -> EndedRun | None:
    """One run; None if it has not ended yet."""
    from datetime import datetime

    from hermes_doctor.records.journal import Journals

    journal = Journals(home).load(id)
    if not journal.final:
        return None
    began, ended = (
        moments.to_seconds(datetime.fromisoformat(at))
        for at in (journal.started_at, journal.ended_at or journal.started_at)
    )
    items = tuple(
        RepairedItem(
            stored_key(one.code, one.subject), stored_text(one.fix), stored_text(one.outcome)
        )
        for one in journal.items
    )
    return EndedRun(id, ended, journal.kind, items, began)


def _ids(home: Home) -> list[str]:
    """The ids of all runs, oldest first; only names that a run gets, which sort by time."""
    from hermes_doctor.records.journal import Journals

    try:
        return sorted(id for id in Journals(home).ids() if _ID.fullmatch(id))
    except (Trouble, CouldNotLook, OSError):
        return []
