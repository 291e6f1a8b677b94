"""Which backups of a vault may go, and which have to stay whatever a rule says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hermes_doctor.model import Trouble
from hermes_doctor.retention import Retention
from hermes_doctor.vault import Vault


def beyond(store: Vault, keep: int, age: timedelta) -> list[str]:
    """The backups that go: beyond the newest `keep` and older than `age`."""
    ids = [id for id in store.ids() if store.is_ours(id)]
    limit = datetime.now(UTC) - age
    doomed = []
    for id in ids[: max(0, len(ids) - keep)]:
        try:
            if store.load(id).created_at <= limit:
                doomed.append(id)
        except Trouble:
            continue  # a damaged one may still hold what somebody needs
    return _but_the_needed(store, doomed)


def outlived(store: Vault, rule: Retention) -> list[str]:
    """The backups of the home that a rule lets go; what runs keep for their undo is not in it."""
    kinds: dict[tuple[bool, bool], list[tuple[str, datetime]]] = {}
    for id in store.ids() if rule else []:
        try:
            backup = store.load(id)
        except Trouble:
            continue
        if backup.of_home and backup.home == str(store.home.path):
            # A part of the home, or an unsound one, is no replacement for the day's whole one.
            kinds.setdefault((backup.whole, backup.sound), []).append((id, backup.created_at))
    kept = {id for known in kinds.values() for id in rule.kept(known)}
    doomed = sorted(id for known in kinds.values() for id, _ in known if id not in kept)
    return _but_the_needed(store, doomed)


def _but_the_needed(store: Vault, doomed: list[str]) -> list[str]:
    """What may really go.

    The newest that verifies always stays, and so does the newest of the whole home: what a run
    keeps of the one file that it changed is no replacement for it. A run that was cut off needs
    its own.
    """
    from hermes_doctor.journal import Journals

    needed = {journal.id for journal in Journals(store.home).all() if not journal.final}
    doomed = [id for id in doomed if id not in needed]
    good = False
    for id in reversed([id for id in store.ids() if store.is_ours(id)] if doomed else []):
        try:
            backup = store.load(id)
            sound = backup.sound and not store.verify(backup)
        except Trouble:
            continue
        if sound and (backup.whole or not good):
            doomed = [one for one in doomed if one != id]
        good = good or sound
        if sound and backup.whole:
            break
    return doomed if good else []
