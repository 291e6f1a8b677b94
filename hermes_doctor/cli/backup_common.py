"""What the `backup` commands share: the home and the vault, and backups that are not in the vault.

The home may be lost. The other backups are those of Hermes, archives, and those in restic.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.cli import separate_work
from hermes_doctor.cli.progress_bars import print_schema_document
from hermes_doctor.core import home as homes, outgoing
from hermes_doctor.core.home import Home
from hermes_doctor.core.known_secrets import watch_home
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import user_home
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.age import ArchiveKeys, NamedCopy
    from hermes_doctor.backup.vault.hermes_backups import HermesBackup
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.core.system.separate_process import Action


def run_on_vault(home: Path | None, vault: Path | None, work: Callable[[Vault], int]) -> int:
    """Do the work on the vault of a home, as the home's owner if root calls it.

    The home may be lost if the vault is elsewhere.
    """
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.cli.option_values import absolute

    place = absolute(vault)
    where = find_home(home, elsewhere=place is not None)
    return separate_work.run(where, lambda: work(Vault(where, place)), vault=place)


@contextmanager
def named_copy(
    name: str, home: Home, keys: ArchiveKeys
) -> Iterator[tuple[NamedCopy, Mapping[str, Action]]]:
    """Yield the copy that the operator has named, and what root does for a process of the owner."""
    from hermes_doctor.backup.vault.age import NamedCopy
    from hermes_doctor.cli import separate_look

    copy = NamedCopy(name, keys)
    owner = separate_look.owner_of(home.path) if home.path.is_dir() else None
    if owner is None:
        yield copy, EMPTY
        return
    from hermes_doctor.backup.vault import copy_of_root

    with copy_of_root.opened(copy, home, owner) as found:
        yield found


def find_home(option: Path | None, *, elsewhere: bool) -> Home:
    """The home; if it is lost but its backups are elsewhere, the folder that it had."""
    from hermes_doctor.cli.option_values import named_home

    try:
        return homes.find(option)
    except Trouble:
        chosen = effective.load()
        named = named_home(option) or (setting.value if (setting := chosen.find("home")) else None)
        place = (named or user_home() / ".hermes").expanduser().absolute()
        elsewhere = elsewhere or chosen.vault(Path(os.path.realpath(place))) is not None
        try:
            empty = not os.listdir(place) if os.path.lexists(place) else place.parent.is_dir()
        except OSError:
            empty = False
        if not elsewhere or not empty:
            raise
        lost = Home(place.resolve(), place)
        watch_home(lost.path)
        return lost


@contextmanager
def recreated_folder(home: Home) -> Iterator[None]:
    """Create the folder of a lost home; remove it again if nothing was put into it.

    Root creates it with the rights of the user to whom the folder above it belongs, and that user
    then is its owner: his links lead to no place where he could not create it himself.
    """
    if home.path.is_dir():
        yield
        return
    disk.make_folder(home.named or home.path)
    outgoing.known.remove_source(home.path)
    watch_home(home.path)  # only now is it known whose it is
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            disk.remove_folder(home.path)


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
