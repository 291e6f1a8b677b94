"""A run that was cut off: say what happened, and finish it or take it back."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from hermes_doctor import acting, journal as journals, lock, paths
from hermes_doctor.handover import ASKED, bring_back, forget
from hermes_doctor.home import Home, is_database
from hermes_doctor.interrupts import interruptible, uninterrupted
from hermes_doctor.journal import Journal, Journals
from hermes_doctor.leftovers import tidy
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.repair import Verify, tell_left
from hermes_doctor.vault import PARTIAL, Vault


@dataclass(frozen=True)
class Ended:
    """A run that was cut off and has been brought to its end now."""

    text: str
    finished: bool
    """Its changes stay; else there are none any more."""
    kind: str


def recover(home: Home, verify: Verify) -> list[Ended]:
    """Bring every cut-off run of this home to an end; the home's lock must be held.

    What was not committed is dropped, what was half committed is taken back, and what was
    complete but unverified is verified now.
    """
    book = Journals(home)
    tidy(Vault(home))
    ended = [_end(home, book, journal, verify) for journal in book.all() if not journal.final]
    for journal in book.all():  # an undo that ended, but was cut off before it could say so
        if journal.kind == "undo" and journal.state == journals.DONE and journal.of:
            with contextlib.suppress(Trouble):  # its receipt is gone; so be it
                mark_undone(book, journal.of, journal.id)
    return ended


def mark_undone(book: Journals, id: str, by: str) -> None:
    """Write into a run's receipt that another run has taken it back."""
    undone = book.load(id)
    if undone.state != journals.UNDONE:
        undone.state, undone.undone_by = journals.UNDONE, by
        book.save(undone)


def _end(home: Home, book: Journals, journal: Journal, verify: Verify) -> Ended:
    named = [*(record.path for record in journal.paths), *journal.folders]
    paths.distrust(home, named, f"The receipt of run {journal.id}")
    with interruptible(), uninterrupted():
        text = _finish_or_take_back(home, journal, verify)
        book.save(journal)
        paths.clean(home, journal)
        text += bring_back(home, book, journal)
        if journal.gateway != ASKED:
            forget(book, journal)
            journal.close()
        book.save(journal)
    return Ended(text, journal.state in (journals.DONE, journals.PARTLY), journal.kind)


def _finish_or_take_back(home: Home, journal: Journal, verify: Verify) -> str:
    """Decide what becomes of a cut-off run, and do it."""
    vault = Vault(home, journal.root(home))
    started = f"Run {journal.id} ({journal.kind}) was cut off"
    if journal.gateway == ASKED and journal.state == journals.ENDING:
        return f"Run {journal.id} ({journal.kind}) waits for the end of the gateway."
    if journal.state == journals.ENDING:
        return f"{started} while it was cleaning up. It is finished."
    if journal.state in (journals.BACKING_UP, journals.STAGING):
        if vault.began(journal.id + PARTIAL):
            with contextlib.suppress(OSError):
                vault.discard(journal.id + PARTIAL)
        journal.finish(journals.ABANDONED, "cut off before anything was changed")
        text = f"{started} before it had changed anything. Its leftovers are removed."
        if journal.saved:
            text += f" What it had saved stays as backup {' and '.join(journal.saved)}."
        return text
    backup = vault.load(journal.id)
    pending = [item for item in journal.items if item.outcome == "planned"]
    complete = journal.state == journals.VERIFYING and _in_place(home, journal)
    if complete and (journal.kind != "fix" or not any(verify(pending))):
        for item in pending:
            item.outcome = "verified"
        journal.finish(journals.DONE, "cut off before it was verified; verified later")
        return f"{started} after all its changes. They are verified now: it is finished."
    _refuse_holders(home, journal)
    left = paths.roll_back(home, journal, backup, journal.paths)
    acting.recover(home, journal)
    for item in journal.items:
        item.outcome, item.reason = "rolled-back", "the run was cut off"
    tell_left(journal, left, backup)
    journal.finish(
        journals.PARTLY if left else journals.ROLLED_BACK, "cut off, and taken back later"
    )
    if left:
        kept = paths.given_back(backup)
        return (
            f"{started} half-way. It is taken back only in part: {', '.join(left)} is left as it "
            f"is, since somebody changed it; what it was before lies in backup {backup.id}"
            + (
                f", and what the run had written to other files in {kept}."
                if kept.exists()
                else "."
            )
        )
    return f"{started} half-way. It is taken back: everything is as it was before."


def _refuse_holders(home: Home, journal: Journal) -> None:
    """A database must not be given back under somebody who has it open."""
    from hermes_doctor.probes import processes

    targets = [home.path / record.path for record in journal.paths]
    held = processes.holders(path for path in targets if is_database(path))
    for path, pids in held.items():
        raise Trouble(
            f"Run {journal.id} was cut off and has to be taken back, but {path.name} is in use by "
            f"process {pids[0]}. Nothing was changed. Stop it, then try again."
        )


def _in_place(home: Home, journal: Journal) -> bool:
    """Whether every path is what the run made of it."""
    return all(
        paths.matches(
            paths.look(home.path / record.path, content=record.after.sha256 is not None),
            record.after,
        )
        for record in journal.paths
    )


def pending(home: Home, options: str) -> list[str]:
    """What a command that may not write can say about runs that were cut off."""
    if lock.holder(home) is not None:  # it is going on
        return []
    try:
        cut_off = [journal for journal in Journals(home).all() if not journal.final]
    except (Trouble, CouldNotLook, OSError):
        return []
    return [
        f"Run {journal.id} ({journal.kind}) "
        + ("waits" if journal.gateway == ASKED else f"was cut off while {journal.state}")
        + (" for the end of the gateway. " if journal.gateway == ASKED else ". ")
        + f"This brings it to an end: hermes-doctor fix --apply{options}"
        for journal in cut_off
    ]
