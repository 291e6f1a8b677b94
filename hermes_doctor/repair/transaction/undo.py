"""Plan an undo of a finished run, or a restore from any backup; both are ordinary runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_doctor.backup.records import journal as journals
from hermes_doctor.backup.records.journal import ItemRecord, Journal, Journals
from hermes_doctor.backup.vault import restore_files
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.selection import is_process_file
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home, database_of, is_database
from hermes_doctor.core.message import text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import privileges, root_parent
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.step import Change, Step
from hermes_doctor.repair.steps import machine
from hermes_doctor.repair.transaction import paths, undo_guards
from hermes_doctor.repair.transaction.gateway import LEFT
from hermes_doctor.repair.transaction.joined_runs import JoinedRuns, SavedPath
from hermes_doctor.repair.transaction.targets import Item, Verify
from hermes_doctor.sqlite.files import sidecars


@dataclass(frozen=True)
class Restore(Step):
    """Step that restores one path from a backup."""

    path: Path
    backup: Backup
    entry: BackupEntry

    def sentence(self) -> str:
        if self.entry.kind == "absent":
            return text("remove {file}, which did not exist then", file=self.entry.path)
        if self.entry.kind == "mode":
            return self._mode_and_owner()
        return text("restore {file} from backup {id}", file=self.entry.path, id=self.backup.id)

    def _mode_and_owner(self) -> str:
        now, entry = snapshot(self.path), self.entry
        mode = text("chmod {mode:04o} {file}", mode=entry.mode, file=entry.path)
        if now.kind == "absent" or (now.uid, now.gid) == (entry.uid, entry.gid):
            return mode
        if _owner_stays(self.path, entry):
            return mode
        if now.mode & 0o777 == entry.mode:
            return text("chown {uid}:{gid} {file}", uid=entry.uid, gid=entry.gid, file=entry.path)
        return text(
            "chown {uid}:{gid} {file}, chmod {mode:04o} {file}",
            uid=entry.uid,
            gid=entry.gid,
            mode=entry.mode,
            file=entry.path,
        )

    def changes(self) -> Sequence[Change]:
        now = snapshot(self.path)
        entry = self.entry
        if entry.kind == "absent":
            return [] if now.kind == "absent" else [Change(self.path, now, absent=True)]
        if entry.kind == "mode":
            if now.kind == "absent":
                return []
            owner = (entry.uid, entry.gid)
            same = owner == (now.uid, now.gid) or _owner_stays(self.path, entry)
            return [Change(self.path, now, mode=entry.mode, owner=None if same else owner)]
        return [
            Change(
                self.path,
                now,
                make=lambda new: restore_files.rebuild(self.backup, entry, new),
                restored=True,
                room=entry.size if entry.kind == "file" else 0,
            )
        ]


@dataclass(frozen=True)
class SetSidecarAside(Step):
    """Step that removes the sidecar of a replaced database, so that SQLite does not apply it."""

    path: Path

    def sentence(self) -> str:
        return text("move {file} aside: it belongs to the replaced file", file=self.path.name)

    def changes(self) -> Sequence[Change]:
        now = snapshot(self.path)
        return [] if now.kind == "absent" else [Change(self.path, now, absent=True)]


def items_for(home: Home, backup: Backup, entries: Sequence[BackupEntry], why: str) -> list[Item]:
    """Make the items that restore these entries of a backup."""
    undo_guards.refuse_lone_logs(home, backup, entries)
    return _items(home, [SavedPath(backup, entry) for entry in entries], why)


def _items(
    home: Home,
    saved: Sequence[SavedPath],
    why: str,
    known: undo_guards.KnownDatabases | None = None,
) -> list[Item]:
    """Make one item for each path; an item for a database also removes its current sidecars.

    A log without its database is restored only in an undo: beside a database that still has its
    `known` snapshot, or beside any database that `known` does not list.
    """
    entries = [entry for _, entry in saved]
    lone = {
        database_of(home.path / entry.path)
        for entry in undo_guards.logs_without_database(home, entries)
    }
    named = {entry.path for entry in entries}
    items = []
    ordered = sorted(saved, key=lambda one: one.entry.path.endswith(("-wal", "-shm", "-journal")))
    for backup, entry in ordered:
        path = home.path / entry.path
        steps: list[Step] = []
        database = database_of(path)
        saves = paths.is_log(path) and database in lone and snapshot(database).kind == "file"
        if is_database(path) and entry.kind in ("file", "absent"):
            steps += [
                SetSidecarAside(beside)
                for beside in sidecars(path)
                if home.name_of(beside) not in named and snapshot(beside).kind != "absent"
            ]
        if saves:
            logs = [sidecar for sidecar in sidecars(database) if paths.is_log(sidecar)]
            others = tuple(log for log in logs if home.name_of(log) not in named)
            steps.append(undo_guards.SaveDatabase(database, (known or {}).get(database), others))
            lone.remove(database)
        steps.append(Restore(path, backup, entry))
        record = ItemRecord(
            fix=why, code="", subject=entry.path, check="", steps=[s.sentence() for s in steps]
        )
        items.append(Item(record, steps))
    return items


def restore_verifier(home: Home, saved: Iterable[BackupEntry]) -> Verify:
    """Make a function that verifies restored paths byte for byte against what was saved."""
    entries = {entry.path: entry for entry in saved}

    def verify(records: Sequence[ItemRecord]) -> Sequence[str | None]:
        said: list[str | None] = []
        for record in records:
            entry = entries.get(record.subject)
            if entry is None:  # a machine action, which raises by itself if it cannot be reverted
                said.append(None)
                continue
            content = entry.kind != "mode"
            now = paths.read_state(home.path / record.subject, content=content, like=entry.sha256)
            wanted = paths.state_of(entry)
            stays = _owner_stays(home.path / record.subject, entry)
            if entry.kind == "mode" and stays and (now.uid, now.gid) != (entry.uid, entry.gid):
                said.append(f"its owner is still uid {now.uid}: {stays}")
                continue
            if stays:
                wanted = replace(wanted, uid=now.uid, gid=now.gid)
            right = paths.matches(now, wanted)
            said.append(None if right else "it differs from the backup")
        return said

    return verify


def _owner_stays(path: Path, entry: BackupEntry) -> str | None:
    """Why the owner of a file cannot be restored; None if it can.

    The home's owner may have forged the manifest. So root gives a file to another user only if an
    attribute on the file proves that this user owned it.
    """
    if entry.kind not in ("mode", "symlink"):
        return None
    if root_parent.operator() != 0:
        groups = {os.getegid(), *os.getgroups()}
        mine = entry.uid == os.geteuid() and entry.gid in groups
        return None if mine else f"only root can restore its owner, uid {entry.uid}"
    user = restore_files.works_for(path)
    if user is None or entry.uid == user:
        return None
    if entry.kind == "mode" and privileges.had_owner(path, entry.uid, entry.gid):
        return None
    return f"could not prove that uid {entry.uid} owned it; restore the owner with chown"


def last_run(all_journals: Journals) -> Journal:
    """The newest run that changed something and was not undone yet."""
    known = {journal.id: journal for journal in all_journals.all()}
    for journal in reversed(known.values()):
        if journal.in_place and _in_force(journal, known):
            return journal
    raise Trouble("No run is left to undo in {home}.", home=all_journals.home.path)


def rest_of_command(all_journals: Journals, journal: Journal | None) -> Journal | None:
    """The newest run that is still in place of the command that made a run; None if none is."""
    runs = all_journals.of_command(journal) if journal else []
    return next((run for run in reversed(runs) if run.in_place), None)


def _in_force(journal: Journal, known: Mapping[str, Journal]) -> bool:
    """Whether a run's changes are in effect: those of a fix are, of its undo not, and so on."""
    done = True
    for _ in known:
        if journal.kind != "undo":
            break
        done = not done
        before = known.get(journal.of or "")
        if before is None:
            break
        journal = before
    return done


@dataclass(frozen=True)
class UndoPlan:
    """What undoes all runs of one command in a single run."""

    home: Home
    runs: Sequence[Journal]
    """The runs that it undoes, oldest first."""
    saved: Sequence[SavedPath]
    items: Sequence[Item]
    hermes: str | None
    """The release of Hermes at that time."""
    losses: Sequence[str]
    """How many rows it removes that are newer, in sentences."""
    was_running: bool | None
    """Whether a gateway must run afterwards; None if it stays as it is."""

    @property
    def verify(self) -> Verify:
        """Verifies that every path is as it was before the first run."""
        return restore_verifier(self.home, [entry for _, entry in self.saved])


def undo_plan(home: Home, journal: Journal, *, force: bool) -> UndoPlan:
    """Plan the undo of the command that made a run, with all its other runs.

    Everything is compared before anything is changed. Raise Trouble if a person changed paths
    since, unless forced.
    """
    _refuse_undone(journal)
    every = Journals(home).of_command(journal)
    runs = [one for one in every if one.in_place]
    joined = JoinedRuns(home, runs)
    backups = {}
    for run in runs:
        paths.refuse_foreign_paths(home, run.outside_folders, f"The receipt of run {run.id}")
        backups[run.id] = Vault(home, run.vault_folder).load(run.id)
    records = joined.journal().paths
    databases = {database_of(home.path / record.path) for record in records}
    known = {database: snapshot(database) for database in databases if is_database(database)}
    works = undo_guards.gateway_runs(home)
    changed = undo_guards.changed_paths(home, joined, records)
    if not force:
        gateway_wrote = works or undo_guards.gateway_started(every)
        undo_guards.refuse_edits(home, joined, records, changed, gateway_wrote=gateway_wrote)
    for run in runs:
        if wrong := Vault(home, run.vault_folder).verify(backups[run.id]):
            raise Trouble(
                "Backup {id} is damaged: {reason}. Nothing was changed.", id=run.id, reason=wrong[0]
            )
    must_run = was_running(every)
    stays = works and must_run is not False
    saved = [
        saved_path
        for saved_path in joined.saved_paths(backups)
        if not (
            stays and is_process_file(saved_path.entry.path)
        )  # they are about the running process
    ]
    items = _items(home, saved, "undo", None if force else known)
    for record in joined.actions():
        act = machine.action_from_record(home, record)
        if act is not None:
            reverting = machine.RevertAction(act)
            said = reverting.sentence()
            acted = ItemRecord(fix="undo", code="", subject=said, check="", steps=[said])
            items.append(Item(acted, [reverting]))
    losses = list(undo_guards.lost_rows(home, joined, saved, changed))
    hermes = backups[joined.newest.id].hermes
    return UndoPlan(home, runs, saved, items, hermes, losses, must_run)


def was_running(runs: Sequence[Journal]) -> bool | None:
    """Whether a gateway ran before the runs of a command, if they changed that; else None.

    A gateway that they stopped only for a moment and started again may have been stopped by a
    person since, so it is not started.
    """
    controlled = [run for run in runs if run.was_running is not None]
    if not controlled or not controlled[0].was_running:
        return False if controlled else None
    return True if controlled[-1].gateway == LEFT else None


def _refuse_undone(journal: Journal) -> None:
    if journal.state == journals.UNDONE:
        raise Trouble(
            "Run {id} was already undone by run {undo}.", id=journal.id, undo=journal.undone_by
        )
    if not journal.in_place:
        raise Trouble(
            "Run {id} changed nothing ({state}), so there is nothing to undo.",
            id=journal.id,
            state=journal.state,
        )
