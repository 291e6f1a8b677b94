"""Reads the receipts of a home: which runs ended since the last look, and what they repaired."""

from __future__ import annotations

from hermes_doctor.history import moments
from hermes_doctor.history.observation import Key, stored_key, stored_text
from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook, Trouble

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


def newest_run(home: Home) -> str:
    """The id of the newest run; empty if there is none."""
    return max(_ids(home), default="")


def ended_runs(home: Home, after: str) -> list[EndedRun]:
    """The runs after this one that have ended, oldest first; a run that still works ends them."""
    from datetime import datetime

    from hermes_doctor.records.journal import Journals

    found = []
    for id in sorted(one for one in _ids(home) if one > after)[-MOST:]:
        try:
            journal = Journals(home).load(id)
            if not journal.final:
                break
            at = moments.whole(datetime.fromisoformat(journal.ended_at or journal.started_at))
        except (Trouble, CouldNotLook, ValueError, OverflowError, OSError):
            continue
        items = tuple(
            RepairedItem(
                stored_key(one.code, one.subject), stored_text(one.fix), stored_text(one.outcome)
            )
            for one in journal.items
        )
        found.append(EndedRun(id, at, journal.kind, items))
    return found


def _ids(home: Home) -> list[str]:
    from hermes_doctor.records.journal import Journals

    try:
        return Journals(home).ids()
    except (Trouble, CouldNotLook, OSError):
        return []
