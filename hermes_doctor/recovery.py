"""A run that was cut off: say what happened, and finish it or take it back."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hermes_doctor import journal as journals, repair
from hermes_doctor.home import Home
from hermes_doctor.journal import Journal, Journals
from hermes_doctor.model import Trouble
from hermes_doctor.vault import PARTIAL, Vault


def recover(home: Home, verify: repair.Verify) -> list[str]:
    """Bring every cut-off run of this home to an end; the home's lock must be held.

    One sentence a run. What was not committed is dropped, what was half committed is taken
    back, and what was complete but unverified is verified now.
    """
    book = Journals(home)
    said = [_end(home, book, journal, verify) for journal in book.all() if not journal.final]
    for journal in book.all():  # an undo that ended, but was cut off before it could say so
        if journal.kind == "undo" and journal.state == journals.DONE and journal.of:
            mark_undone(book, journal.of, journal.id)
    return said


def mark_undone(book: Journals, id: str, by: str) -> None:
    """Write into a run's receipt that another run has taken it back."""
    undone = book.load(id)
    if undone.state != journals.UNDONE:
        undone.state, undone.undone_by = journals.UNDONE, by
        book.save(undone)


def _end(home: Home, book: Journals, journal: Journal, verify: repair.Verify) -> str:
    vault = Vault(home, Path(journal.vault))
    down = journal.gateway == "stopped"
    started = (
        f"{'The gateway was stopped for a run that was cut off: start it again. ' if down else ''}"
        f"Run {journal.id} ({journal.kind}) was cut off"
    )
    with repair.interruptible(), repair.uninterrupted():
        if journal.state in (journals.BACKING_UP, journals.STAGING):
            repair.clean(home, journal)
            with contextlib.suppress(OSError):
                vault.discard(journal.id + PARTIAL)
            journal.finish(journals.ABANDONED, "cut off before anything was changed")
            book.save(journal)
            return f"{started} before it had changed anything. Its leftovers are removed."
        backup = vault.load(journal.id)
        if journal.state == journals.VERIFYING:
            pending = [item for item in journal.items if item.outcome == "planned"]
            if _in_place(home, journal) and (journal.kind != "fix" or not any(verify(pending))):
                for item in pending:
                    item.outcome = "verified"
                repair.clean(home, journal)
                journal.finish(journals.DONE, "cut off before it was verified; verified later")
                book.save(journal)
                return f"{started} after all its changes. They are verified now: it is finished."
        left = repair.roll_back(home, journal, backup, journal.paths)
        repair.clean(home, journal)
        for item in journal.items:
            item.outcome, item.reason = "rolled-back", "the run was cut off"
        journal.finish(
            journals.PARTLY if left else journals.ROLLED_BACK, "cut off, and taken back later"
        )
        book.save(journal)
    if left:
        return (
            f"{started} half-way. It is taken back, but for {', '.join(left)}, which somebody "
            f"changed since; what it was before lies in backup {backup.id}."
        )
    return f"{started} half-way. It is taken back: everything is as it was before."


def _in_place(home: Home, journal: Journal) -> bool:
    """Whether every path is what the run made of it."""
    return all(
        repair.matches(
            repair.look(home.path / record.path, content=record.after.sha256 is not None),
            record.after,
        )
        for record in journal.paths
    )


def pending(home: Home, options: str) -> list[str]:
    """What a command that may not write can say about runs that were cut off."""
    try:
        cut_off = [journal for journal in Journals(home).all() if not journal.final]
    except Trouble:
        return []
    return [
        f"Run {journal.id} ({journal.kind}) was cut off while {journal.state}. "
        f"This brings it to an end: hermes-doctor fix --apply{options}"
        for journal in cut_off
    ]
