"""Find the backups that receipts still need: runs for `undo`, updates for `rollback`."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

from hermes_doctor.backup.vault import Vault
from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import Trouble
from hermes_doctor.records import journal as journals
from hermes_doctor.records.journal import Journal, Journals

KEPT = timedelta(days=30)
"""For this long a backup that a receipt needs is pruned only if it is named."""


class BackupNeed(NamedTuple):
    """Something that is impossible without a certain backup."""

    what: str
    """`undo of run X`, for example."""
    until: datetime
    cut_off: bool = False
    """The run was interrupted: without its backup the home stays half changed."""

    @property
    def current(self) -> bool:
        """Whether prune rules must still keep the backup."""
        return self.cut_off or datetime.now(UTC) < self.until


def find_needs(vault: Vault) -> dict[str, BackupNeed]:
    """The backups that receipts of this home need, by id."""
    from hermes_doctor.records.updates import BACK, UpdateRecords

    found: dict[str, BackupNeed] = {}
    records = UpdateRecords(vault.home)
    for id in records.ids():
        try:
            update = records.load(id)
        except Trouble:
            continue
        if update.backup and update.stage != BACK:
            found[update.backup] = BackupNeed(
                f"rollback of update {update.id}", update.began + KEPT
            )
    book = Journals(vault.home)
    for id in book.ids():
        try:
            journal = book.load(id)
            need = _of_run(journal)
            for saved in journal.saved:
                ended = _parsed(journal.ended_at or journal.started_at)
                found[saved] = BackupNeed(f"write-ahead log that run {id} saved", ended + KEPT)
        except Trouble:  # a damaged receipt does not say what it needs
            need = BackupNeed(
                f"undo of run {id}, whose receipt is damaged", _made(vault, id) + KEPT
            )
        if need:
            found[id] = need
    return found


def is_saved_log(home: Home, id: str) -> bool:
    """Whether a run made this backup to save a deleted write-ahead log."""
    book = Journals(home)
    for run in book.ids():
        with contextlib.suppress(Trouble):
            if id in book.load(run).saved:
                return True
    return False


def _of_run(journal: Journal) -> BackupNeed | None:
    """The need of a run's receipt; None if the run is undone or changed nothing."""
    what = f"undo of run {journal.id} ({journal.kind})"
    if not journal.final:
        return BackupNeed(what, _parsed(journal.started_at) + KEPT, cut_off=True)
    if journal.state in (journals.DONE, journals.PARTLY) and journal.undoable:
        return BackupNeed(what, _parsed(journal.ended_at or journal.started_at) + KEPT)
    return None


def _made(vault: Vault, id: str) -> datetime:
    try:
        return vault.load(id).created_at
    except Trouble:
        return datetime.now(UTC)


def _parsed(text: str) -> datetime:
    """Parse a time of a receipt; an invalid one counts as now, so nothing is lost."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
