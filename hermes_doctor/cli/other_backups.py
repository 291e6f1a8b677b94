"""List, verify and import backups that are not in the vault: of Hermes, archives, restic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.cli.vault_option import print_schema_document
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.age import ArchiveKeys
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.core.home import Home


def list_others(home: Home, restic: str | None, *, json: bool) -> int:
    """List the backups that Hermes made, or those in a restic repository."""
    from hermes_doctor.backup.vault import engines, hermes_backups

    rows: list[dict[str, Any]]
    if restic is not None:
        known = engines.Restic(restic).list_backups()
        rows = [{"id": id, "restic": name, "made": time} for id, name, time in known]
        lines = [f"{one['id']}  {one['made'][:19]}  {one['restic']}" for one in rows]
    else:
        rows = [
            {"path": str(copy.path), "kind": copy.kind, "made": copy.made_at.isoformat()}
            for copy in hermes_backups.find_backups(home)
        ]
        lines = [f"{one['made'][:19]}  {one['kind']:8}  {tilde(one['path'])}" for one in rows]
    if json:
        print_schema_document("others", {"backups": rows})
    else:
        show([row(line, hang=2) for line in lines] or [row("No backup was found.")])
        if rows and restic is None:
            show([row(("Verify them: ", "faint"), "hermes-doctor backup verify --hermes")])
    return 0


@contextmanager
def exclusive_vault(store: Vault) -> Iterator[None]:
    """Lock the home and remove leftovers of killed processes from the vault.

    A lost home needs neither: no other process works on it.
    """
    from hermes_doctor.backup.records.home_lock import lock_home

    there = store.home.path.is_dir()
    with lock_home(store.home) if there else nullcontext(), interruptible():
        if there:
            store.remove_leftovers()
        yield


def verify_others(
    store: Vault, backup_name: str | None, lock: ArchiveKeys, *, all_backups: bool
) -> list[tuple[str, list[str]]] | None:
    """What is wrong with backups outside of the vault; None if `backup_name` names none."""
    from hermes_doctor.backup.vault import archive, hermes_backups

    if (
        backup_name
        and not all_backups
        and Path(backup_name).is_file()
        and archive.is_archive(Path(backup_name))
    ):
        return [(backup_name, archive.verify(Path(backup_name), lock))]
    copies = hermes_backups.find_backups(store.home) if all_backups else []
    hermes_backup = (
        hermes_backups.find_named(store.home, backup_name)
        if backup_name and not all_backups and not _is_id(store, backup_name)
        else None
    )
    if hermes_backup is not None:
        copies = [hermes_backup]
    if not copies and not all_backups:
        return None
    results = []
    with exclusive_vault(store):
        for copy in copies:
            seen = hermes_backups.examine(store, copy)
            missing = [f"{name} is missing" for name in seen.missing]
            results.append((copy.name, [*seen.wrong, *missing]))
    return results


def import_copy(store: Vault, name: str, lock: ArchiveKeys, *, confirmed: bool, quiet: bool) -> str:
    """Import a copy into the vault before anything is restored from it; return the backup's id."""
    import sys

    from hermes_doctor.backup.vault import archive, hermes_backups

    if _is_id(store, name):
        return name
    copy = hermes_backups.find_named(store.home, name)
    is_archive = copy is None and Path(name).is_file() and archive.is_archive(Path(name))
    if copy is None and not is_archive:
        return name  # the vault reports that there is no such backup
    if not confirmed and not sys.stdin.isatty():
        raise Trouble(
            "A restore replaces files and asks first. Nothing was changed. To confirm: add --yes"
        )
    with interruptible():
        if copy is not None:
            backup = hermes_backups.import_backup(store, copy)
        else:
            backup = archive.import_archive(store, Path(name), lock)
    if not quiet:
        show([row(f"{Path(name).name} was imported as backup {backup.id}.", hang=2)])
    return backup.id


def _is_id(store: Vault, word: str) -> bool:
    return "/" not in word and word in store.ids()
