"""The `backup restore` command: restore files from a backup; `undo` reverts it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import backup_common, backup_transfer, separate_work
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
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.age import NamedCopy
    from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
    from hermes_doctor.backup.vault.vault import Vault
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

    where = backup_common.find_home(home, elsewhere=vault is not None or Path(id).is_file())
    place, repeat = absolute(vault), repeat_options(named_home(home))
    keys = ArchiveKeys(passphrase_file=passphrase_file, identity=identity)
    plugins = load_plugins(None)
    with (
        backup_common.recreated_folder(where),
        backup_common.named_copy(id, where, keys) as (copy, actions),
    ):
        request = _Request(where, place, copy, paths or (), repeat, other_home, yes, json)
        work = partial(request.restore, plugins)
        return separate_work.run(where, work, plugins, vault=place, actions=actions)


class _Request(NamedTuple):
    """What to restore, and how."""

    home: Home
    vault: Path | None
    copy: NamedCopy
    paths: Sequence[str]
    repeat: str
    other_home: bool
    yes: bool
    json: bool

    def restore(self, plugins: Plugins) -> int:
        """Verify the files in the backup, show what is lost, ask, and restore."""
        from hermes_doctor.backup.records.home_lock import lock_home
        from hermes_doctor.backup.vault import backup_rows, prune_rules
        from hermes_doctor.backup.vault.vault import Vault
        from hermes_doctor.repair.transaction import undo

        home, json = self.home, self.json
        with lock_home(home), recover_first(home, plugins, json=json) as ended:
            store = Vault(home, self.vault)
            backup = self._load(store)
            id = backup.id
            wanted, left = self._select(backup)
            part = backup._replace(entries=tuple(wanted))
            with bar(f"verifying {id}", part.size, quiet=json) as progress:
                wrong = store.verify(part, progress)
            if wrong:
                damaged = "Backup {id} is damaged: {reason}. Nothing was changed."
                raise Trouble(damaged, id=id, reason=wrong[0])
            said: list[str] = []
            losses: list[str] = []
            with waiting("comparing the rows", quiet=json):
                rows = backup_rows.LastRows(store, ())
                if prune_rules.is_saved_log(home, id):
                    paths = {entry.path for entry in wanted}
                    said = list(backup_rows.differences(rows, backup, paths))
                else:
                    losses = backup_rows.removed_by(rows, backup, wanted)
            self._warn(said)
            missing = [missing_file.document for missing_file in backup.missing]
            unrestored = {"left": list(left), "missing": missing}
            done = restore_items(
                home,
                undo.items_for(home, backup, wanted, "restore"),
                undo.restore_verifier(home, backup.entries),
                kind="restore",
                of=id,
                hermes=backup.hermes,
                ended=ended,
                yes=self.yes,
                json=json,
                vault=self.vault,
                repeat=self.repeat,
                losses=losses,
                more={name: files for name, files in unrestored.items() if files},
            )
        return exit_code(done, ended)

    def _load(self, store: Vault) -> Backup:
        """Load the backup; a copy that is not in the vault is imported first."""
        from hermes_doctor.backup.vault import intake

        id = backup_common.import_copy(store, self.copy, confirmed=self.yes, quiet=self.json)
        with waiting("reading the backup", quiet=self.json):
            backup = store.load(id)
        if self.other_home:
            return intake.assign_to_home(self.home, backup)
        if not store.is_ours(id):
            raise Trouble(
                "Backup {id} belongs to another home, {home}. Nothing was changed. To "
                "restore it here: add --other-home",
                id=id,
                home=backup.home,
            )
        return backup

    def _select(self, backup: Backup) -> tuple[list[BackupEntry], Sequence[str]]:
        """Return the entries to restore, and the paths of those that stay outside of the home."""
        from hermes_doctor.backup.vault import restore_files, selection
        from hermes_doctor.backup.vault.unreadable_files import list_missing

        id, paths = backup.id, self.paths
        names = [entry.path for entry in backup.entries]
        chosen, unknown = selection.select_paths(paths, names)
        if unknown:
            absent = "Backup {id} does not contain {file!r}. Nothing was changed."
            raise Trouble(absent, id=id, file=unknown[0])
        entries = [
            entry
            for entry in backup.entries
            if (entry.path in chosen if paths else not selection.is_process_file(entry.path))
        ]
        named = selection.select_paths([path for path in paths if path.startswith("/")], names)[0]
        wanted, left = restore_files.split_restorable(self.home, entries, backup.entries, named)
        if left:
            line = f"Not restored, because outside of the home: {', '.join(left)}."
            self._warn([f"{line} To restore it: name its path."])
        if backup.missing and not paths:
            line = f"Backup {id} is incomplete. These files are not restored: "
            self._warn([line + list_missing(backup.missing)])
        if not wanted:
            raise Trouble("Backup {id} contains nothing to restore. Nothing was changed.", id=id)
        return wanted, left

    def _warn(self, lines: Sequence[str]) -> None:
        if not self.json:
            show([row(("! ", "warning"), line, hang=2) for line in lines])
