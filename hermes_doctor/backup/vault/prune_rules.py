"""Decide which backups may be pruned and which must be kept.

A retention rule keeps the newest backup of each of the last days, weeks and months. Besides,
backups are kept that a receipt still needs: those of runs for `undo`, of updates for `rollback`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from hermes_doctor.backup.records import journal as journals
from hermes_doctor.backup.records.journal import Journal, Journals
from hermes_doctor.backup.records.updates import BACK, UpdateRecords
from hermes_doctor.backup.vault.backup_rows import LastRows
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import progress


class Retention(NamedTuple):
    """How many daily, weekly and monthly backups to keep; all zero means no rule."""

    daily: int = 0
    weekly: int = 0
    monthly: int = 0

    def __bool__(self) -> bool:
        return any(self)

    def ids_to_keep(self, known: Sequence[tuple[str, datetime]]) -> set[str]:
        """The ids to keep, of backups given with their times."""
        spans: tuple[tuple[int, Callable[[datetime], object]], ...] = (
            (self.daily, lambda at: at.date()),
            (self.weekly, lambda at: at.isocalendar()[:2]),
            (self.monthly, lambda at: (at.year, at.month)),
        )
        kept: set[str] = set()
        for most, span in spans:
            newest: dict[object, str] = {}
            for id, at in sorted(known, key=lambda backup: (backup[1], backup[0]), reverse=True):
                newest.setdefault(span(at.astimezone()), id)
            kept |= set(list(newest.values())[:most])
        return kept

    @property
    def options(self) -> list[str]:
        """The command-line options for this rule."""
        named = zip(("--daily", "--weekly", "--monthly"), self, strict=True)
        return [word for name, number in named if number for word in (name, str(number))]


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
    needs: dict[str, BackupNeed] = {}
    records = UpdateRecords(vault.home)
    for id in records.ids():
        try:
            update = records.load(id)
        except Trouble:
            continue
        if update.backup and update.stage != BACK:
            what = f"rollback of update {update.id}"
            needs[update.backup] = BackupNeed(what, update.began + KEPT)
    book = Journals(vault.home)
    for id in book.ids():
        try:
            journal = book.load(id)
            need = _of_run(journal)
            for saved in journal.saved:
                ended = _parsed(journal.ended_at or journal.started_at)
                needs[saved] = BackupNeed(f"write-ahead log that run {id} saved", ended + KEPT)
        except Trouble:  # a damaged receipt does not say what it needs
            made = next((backup.created_at for backup in vault.load_readable([id])), None)
            what = f"undo of run {id}, whose receipt is damaged"
            need = BackupNeed(what, (made or datetime.now(UTC)) + KEPT)
        if need:
            needs[id] = need
    return needs


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


def _parsed(text: str) -> datetime:
    """Parse a time of a receipt; an invalid one counts as now, so nothing is lost."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class PruneSelection(NamedTuple):
    """Which backups a prune rule removes, and which it must keep."""

    to_remove: list[str]
    """The ids of backups to remove, oldest first."""
    protected: Mapping[str, str]
    """Backups that the rule would remove but that are still needed, with the reason."""


def select_by_count_and_age(store: Vault, keep: int, age: timedelta) -> PruneSelection:
    """Select the backups beyond the newest `keep` that are older than `age`."""
    ids = store.own_ids()
    limit = datetime.now(UTC) - age
    # A damaged backup is not removed: it may still contain needed files.
    old = store.load_readable(ids[: max(0, len(ids) - keep)])
    return _but_the_needed(store, [b.folder.name for b in old if b.created_at <= limit])


def select_by_retention(store: Vault, rule: Retention) -> PruneSelection:
    """Select the backups of the home that a retention rule drops; backups of runs are ignored."""
    kinds: dict[tuple[bool, bool], list[tuple[str, datetime]]] = {}
    for backup in store.load_readable(store.ids() if rule else ()):
        if backup.of_home and backup.home == str(store.home.path):
            # A partial or unsound backup does not replace the whole one of that day.
            same_kind = kinds.setdefault((backup.whole, backup.sound), [])
            same_kind.append((backup.folder.name, backup.created_at))
    kept = {id for known in kinds.values() for id in rule.ids_to_keep(known)}
    doomed = sorted(id for known in kinds.values() for id, _ in known if id not in kept)
    return _but_the_needed(store, doomed)


def check_named(store: Vault, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Check backups that are named for removal; also return sentences on what would be lost.

    Raises Trouble for a backup of another home, and for one that an interrupted run needs.
    """
    wanted = list(dict.fromkeys(ids))
    ours = store.own_ids()
    needed = find_needs(store)
    lost = []
    for id in wanted:
        if id not in ours:
            store.load(id)  # raises if there is no such backup
            raise Trouble("Backup {id} belongs to another home. Nothing was removed.", id=id)
        if id in needed and needed[id].cut_off:
            raise Trouble(
                "Run {id} was interrupted and needs this backup. Nothing was removed. "
                "Finish the run first: hermes-doctor fix --apply",
                id=id,
            )
    rest = [id for id in ours if id not in wanted]
    if not rest:
        lost.append("No backup of this home would be left.")
    elif _newest_whole(store, ours) in wanted and _newest_whole(store, rest) is None:
        lost.append("No backup of the whole home would be left.")
    rows = LastRows(store, rest)
    for id in reversed(wanted):
        if id in needed:
            lost.append(f"Backup {id} is needed for the {needed[id].what}.")
        reasons = map(rows.reason_to_keep, store.load_readable([id]))
        lost += [f"Backup {id}: {why}." for why in reasons if why]
    return wanted, lost


def _newest_whole(store: Vault, ids: Sequence[str]) -> str | None:
    backups = store.load_readable(reversed(ids))
    return next((backup.folder.name for backup in backups if backup.whole), None)


def _but_the_needed(store: Vault, doomed: list[str]) -> PruneSelection:
    """Remove from a selection the backups that must be kept.

    The newest backup that verifies is always kept, and so is the newest of the whole home: the
    backup of a run, with the one file that it changed, does not replace it. Backups that receipts
    need are kept, and so is the last backup with rows that the live database lacks.
    """
    if not doomed:
        return PruneSelection([], {})
    ours = store.own_ids()
    protected: dict[str, str] = {}
    needed = find_needs(store)
    for id in doomed:
        if id in needed and needed[id].current:
            protected[id] = f"needed for the {needed[id].what}"
    doomed = [id for id in doomed if id not in protected]
    good = False
    for id in reversed(ours if doomed else []):
        try:
            backup = store.load(id)
            progress.report(f"verifying backup {id}")
            sound = backup.sound and not store.verify(backup)
        except Trouble:
            continue
        if sound and (backup.whole or not good):
            doomed = [other for other in doomed if other != id]
        good = good or sound
        if sound and backup.whole:
            break
    if not good:
        why = "no backup of this home is intact"
        return PruneSelection([], dict(sorted((protected | dict.fromkeys(doomed, why)).items())))
    return _but_the_last_rows(store, ours, doomed, protected)


def _but_the_last_rows(
    store: Vault, ours: list[str], doomed: list[str], protected: dict[str, str]
) -> PruneSelection:
    """Keep backups with rows that exist nowhere else; the newest is compared first."""
    rows = LastRows(store, [id for id in ours if id not in doomed])
    gone = []
    for backup in store.load_readable(reversed(doomed)):
        if why := rows.reason_to_keep(backup):
            protected[backup.folder.name] = why
            rows.keep(backup)
        else:
            gone.append(backup.folder.name)
    return PruneSelection(gone[::-1], dict(sorted(protected.items())))
