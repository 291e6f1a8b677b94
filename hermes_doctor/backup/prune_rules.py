"""Decide which backups may be pruned and which must be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from hermes_doctor.backup.retention import Retention
from hermes_doctor.backup.vault import Vault
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.system import progress


class PruneSelection(NamedTuple):
    """Which backups a prune rule removes, and which it must keep."""

    to_remove: list[str]
    """The ids of backups to remove, oldest first."""
    protected: Mapping[str, str]
    """Backups that the rule would remove but that are still needed, with the reason."""


def select_by_count_and_age(store: Vault, keep: int, age: timedelta) -> PruneSelection:
    """Select the backups beyond the newest `keep` that are older than `age`."""
    ids = [id for id in store.ids() if store.is_ours(id)]
    limit = datetime.now(UTC) - age
    doomed = []
    for id in ids[: max(0, len(ids) - keep)]:
        try:
            if store.load(id).created_at <= limit:
                doomed.append(id)
        except Trouble:
            continue  # a damaged backup may still contain needed files
    return _but_the_needed(store, doomed)


def select_by_retention(store: Vault, rule: Retention) -> PruneSelection:
    """Select the backups of the home that a retention rule drops; backups of runs are ignored."""
    kinds: dict[tuple[bool, bool], list[tuple[str, datetime]]] = {}
    for id in store.ids() if rule else []:
        try:
            backup = store.load(id)
        except Trouble:
            continue
        if backup.of_home and backup.home == str(store.home.path):
            # A partial or unsound backup does not replace the whole one of that day.
            kinds.setdefault((backup.whole, backup.sound), []).append((id, backup.created_at))
    kept = {id for known in kinds.values() for id in rule.ids_to_keep(known)}
    doomed = sorted(id for known in kinds.values() for id, _ in known if id not in kept)
    return _but_the_needed(store, doomed)


def check_named(store: Vault, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Check backups that are named for removal; also return sentences on what would be lost.

    Raises Trouble for a backup of another home, and for one that an interrupted run needs.
    """
    from hermes_doctor.backup.needed_backups import find_needs
    from hermes_doctor.backup.unique_rows import LastRows

    wanted = list(dict.fromkeys(ids))
    ours = [id for id in store.ids() if store.is_ours(id)]
    needed = find_needs(store)
    lost = []
    for id in wanted:
        if id not in ours:
            store.load(id)  # raises if there is no such backup
            raise Trouble(text("Backup {id} belongs to another home. Nothing was removed.", id=id))
        if id in needed and needed[id].cut_off:
            raise Trouble(
                text(
                    "Run {id} was interrupted and needs this backup. Nothing was removed. "
                    "Finish the run first: hermes-doctor fix --apply",
                    id=id,
                )
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
        try:
            backup = store.load(id)
        except Trouble:
            continue
        if why := rows.reason_to_keep(backup):
            lost.append(f"Backup {id}: {why}.")
    return wanted, lost


def _newest_whole(store: Vault, ids: Sequence[str]) -> str | None:
    for id in reversed(ids):
        try:
            if store.load(id).whole:
                return id
        except Trouble:
            continue
    return None


def _but_the_needed(store: Vault, doomed: list[str]) -> PruneSelection:
    """Remove from a selection the backups that must be kept.

    The newest backup that verifies is always kept, and so is the newest of the whole home: the
    backup of a run, with the one file that it changed, does not replace it. Backups that receipts
    need are kept, and so is the last backup with rows that the live database lacks.
    """
    from hermes_doctor.backup.needed_backups import find_needs

    if not doomed:
        return PruneSelection([], {})
    ours = [id for id in store.ids() if store.is_ours(id)]
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
            doomed = [one for one in doomed if one != id]
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
    from hermes_doctor.backup.unique_rows import LastRows

    rows = LastRows(store, [id for id in ours if id not in doomed])
    gone = []
    for id in reversed(doomed):
        try:
            backup = store.load(id)
        except Trouble:
            continue  # it was damaged after it was listed
        if why := rows.reason_to_keep(backup):
            protected[id] = why
            rows.keep(backup)
        else:
            gone.append(id)
    return PruneSelection(gone[::-1], dict(sorted(protected.items())))
