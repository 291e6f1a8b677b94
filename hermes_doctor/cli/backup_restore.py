"""The `backup restore` command: restore files from a backup; `undo` reverts it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import backup_transfer, other_backups, separate_work
from hermes_doctor.cli.option_declarations import (
    HomeOption,
    JsonOption,
    VaultOption,
    YesOption,
    complete_store,
)
from hermes_doctor.cli.option_values import absolute, load_plugins, named_home, repeat_options
from hermes_doctor.cli.progress_bars import bar, waiting
from hermes_doctor.cli.restore_common import exit_code, recover_first, restore_items
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.age import NamedCopy
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.plugins.load import Plugins

EPILOG = """\b
Examples:
  hermes-doctor backup restore ID
  hermes-doctor backup restore ID config.yaml state.db --yes
  hermes-doctor backup restore ID cron pairing 'profiles/coder/*'
  hermes-doctor backup restore ~/hermes-backup-2026-01-31.zip auth

\b
Exit codes:
  0  restored and verified
  1  rolled back because it failed, or you answered no
  2  could not run; nothing was changed
"""


def restore(
    id: str = typer.Argument(
        help="A backup id, an archive, or a zip or snapshot that Hermes made."
    ),
    paths: list[str] | None = typer.Argument(
        None,
        help="Restore only these files, folders, globs or stores (config, env, auth, history, "
        "sessions, kanban, cron, pairing, webhooks, channels, memories, skills, whatsapp, "
        "weixin, matrix) instead of everything.",
        autocompletion=complete_store,
    ),
    identity: backup_transfer.IdentityOption = None,
    passphrase_file: backup_transfer.PassphraseOption = None,
    other_home: bool = typer.Option(
        False, "--other-home", help="Allow a backup of another home or another folder."
    ),
    yes: YesOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Restore files from a backup; `undo` reverts it.

    The current files are backed up first. A missing home is created again if the backup is outside
    of it.
    """
    from hermes_doctor.backup.vault.age import ArchiveKeys
    from hermes_doctor.cli import vault_option

    where = vault_option.find_home(home, elsewhere=vault is not None or Path(id).is_file())
    place, repeat = absolute(vault), repeat_options(named_home(home))
    keys = ArchiveKeys(passphrase_file=passphrase_file, identity=identity)
    plugins = load_plugins(None)

    def work(copy: NamedCopy) -> int:
        return _restore(
            where,
            plugins,
            place,
            copy,
            paths or (),
            repeat,
            other_home=other_home,
            yes=yes,
            json=json,
        )

    with (
        vault_option.recreated_folder(where),
        vault_option.named_copy(id, where, keys) as (copy, actions),
    ):
        return separate_work.run(where, lambda: work(copy), plugins, vault=place, actions=actions)


def _restore(
    where: Home,
    plugins: Plugins,
    vault: Path | None,
    copy: NamedCopy,
    paths: Sequence[str],
    repeat: str,
    *,
    other_home: bool,
    yes: bool,
    json: bool,
) -> int:
    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.backup.vault import (
        backup_rows,
        intake,
        prune_rules,
        restore_files,
        selection,
    )
    from hermes_doctor.backup.vault.backup_rows import LastRows
    from hermes_doctor.backup.vault.unreadable_files import list_missing
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.repair.transaction import undo

    with (
        lock_home(where),
        recover_first(where, plugins, json=json) as ended,
    ):
        store = Vault(where, vault)
        id = other_backups.import_copy(store, copy, confirmed=yes, quiet=json)
        with waiting("reading the backup", quiet=json):
            backup = store.load(id)
        if not store.is_ours(id) and not other_home:
            raise Trouble(
                "Backup {id} belongs to another home, {home}. Nothing was changed. To "
                "restore it here: add --other-home",
                id=id,
                home=backup.home,
            )
        backup = intake.assign_to_home(where, backup) if other_home else backup
        names = [entry.path for entry in backup.entries]
        chosen, unknown = selection.select_paths(paths, names)
        if unknown:
            raise Trouble(
                "Backup {id} does not contain {file!r}. Nothing was changed.",
                id=id,
                file=unknown[0],
            )
        wanted = [
            entry
            for entry in backup.entries
            if (entry.path in chosen if paths else not selection.is_process_file(entry.path))
        ]
        named = selection.select_paths([path for path in paths if path.startswith("/")], names)[0]
        wanted, left = restore_files.split_restorable(where, wanted, backup.entries, named)
        if left and not json:
            line = f"Not restored, because outside of the home: {', '.join(left)}."
            show([row(("! ", "warning"), f"{line} To restore it: name its path.", hang=2)])
        if backup.missing and not paths and not json:
            line = (
                f"Backup {id} is incomplete. These files are not restored: "
                f"{list_missing(backup.missing)}"
            )
            show([row(("! ", "warning"), line, hang=2)])
        if not wanted:
            raise Trouble("Backup {id} contains nothing to restore. Nothing was changed.", id=id)
        part = backup._replace(entries=tuple(wanted))
        with bar(f"verifying {id}", part.size, quiet=json) as progress:
            wrong = store.verify(part, progress)
        if wrong:
            raise Trouble(
                "Backup {id} is damaged: {reason}. Nothing was changed.", id=id, reason=wrong[0]
            )
        losses: list[str] = []
        with waiting("comparing the rows", quiet=json):
            rows = LastRows(store, ())
            if prune_rules.is_saved_log(where, id):
                said = list(backup_rows.differences(rows, backup, {entry.path for entry in wanted}))
            else:
                said, losses = [], backup_rows.removed_by(rows, backup, wanted)
        if not json:
            show([row(("! ", "warning"), line, hang=2) for line in said])
        done = restore_items(
            where,
            undo.items_for(where, backup, wanted, "restore"),
            undo.restore_verifier(where, backup.entries),
            kind="restore",
            of=id,
            hermes=backup.hermes,
            ended=ended,
            yes=yes,
            json=json,
            vault=vault,
            repeat=repeat,
            losses=losses,
            more=({"left": list(left)} if left else {})
            | (
                {"missing": [missing_file.document for missing_file in backup.missing]}
                if backup.missing
                else {}
            ),
        )
    return exit_code(done, ended)
