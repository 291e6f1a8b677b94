"""The `rollback` command: return to the Hermes and the data from before an update."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import exits, separate_work
from hermes_doctor.cli.after_update import home_with_records, refuse_running
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, YesOption
from hermes_doctor.cli.option_values import load_plugins, named_home, repeat_options
from hermes_doctor.cli.progress_bars import capitalized, print_document, say, tell
from hermes_doctor.cli.restore_common import recover_first, restore_items
from hermes_doctor.core import home as homes
from hermes_doctor.core.message import ago, sentences, text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.redaction import clean

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.backup.records.updates import Update
    from hermes_doctor.backup.vault.manifest import Backup
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.core.home import Home
    from hermes_doctor.operations.updates.rollback import Plan
    from hermes_doctor.repair.transaction.recovery import RecoveredRun

EPILOG = """\b
What it does:
  Stops the gateway, reinstalls the previous Hermes, restores the data from
  the backup, and starts the gateway. The current data is backed up first;
  `hermes-doctor undo` restores it.

\b
Examples:
  hermes-doctor rollback                    show the plan and ask
  hermes-doctor rollback --keep-data --yes  only the previous Hermes

\b
Exit codes:
  0  rolled back and verified
  1  you answered no, or something could not be restored
  2  could not run; nothing was changed
"""


def rollback(
    update: str | None = typer.Argument(None, help="An update id; without it, the last update."),
    keep_data: bool = typer.Option(
        False, "--keep-data", help="Reinstall only the previous Hermes; keep the current data."
    ),
    home: HomeOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> int:
    """Return to the Hermes and the data before an update."""
    where = homes.find(home) if home else home_with_records(homes.find(None))
    repeat = repeat_options(named_home(home))
    work = lambda: _rollback(where, update, repeat, keep_data=keep_data, yes=yes, json=json)  # noqa: E731
    actions = separate_work.actions_of_updates(where)
    return separate_work.run(where, work, load_plugins(None), actions=actions)


def _rollback(
    where: Home, update: str | None, repeat: str, *, keep_data: bool, yes: bool, json: bool
) -> int:
    from hermes_doctor.backup.records.updates import BACK, UpdateRecords
    from hermes_doctor.backup.vault.backup_rows import LastRows, removed_by
    from hermes_doctor.cli.option_declarations import confirm

    records = UpdateRecords(where)
    which = records.load(update) if update else records.newest()
    if which is None:
        raise Trouble("No guarded update was made here, so there is nothing to roll back.")
    if which.stage == BACK and not update:
        raise Trouble(
            "Update {id} was already rolled back. Nothing was changed. To restore "
            "its backup again and replace all newer data: hermes-doctor rollback {id}",
            id=which.id,
        )
    refuse_running(which)
    exits.set_interrupt_text(exits.NOTHING)
    with records.lock() as hold:
        try:
            plan, backup = _planned(where, which, keep_data=keep_data)
        except (CannotFix, CouldNotLook, Trouble) as why:
            said = _sentence(why).replace(" Nothing was changed.", "")
            raise Trouble(sentences(said, "Nothing was changed.")) from None
        for command in plan.commands:
            say("→ ", "faint", f"run {command}")
        for note in plan.notes:
            say("  ", "faint", note)
        if backup is not None:
            made = ago(backup.created_at)
            say("→ ", "faint", f"restore everything from backup {backup.id} of {made}")
            rows = LastRows(_vault_of(where, which), ())
            for loss in removed_by(rows, backup, backup.entries):
                say("! ", "warning", loss)
        old = which.before.version if which.before else "before the update"
        question = "Return to Hermes {version}? The current data is kept."
        if backup is not None:
            question = (
                "Return to Hermes {version} and restore its data? The current data is backed up "
                "first."
            )
        if not yes and not confirm(text(question, version=old)):
            say("  ", "faint", "Nothing was changed.")
            return 1
        return _go_back(where, which, plan, backup, hold, repeat, json=json)


def _vault_of(home: Home, update: Update) -> Vault:
    """The vault with the backup that was made before an update."""
    from hermes_doctor.backup.vault.vault import Vault

    return Vault(home, Path(update.vault) if update.vault else home.vault)


def _sentence(why: object) -> str:
    text = str(why)
    return f"{capitalized(text)}{'' if text.endswith('.') else '.'}"


def _planned(home: Home, update: Update, *, keep_data: bool) -> tuple[Plan, Backup | None]:
    """Plan the rollback and check all that may fail, before anything is changed."""
    from hermes_doctor.operations.updates import images, rollback

    if update.before is None:
        unknown = "The Hermes version before update {id} is unknown."
        if update.doubt:
            unknown = "The Hermes version before update {id} is unknown: {reason}."
        unknown = text(unknown, id=update.id, reason=clean(update.doubt or "").rstrip("."))
        data = update.restore_command(home)
        restore = text("Restore the data with: {command}", command=data) if data else ""
        raise Trouble(sentences(unknown, "Reinstall it yourself.", restore))
    if update.backup is None and not keep_data:
        raise Trouble(
            "This update has no backup. To reinstall only the previous Hermes: add --keep-data"
        )
    plan = rollback.plan(home, update, images.hermes_in_place_of(update.before, home))
    rollback.refuse_holders(home, update, keep_data=keep_data)
    if keep_data or update.backup is None:
        return plan, None
    store = _vault_of(home, update)
    backup = store.load(update.backup)
    tell(f"verifying backup {backup.id}")
    if wrong := store.verify(backup):
        raise Trouble("Backup {id} is damaged: {reason}.", id=backup.id, reason=wrong[0])
    return plan, backup


def _go_back(
    home: Home,
    update: Update,
    plan: Plan,
    backup: Backup | None,
    hold: int,
    repeat: str,
    *,
    json: bool,
) -> int:
    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.backup.records.updates import (
        BACK,
        GOING_BACK,
        UpdateRecords,
        process_identity,
    )
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.operations.updates import rollback
    from hermes_doctor.operations.updates.downtime import gateways_stopped

    assert update.before is not None
    records = UpdateRecords(home)
    with lock_home(home), recover_first(home, load_plugins(None), json=json) as ended:
        update.stage = GOING_BACK
        update.guard = process_identity(os.getpid()) or []
        records.save(update)
        exits.note_change()
        exits.set_interrupt_text("The rollback is not finished.")
        runs: list[Journal] = []
        try:
            with gateways_stopped(home, update, tell) as up_again:
                rollback.restore_hermes(home, plan.commands, update.before, tell, lock_fd=hold)
                if backup is not None:
                    _restore(home, update, backup, ended, runs, repeat, json=json)
                up_again()
        except (CannotFix, CouldNotLook, Trouble) as why:
            said = _sentence(why)
            for denied in (" Nothing was changed.", " Nothing was changed;"):
                said = said.replace(denied, "")
            again = "The rollback is not finished. Solve this, then run it again."
            say("✗ ", "error", f"{said} {again}")
            for note in plan.notes:
                say("  ", "faint", note)
            if json:
                _report(home, update, plan, runs, ended, said)
            return 1
        update.stage = BACK
        update.guard = []
        records.save(update)
        exits.set_interrupt_text("The rollback is finished.")
    revision = f" ({update.before.revision[:12]})" if update.before.revision else ""
    say("✓ ", "good", f"Returned to Hermes {update.before.version}{revision}.")
    for note in plan.notes:
        say("  ", "faint", note)
    if update.gateway is not None and not Probes(home).gateway.running():
        say("! ", "warning", "The gateway ran before the update but is not running now. Start it.")
    if json:
        _report(home, update, plan, runs, ended)
    return int(any(one.partial for one in ended) or any(run.leaves_files for run in runs))


def _report(
    home: Home,
    update: Update,
    plan: Plan,
    runs: Sequence[Journal],
    ended: Sequence[RecoveredRun],
    error: str | None = None,
) -> None:
    """Print the JSON document, with or without restored data, on success or failure."""
    from hermes_doctor.render import repair

    print_document(
        {
            "schema": "hermes-doctor/rollback/1",
            "home": str(home.path),
            "update": update.id,
            "hermes": update.before.version if update.before else None,
            "commands": [list(command.words) for command in plan.commands],
            "notes": list(plan.notes),
            "run": repair.run_document(runs[0]) if runs else None,
            "recovered": [run.text for run in ended],
            "error": error,
        }
    )


def _restore(
    home: Home,
    update: Update,
    backup: Backup,
    ended: Sequence[RecoveredRun],
    runs: list[Journal],
    repeat: str,
    *,
    json: bool,
) -> None:
    from hermes_doctor.backup.vault import restore_files
    from hermes_doctor.backup.vault.selection import is_process_file
    from hermes_doctor.repair.transaction import undo

    useful = [entry for entry in backup.entries if not is_process_file(entry.path)]
    wanted, left = restore_files.split_restorable(home, useful, backup.entries)
    for name in left:
        say("! ", "warning", f"{name} is outside of the home and was not restored.")
    done = restore_items(
        home,
        undo.items_for(home, backup, wanted, "rollback"),
        undo.restore_verifier(home, backup.entries),
        kind="restore",
        of=backup.id,
        hermes=backup.hermes,
        ended=ended,
        yes=True,
        json=json,
        vault=Path(update.vault) if update.vault else None,
        repeat=repeat,
        report=not json,
    )
    if done is not None:
        runs.append(done)
    if done is None or done.state != "done":
        raise CannotFix("The data could not be restored.")
