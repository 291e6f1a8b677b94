"""List, verify and import backups that are not in the vault: of Hermes, archives, restic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from hermes_doctor.cli.vault_option import print_schema_document
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.age import NamedCopy
    from hermes_doctor.backup.vault.hermes_backups import HermesBackup
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
    store: Vault, named: NamedCopy | None, *, all_backups: bool
) -> list[tuple[str, list[str]]] | None:
    """What is wrong with backups outside of the vault; None if `named` is none of them."""
    from hermes_doctor.backup.vault import archive, hermes_backups

    if named and not all_backups and _is_archive(named):
        return [(named.name, archive.verify(named))]
    copies = hermes_backups.find_backups(store.home) if all_backups else []
    if named and not all_backups and (copy := _of_hermes(store, named)):
        copies = [copy]
    if not copies and not all_backups:
        return None
    results = []
    with exclusive_vault(store):
        for copy in copies:
            seen = hermes_backups.examine(store, copy)
            missing = [f"{name} is missing" for name in seen.missing]
            results.append((copy.name, [*seen.wrong, *missing]))
    return results


def import_copy(store: Vault, named: NamedCopy, *, confirmed: bool, quiet: bool) -> str:
    """Import a copy into the vault before anything is restored from it; return the backup's id."""
    import sys

    from hermes_doctor.backup.vault import archive, hermes_backups

    copy = _of_hermes(store, named)
    if copy is None and (_is_id(store, named.name) or not _is_archive(named)):
        return named.name  # an id; or the vault reports that there is no such backup
    if not confirmed and not sys.stdin.isatty():
        raise Trouble(
            "A restore replaces files and asks first. Nothing was changed. To confirm: add --yes"
        )
    with interruptible():
        if copy is not None:
            backup = hermes_backups.import_backup(store, copy)
        else:
            backup = archive.import_archive(store, named)
    if not quiet:
        show([row(f"{named.path.name} was imported as backup {backup.id}.", hang=2)])
    return backup.id


def _is_archive(named: NamedCopy) -> bool:
    from hermes_doctor.backup.vault import age

    if named.kind:
        return named.kind == "archive"
    return named.path.is_file() and age.is_archive(named.path)


def _of_hermes(store: Vault, named: NamedCopy) -> HermesBackup | None:
    """The zip or snapshot of Hermes that is named."""
    from hermes_doctor.backup.vault import hermes_backups

    if named.kind:
        return hermes_backups.opened_by_root(named)
    return None if _is_id(store, named.name) else hermes_backups.find_named(store.home, named.name)


def _is_id(store: Vault, word: str) -> bool:
    return "/" not in word and word in store.ids()
