"""Plan an undo of a finished run, or a restore from any backup; both are ordinary runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_doctor.backup import entry_content
from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import Backup
from hermes_doctor.backup.vault import Vault
from hermes_doctor.home import Home, database_of, is_database
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.records import journal as journals
from hermes_doctor.records.journal import ItemRecord, Journal, Journals
from hermes_doctor.repair import logs_without_database, paths
from hermes_doctor.repair.targets import Item, Verify
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.steps import machine
from hermes_doctor.steps.base import Change, MachineAction, Step
from hermes_doctor.system import privileges
from hermes_doctor.system.files import snapshot


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
                make=lambda new: entry_content.rebuild(self.backup, entry, new),
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


def items_for(
    home: Home,
    backup: Backup,
    entries: Sequence[BackupEntry],
    why: str,
    known: logs_without_database.KnownDatabases | None = None,
) -> list[Item]:
    """Make one item for each entry; an item for a database also removes its current sidecars.

    A log without its database is restored only in an undo: beside a database that still has its
    `known` snapshot, or beside any database that `known` does not list.
    """
    if why != "undo":
        logs_without_database.refuse_lone_logs(home, backup, entries)
    lone = {
        database_of(home.path / entry.path)
        for entry in logs_without_database.logs_without_database(home, entries)
    }
    named = {entry.path for entry in entries}
    items = []
    ordered = sorted(entries, key=lambda entry: entry.path.endswith(("-wal", "-shm", "-journal")))
    for entry in ordered:
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
            logs = [one for one in sidecars(database) if paths.is_log(one)]
            others = tuple(one for one in logs if home.name_of(one) not in named)
            steps.append(
                logs_without_database.SaveDatabase(database, (known or {}).get(database), others)
            )
            lone.remove(database)
        steps.append(Restore(path, backup, entry))
        record = ItemRecord(
            fix=why, code="", subject=entry.path, check="", steps=[s.sentence() for s in steps]
        )
        items.append(Item(record, steps))
    return items


def restore_verifier(home: Home, backup: Backup) -> Verify:
    """Make a function that verifies restored paths byte for byte against the backup."""

    def verify(records: Sequence[ItemRecord]) -> Sequence[str | None]:
        said: list[str | None] = []
        for record in records:
            entry = backup.entry(record.subject)
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
    if os.geteuid() != 0:
        groups = {os.getegid(), *os.getgroups()}
        mine = entry.uid == os.geteuid() and entry.gid in groups
        return None if mine else f"only root can restore its owner, uid {entry.uid}"
    user = privileges.of(path)
    if user is None or entry.uid == user.uid:
        return None
    if entry.kind == "mode" and privileges.had_owner(path, entry.uid, entry.gid):
        return None
    return f"could not prove that uid {entry.uid} owned it; restore the owner with chown"


def last_run(all_journals: Journals) -> Journal:
    """The newest run that changed something and was not undone yet."""
    known = {journal.id: journal for journal in all_journals.all()}
    for journal in reversed(known.values()):
        ended = journal.state in (journals.DONE, journals.PARTLY)
        if ended and journal.undoable and _in_force(journal, known):
            return journal
    raise Trouble(
        text(
            "No run is left to undo in {home}.",
            home=all_journals.home.path,
        )
    )


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


def undo_plan(home: Home, journal: Journal, *, force: bool) -> tuple[Backup, list[Item]]:
    """The backup and items that undo a run; raise Trouble if paths changed since, unless forced."""
    if journal.state == journals.UNDONE:
        raise Trouble(
            text(
                "Run {id} was already undone by run {undo}.",
                id=journal.id,
                undo=journal.undone_by,
            )
        )
    if journal.state not in (journals.DONE, journals.PARTLY) or not journal.undoable:
        raise Trouble(
            text(
                "Run {id} changed nothing ({state}), so there is nothing to undo.",
                id=journal.id,
                state=journal.state,
            )
        )
    paths.refuse_foreign_paths(home, journal.outside_folders, f"The receipt of run {journal.id}")
    vault = Vault(home, journal.root(home))
    backup = vault.load(journal.id)
    records = [record for record in journal.paths if not record.reverted]
    databases = {database_of(home.path / record.path) for record in records}
    known = {one: snapshot(one) for one in databases if is_database(one)}
    if not force and (
        reason := logs_without_database.reason_to_refuse_undo(home, journal, records)
    ):
        raise Trouble(reason)
    changed = [
        record.path
        for record in records
        if not paths.matches(
            paths.read_state(home.path / record.path, content=record.after.sha256 is not None),
            record.after,
        )
    ]
    changed += [
        record.path
        for record in records
        if record.path not in changed
        and not paths.changes_only_mode(record)  # its content is not changed
        and paths.was_used_since(home, journal, home.path / record.path)
    ]
    if changed and not force:
        raise Trouble(
            text(
                "{changed} changed since run {id}, and an undo would lose that "
                "change. Nothing was changed. To undo anyway: add --force. The current "
                "version is backed up first.",
                changed=", ".join(changed),
                id=journal.id,
            )
        )
    wrong = vault.verify(backup)
    if wrong:
        raise Trouble(
            text(
                "Backup {id} is damaged: {reason}. Nothing was changed.",
                id=backup.id,
                reason=wrong[0],
            )
        )
    entries = [entry for record in records if (entry := backup.entry(record.path))]
    items = items_for(home, backup, entries, "undo", None if force else known)
    for record in journal.acts:
        act = machine.action_from_record(home, record)
        if act is not None and record.begun and not record.reverted:
            back = machine.RevertAction(act)
            items.append(_acted(back))
    return backup, items


def _acted(act: MachineAction) -> Item:
    """Make the item that reverts a machine action."""
    said = act.sentence()
    return Item(ItemRecord(fix="undo", code="", subject=said, check="", steps=[said]), [act])
