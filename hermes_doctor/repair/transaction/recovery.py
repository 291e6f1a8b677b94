"""Recover runs that were interrupted: finish each one or roll it back, and report what was done."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.backup.records import home_lock, journal as journals
from hermes_doctor.backup.records.journal import Journal, Journals, PathRecord
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.backup.vault.vault import PARTIAL, Vault
from hermes_doctor.core.home import Home, database_of, is_database
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system.signals import delay_signals, interruptible
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.repair.transaction import paths, undo_guards
from hermes_doctor.repair.transaction.atomic_switch import Switch, switches
from hermes_doctor.repair.transaction.gateway import (
    ASKED,
    remove_origin_file,
    start_stopped_gateway,
)
from hermes_doctor.repair.transaction.outcomes import left_files_note, mark_left_items
from hermes_doctor.repair.transaction.rollback import (
    clean,
    is_lone_sidecar,
    is_used_lone_sidecar,
    roll_back,
    try_again,
    used_after_switch,
)
from hermes_doctor.repair.transaction.targets import Verify, revert_interrupted


@dataclass(frozen=True)
class RecoveredRun:
    """An interrupted run that has been finished or rolled back now."""

    text: str
    finished: bool
    """True if its changes stay; otherwise they are rolled back, apart from what `partial` means."""
    kind: str
    partial: bool = False
    """Something is left that the operator has to look at; the text says what and where."""
    said_before: bool = False
    """The command that made the run has already reported that nothing was changed."""
    journal: Journal | None = None
    """Its receipt."""


def recover(home: Home, verify: Verify) -> list[RecoveredRun]:
    """Finish or roll back every interrupted run of this home; the caller holds the home's lock.

    A run that was not committed is dropped, one that was partly committed is rolled back, and one
    that was complete but not verified is verified now.
    """
    every = Journals(home)
    Vault(home).remove_leftovers()
    ended = [recovered_run for journal in every.all() if (recovered_run := _clean_again(journal))]
    ended += [_end(journal, verify) for journal in every.all() if not journal.final]
    known = every.all()
    for journal in known:  # an undo that was interrupted before it recorded its end
        if journal.kind == "undo" and journal.state == journals.DONE:
            group = next((one.group for one in known if one.id == journal.of), None)
            mark_undone([one for one in known if one.group == group], journal.id)
    return ended


def _clean_again(journal: Journal) -> RecoveredRun | None:
    """Retry to remove leftover files of a finished run; return a report if some are still there."""
    if not journal.final or not journal.unremoved:
        return None
    paths.refuse_foreign_paths(
        journal.current_home, journal.unremoved, f"The receipt of run {journal.id}"
    )
    gone = try_again(journal)
    journal.save()
    if gone:
        return None
    text = f"Run {journal.id} ({journal.kind}) is finished.{left_files_note(journal)}"
    return RecoveredRun(text, finished=True, kind=journal.kind, partial=True)


def mark_undone(runs: Sequence[Journal], undone_by: str) -> None:
    """Record in the receipts of a command's runs that another run has undone them."""
    for undone in reversed(runs):
        if undone.in_place:
            paths.remove_folders(undone)
            undone.state, undone.undone_by = journals.UNDONE, undone_by
            undone.save()


def _end(journal: Journal, verify: Verify) -> RecoveredRun:
    named = [*(record.path for record in journal.paths), *journal.outside_folders]
    paths.refuse_foreign_paths(journal.current_home, named, f"The receipt of run {journal.id}")
    was_ending = journal.state == journals.ENDING  # else PARTLY means: reversed in part
    was_taken_back = journal.was_rolled_back()
    with interruptible(), delay_signals():
        text = _write_down(journal) if was_taken_back else _finish_or_take_back(journal, verify)
        journal.save()
        try:
            backup = Vault(journal.current_home, journal.vault_folder).load(journal.id)
        except Trouble:
            backup = None
        clean(journal, backup)
        text += left_files_note(journal)
        text += start_stopped_gateway(journal)
        if journal.gateway != ASKED:
            remove_origin_file(journal)
            journal.close()
        journal.save()
        journal.remove_marks()
    partial = journal.end == journals.PARTLY or journal.leaves_files
    finished = journal.state == journals.DONE or (was_ending and journal.state == journals.PARTLY)
    return RecoveredRun(text, finished, journal.kind, partial, was_taken_back, journal)


def _write_down(journal: Journal) -> str:
    """Complete the receipt of a run that rolled everything back but could not save that."""
    for record in journal.paths:
        record.reverted = True
    for act in journal.acts:
        act.reverted = act.begun
    for item in journal.items:
        item.outcome, item.reason = "rolled-back", "the run failed"
    journal.finish(journals.ROLLED_BACK, "rolled back; its receipt was saved later")
    return (
        f"Run {journal.id} ({journal.kind}) failed earlier and was rolled back, so nothing was "
        f"changed. Its receipt could not be saved at that time and is saved now."
    )


def _finish_or_take_back(journal: Journal, verify: Verify) -> str:
    """Decide whether to finish or roll back an interrupted run, do it, and describe it."""
    vault = Vault(journal.current_home, journal.vault_folder)
    started = f"Run {journal.id} ({journal.kind}) was interrupted"
    if journal.gateway == ASKED and journal.state == journals.ENDING:
        return f"Run {journal.id} ({journal.kind}) waits for the gateway to stop."
    if journal.state == journals.ENDING and journal.end == journals.ROLLED_BACK:
        return f"{started} while it was cleaning up. Its changes had been rolled back."
    if journal.state == journals.ENDING and journal.end == journals.ABANDONED:
        return f"{started} while it was cleaning up. It had changed nothing."
    if journal.state == journals.ENDING:
        return f"{started} while it was cleaning up. It is finished now."
    if journal.state in (journals.BACKING_UP, journals.STAGING):
        if vault.began(journal.id + PARTIAL):
            with contextlib.suppress(OSError):
                vault.discard(journal.id + PARTIAL)
        journal.finish(journals.ABANDONED, "interrupted before anything was changed")
        text = f"{started} before it changed anything. Its temporary files were removed."
        if journal.saved:
            text += f" What it had saved is kept in backup {' and '.join(journal.saved)}."
        return text
    backup = vault.load(journal.id)
    pending = [item for item in journal.items if item.outcome == "planned"]
    complete = journal.state == journals.VERIFYING and _in_place(journal, journal.paths)
    if complete and (journal.kind != "fix" or not any(verify(pending))):
        for item in pending:
            item.outcome = "verified"
        journal.finish(journals.DONE, "interrupted before it was verified; verified later")
        return f"{started} after all its changes. They are verified now, so it is finished."
    _refuse_holders(journal)
    used = used_after_switch(journal)
    if used and _stands(journal, used) and not (journal.kind == "fix" and any(verify(pending))):
        for item in pending:
            item.outcome = "verified"
        names = ", ".join(dict.fromkeys(_database_of(journal, switch) for switch in used))
        journal.finish(
            journals.DONE, f"interrupted; finished later, because {names} has been used since"
        )
        return (
            f"{started} after all its changes. {names} has been used since, so the run is not "
            f"rolled back but finished, and the new data is kept."
        )
    left, written, logs = roll_back(journal, backup, journal.paths)
    revert_interrupted(journal)
    for item in journal.items:
        item.outcome, item.reason = "rolled-back", "the run was interrupted"
    mark_left_items(journal, left, backup)
    journal.finish(
        journals.PARTLY if left else journals.ROLLED_BACK, "interrupted and rolled back later"
    )
    if left:
        return f"{started} before it was finished. {_only_in_part(journal, backup, left, logs)}"
    if written:
        return (
            f"{started} before it was finished and is now rolled back: everything is as it was "
            f"before, and what was written to {', '.join(written)} since is kept."
        )
    return (
        f"{started} before it was finished and is now rolled back: everything is as it was before."
    )


def _only_in_part(
    journal: Journal, backup: Backup, left: Sequence[str], logs: Sequence[str]
) -> str:
    """Explain which changes of a run stay and why: files that were changed since, and logs."""
    moved = [record for record in journal.paths if record.path in logs]
    databases = {database_of(journal.path_of(record)) for record in moved}
    explained = {
        file.path for record in moved for file in undo_guards.files_created_with(journal, record)
    }
    others = [
        name
        for name in left
        if name not in explained and database_of(journal.current_home.path / name) not in databases
    ]
    text = "It is rolled back only in part:"
    if others:
        text += (
            f" {', '.join(others)} was changed after the run and was not restored. Its previous "
            f"version is in backup {backup.id} ({backup.folder})."
        )
    if logs:
        text += f" {undo_guards.describe_kept_logs(journal, logs, backup)}"
    kept = paths.rolled_back_folder(backup)
    return text + (f" The new content of other files is kept in {kept}." if kept.exists() else "")


def _database_of(journal: Journal, switch: Switch) -> str:
    """The name of the switched path, or of its database if it is a lone sidecar."""
    return (
        journal.current_home.name_of(database_of(switch.path))
        if is_lone_sidecar(switch)
        else switch.main.path
    )


def _stands(journal: Journal, used: Sequence[Switch]) -> bool:
    """Whether the run had made all its changes; the paths in `used` may have changed since."""
    if any(not act.begun for act in journal.acts):
        return False
    changed = [record for switch in used for record in switch.records]
    indexes = [database_of(one.path).with_name(f"{database_of(one.path).name}-shm") for one in used]
    return _in_place(
        journal,
        [
            record
            for record in journal.paths
            if record not in changed and journal.path_of(record) not in indexes
        ],
    )


def _refuse_holders(journal: Journal) -> None:
    """Refuse to replace or remove a database that a process has open.

    A database that was used since the run is left in place, so it may be open.
    """
    targets: list[Path] = []
    found = list(switches(journal, journal.paths))
    used = [one for one in found if one.is_used() or is_used_lone_sidecar(journal, one)]
    for switch in found:
        members = [switch.path, *(beside.path for beside in switch.sidecars)]
        if is_database(switch.path):
            targets += [] if switch in used else [database_of(switch.path), *members]
            targets += [link.path for link in switch.chain]
            targets += [paths.kept_path(path, journal.id) for path in members]
    for path, pids in gateway_processes.processes_using(targets).items():
        raise Trouble(
            "Run {id} was interrupted and must be rolled back, but {path} "
            "is in use by process {pids}. Nothing was changed. Stop that process, then "
            "try again.",
            id=journal.id,
            path=path.name,
            pids=pids[0],
        )


def _in_place(journal: Journal, records: Sequence[PathRecord]) -> bool:
    """Whether every path is as the run left it."""
    return all(
        paths.matches(
            paths.read_state(journal.path_of(record), content=record.after.sha256 is not None),
            record.after,
        )
        for record in records
    )


def interrupted_run_messages(home: Home, options: str) -> list[str]:
    """Messages about interrupted runs, for commands that change nothing."""
    if home_lock.holder(home) is not None:  # a run is still active
        return []
    try:
        cut_off = [journal for journal in Journals(home).all() if not journal.final]
    except (Trouble, CouldNotLook, OSError):
        return []
    return [
        f"Run {journal.id} ({journal.kind}) waits for the gateway to stop. "
        f"To finish it: hermes-doctor fix --apply{options}"
        if journal.gateway == ASKED
        else f"Run {journal.id} ({journal.kind}) was interrupted while {journal.state}. "
        f"To finish it: hermes-doctor fix --apply{options}"
        for journal in cut_off
    ]
