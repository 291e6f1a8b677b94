"""The `backup` command: create and list backups; the subcommands have their own modules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import (
    backup_common,
    backup_prune,
    backup_restore,
    backup_schedule as schedule,
    backup_transfer,
    backup_verify,
    separate_look,
    separate_work,
)
from hermes_doctor.cli.backup_common import run_on_vault
from hermes_doctor.cli.help_layout import WholeSummaries
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, VaultOption
from hermes_doctor.cli.option_values import named_home, repeat_options
from hermes_doctor.cli.progress_bars import print_schema_document
from hermes_doctor.core import home as homes
from hermes_doctor.core.message import ago, count
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import size
from hermes_doctor.core.terminal.lines import BLANK, row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.manifest import Backup
    from hermes_doctor.backup.vault.vault import Vault

app = typer.Typer(
    cls=WholeSummaries,
    help="Create, verify, restore and prune backups of a home.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="""\b
Examples:
  hermes-doctor backup create --reason 'before the update'
  hermes-doctor backup verify --deep
  hermes-doctor backup restore ID config.yaml
  hermes-doctor backup schedule install --at 03:30 --daily 7 --weekly 4
  hermes-doctor backup prune --keep 10 --older-than 30d

\b
Exit codes:
  0  done
  1  a backup is damaged or incomplete, or you answered no
  2  could not run; nothing was changed
""",
)
app.add_typer(schedule.app, name="schedule")


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup create
  hermes-doctor backup create --reason 'before the update' --vault /mnt/disk
  hermes-doctor backup create --exclude sessions --include logs
  hermes-doctor backup create --to /mnt/usb --encrypt-to age1…

\b
Exit codes:
  0  created and verified
  1  created, but a database is damaged or files could not be read
  2  no backup was created
"""
)
def create(
    home: HomeOption = None,
    vault: VaultOption = None,
    reason: str = typer.Option("by hand", help="Store this reason with the backup."),
    full: bool = typer.Option(
        False, "--full", help="Copy everything; share no data with the previous backup."
    ),
    include: list[str] | None = typer.Option(
        None, help="Also back up files that are skipped by default (glob). Repeatable."
    ),
    exclude: list[str] | None = typer.Option(
        None, help="Leave out these files (glob). Repeatable."
    ),
    to: backup_transfer.ToOption = None,
    encrypt_to: backup_transfer.EncryptOption = None,
    passphrase_file: backup_transfer.PassphraseOption = None,
    daily: schedule.DailyOption = 0,
    weekly: schedule.WeeklyOption = 0,
    monthly: schedule.MonthlyOption = 0,
    json: JsonOption = False,
) -> int:
    """Back up the home and verify the backup.

    Logs, caches and code are skipped. With --daily, --weekly or --monthly, old backups are removed.
    """
    from hermes_doctor.backup.vault.prune_rules import Retention
    from hermes_doctor.cli.backup_create import run

    return run(
        home=home,
        vault=vault,
        reason=reason,
        full=full,
        include=include,
        exclude=exclude,
        to=to,
        encrypt_to=encrypt_to,
        passphrase_file=passphrase_file,
        rule=Retention(daily, weekly, monthly),
        json=json,
    )


@app.command(
    "list",
    epilog="""\b
Examples:
  hermes-doctor backup list
  hermes-doctor backup list --hermes

\b
Exit codes:
  0  listed
  2  could not run
""",
)
def list_(
    hermes: bool = typer.Option(
        False, "--hermes", help="List the zips and snapshots that Hermes made."
    ),
    restic: backup_transfer.ResticOption = None,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """List the backups, oldest first."""
    if hermes or restic:
        where = homes.find(home)
        if restic:  # it opens nothing in the home
            separate_look.know_secrets(where.path)
            return backup_common.list_others(where, restic, json=json)
        others = lambda: backup_common.list_others(where, None, json=json)  # noqa: E731
        return separate_work.run(where, others, writes=False)
    options = repeat_options(named_home(home), vault=vault)
    return run_on_vault(home, vault, lambda store: _list(store, options, json=json))


def _list(store: Vault, options: str, *, json: bool) -> int:
    from hermes_doctor.backup.vault.unreadable_files import list_missing
    from hermes_doctor.cli.backup_create import backup_document

    known: list[tuple[str, Backup | None]] = []
    for id in store.ids():
        try:
            known.append((id, store.load(id)))
        except Trouble:
            known.append((id, None))
    if json:
        backups = [
            backup_document(one) if one else {"id": id, "damaged": True} for id, one in known
        ]
        print_schema_document("backups", {"vault": str(store.root), "backups": backups})
        return 0
    if not known:
        make = f"hermes-doctor backup create{options}"
        show([row("No backup exists yet. Create one: ", (make, "command"))])
    for id, backup in known:
        if backup is None:
            show([row((id, "strong"), "  ", ("damaged: its manifest cannot be read", "error"))])
        else:
            version = f"Hermes {backup.hermes}" if backup.hermes else "unknown Hermes"
            files = count(len(backup.entries), "file")
            data = f"{files}, {size(backup.size)}"
            parts = [ago(backup.created_at), data, version, backup.reason]
            if backup.home != str(store.home.path):
                parts.append(f"(of {tilde(backup.home)})")
            text = "".join(f"  {part}" for part in parts)
            show([row((id, "strong"), text, hang=2)])
            if backup.missing:
                text = f"incomplete, these could not be read: {list_missing(backup.missing)}"
                show([row(("! ", "warning"), text, indent=2, hang=2)])
    if known and sys.stdout is not None and sys.stdout.isatty():  # a pipe gets one line per backup
        command = f"hermes-doctor backup restore {known[-1][0]}{options}"
        show([BLANK, row("Next: ", (command, "command"), "  restore the newest", hang=6)])
    return 0


app.command("verify", epilog=backup_verify.EPILOG)(backup_verify.verify)
app.command("restore", epilog=backup_restore.EPILOG)(backup_restore.restore)
app.command("prune", epilog=backup_prune.EPILOG)(backup_prune.prune)
app.command("export", epilog=backup_transfer.EXPORT)(backup_transfer.export)
app.command("push", epilog=backup_transfer.PUSH)(backup_transfer.push)
app.command("pull", epilog=backup_transfer.PULL)(backup_transfer.pull)
