"""The `backup verify` command: check that backups are intact and can be restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli import backup_common, backup_transfer, separate_work
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, VaultOption
from hermes_doctor.cli.option_values import absolute, named_home, repeat_options
from hermes_doctor.cli.progress_bars import bar, print_schema_document
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.age import NamedCopy
    from hermes_doctor.backup.vault.unreadable_files import MissingFile
    from hermes_doctor.backup.vault.vault import Vault

IdArgument = Annotated[
    str | None,
    typer.Argument(
        help="A backup id, an archive, or a zip or snapshot that Hermes made; without it, the "
        "newest backup."
    ),
]
EPILOG = """\b
Examples:
  hermes-doctor backup verify --all
  hermes-doctor backup verify --deep
  hermes-doctor backup verify --hermes
  hermes-doctor backup verify /mnt/usb/ID.tar.age --identity key.txt

\b
Exit codes:
  0  intact
  1  damaged, or incomplete because files could not be read
  2  could not run
"""


def verify(
    id: IdArgument = None,
    every: bool = typer.Option(False, "--all", help="Verify all backups."),
    deep: bool = typer.Option(
        False, "--deep", help="Restore into a temporary folder and let SQLite check every row."
    ),
    hermes: bool = typer.Option(
        False, "--hermes", help="Verify the zips and snapshots that Hermes made."
    ),
    identity: backup_transfer.IdentityOption = None,
    passphrase_file: backup_transfer.PassphraseOption = None,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Compare every byte of a backup with its manifest."""
    from hermes_doctor.backup.vault.age import ArchiveKeys
    from hermes_doctor.backup.vault.vault import Vault

    keys = ArchiveKeys(passphrase_file=passphrase_file, identity=identity)
    options = repeat_options(named_home(home), vault=vault)
    place = absolute(vault)
    where = backup_common.find_home(home, elsewhere=place is not None)

    def work(copy: NamedCopy | None) -> int:
        store = Vault(where, place)
        return _verify(store, copy, options, every=every, deep=deep, hermes=hermes, json=json)

    if id is None:
        return separate_work.run(where, lambda: work(None), vault=place)
    with backup_common.named_copy(id, where, keys) as (copy, actions):
        return separate_work.run(where, lambda: work(copy), vault=place, actions=actions)


def _verify(
    store: Vault,
    copy: NamedCopy | None,
    options: str,
    *,
    every: bool,
    deep: bool,
    hermes: bool,
    json: bool,
) -> int:
    from hermes_doctor.backup.vault.unreadable_files import list_missing

    results = backup_common.verify_others(store, copy, all_backups=hermes)
    lacking: dict[str, tuple[MissingFile, ...]] = {}
    if results is None:
        ids = store.ids() if every else [_chosen(store, copy.name if copy else None, options)]
        results = _verified(store, ids, lacking, deep=deep, quiet=json)
    if json:
        backups = [
            {
                "id": one,
                "whole": not wrong,
                "wrong": wrong,
                "missing": [lack.document for lack in lacking.get(one, ())],
            }
            for one, wrong in results
        ]
        print_schema_document("verification", {"backups": backups})
    else:
        for one, wrong in results:
            missing = lacking.get(one)
            if not wrong and missing:
                text = f"Backup {one} is intact but incomplete; these could not be read when it "
                text += f"was created: {list_missing(missing)}"
                show([row(("! ", "warning"), text, hang=2)])
            elif not wrong:
                text = "is intact, and all of it can be restored" if deep else "is intact"
                show([row(("✓ ", "good"), f"Backup {one} {text}.", hang=2)])
            show([row(("✗ ", "error"), f"Backup {one}: {text}", hang=2) for text in wrong])
        if not results:
            show([row("No backup to verify.")])
    return int(any(wrong for _, wrong in results) or any(lacking.values()))


def _verified(
    store: Vault,
    ids: Sequence[str],
    lacking: dict[str, tuple[MissingFile, ...]],
    *,
    deep: bool,
    quiet: bool,
) -> list[tuple[str, list[str]]]:
    """What is wrong with each backup; files that they share are read once.

    Files that could not be read when a backup was made are added to `lacking`.
    """
    from hermes_doctor.backup.vault.trial_restore import try_restore

    results: list[tuple[str, list[str]]] = []
    known: dict[bytes, str] | None = {} if len(ids) > 1 else None
    with backup_common.exclusive_vault(store) if deep else interruptible():
        for one in ids:
            try:
                backup = store.load(one)
                lacking[one] = backup.missing
                with bar(f"verifying {one}", backup.size, quiet=quiet) as progress:
                    if deep:
                        wrong = try_restore(store, backup, progress)
                    else:
                        wrong = store.verify(backup, progress, known)
            except Trouble as trouble:
                wrong = [str(trouble)]
            results.append((one, wrong))
    return results


def _chosen(store: Vault, id: str | None, options: str) -> str:
    ids = [one for one in store.ids() if id or store.is_ours(one)]
    if id and id not in ids:
        absent = "No backup {id!r} in {vault}. See: hermes-doctor backup list{options}"
        raise Trouble(absent, id=id, vault=store.root, options=options)
    if not ids:
        make = f"hermes-doctor backup create{options}"
        none = "{vault} contains no backup of this home. Create one: {command}"
        raise Trouble(none, vault=store.root, command=make)
    return id or ids[-1]
