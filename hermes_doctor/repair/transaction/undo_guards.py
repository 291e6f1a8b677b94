"""Guard an undo and a restore: what would they damage, and what would be lost?

SQLite would apply a write-ahead log or journal to any database beside it and damage a different
one. So a log is restored only beside the database that it was taken from, or with `--force`, and
the database in place is saved first.

The edit of a person is a reason to refuse. What a gateway writes while it works is not: its rows
are counted, and they stay in the backup that an undo makes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal, Journals, PathRecord
from hermes_doctor.backup.vault.backup_rows import LastRows, removed
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.selection import is_gateway_file
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home, database_of, is_database
from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.file_swap import copy_metadata
from hermes_doctor.core.system.files import Snapshot, snapshot
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Change, Step
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.gateway import STARTED
from hermes_doctor.repair.transaction.joined_runs import JoinedRuns, SavedPath
from hermes_doctor.repair.transaction.stage import digest_without_marks

KnownDatabases = Mapping[Path, Snapshot]
"""The databases that the logs were taken from, with their snapshots when that was checked."""


@dataclass(frozen=True)
class SaveDatabase(Step):
    """Step that saves a database in the vault before a log is put beside it.

    The database is replaced by a copy of itself. So the receipt lists all its files, and undo
    restores them together.
    """

    path: Path
    known: Snapshot | None
    """The snapshot that the database must still have; None accepts any."""
    sidecars: tuple[Path, ...] = ()
    """Logs and journals that are there now, and stay."""

    def sentence(self) -> str:
        return text(
            "back up {file}: SQLite will merge the restored write-ahead log into it",
            file=self.path.name,
        )

    def changes(self) -> Sequence[Change]:
        now = snapshot(self.path)
        if self.known is not None and now != self.known:
            raise Trouble(
                "Another program wrote to {path} just now. Nothing was changed. Try again.",
                path=self.path.name,
            )
        taken = [(self.path, now), *((sidecar, snapshot(sidecar)) for sidecar in self.sidecars)]
        return [
            Change(path, was, make=partial(_copy, path), restored=True, room=was.size)
            for path, was in taken
            if was.kind == "file"
        ]


def _copy(path: Path, target: Path) -> None:
    with disk.new_file(target) as fd:
        disk.copy(path, fd)
    copy_metadata(path, target)


def logs_without_database(home: Home, entries: Sequence[BackupEntry]) -> list[BackupEntry]:
    """The entries that are logs beside a database of the home that is not among the entries."""
    named = {home.path / entry.path for entry in entries if entry.kind in ("file", "absent")}
    return [
        entry
        for entry in entries
        if entry.kind == "file"
        and entry.size
        and paths.is_log(entry.path)
        and (database := database_of(home.path / entry.path)) not in named
        and snapshot(database).kind != "absent"
    ]


def refuse_lone_logs(home: Home, backup: Backup, entries: Sequence[BackupEntry]) -> None:
    """Refuse to restore a log without the database that it was taken from."""
    backup_entries = logs_without_database(home, entries)
    if not backup_entries:
        return
    log = backup_entries[0].path
    database = home.name_of(database_of(home.path / log))
    try:
        run = Journals(home).load(backup.id)
        [record] = [path for path in run.paths if path.path == log]
        aside = _aside(run, record)
    except (Trouble, ValueError):
        aside = ""
    raise Trouble(
        sentences(
            text(
                "Backup {id} contains {log} without its database, and it could damage the current "
                "{database}. Nothing was changed.",
                id=backup.id,
                log=log,
                database=database,
            ),
            _ways(aside, backup),
            text(
                "If {database} has not changed since, restore the write-ahead log with: "
                "hermes-doctor undo {id}",
                database=database,
                id=backup.id,
            ),
        )
    )


def reason_to_refuse_undo(home: Home, joined: JoinedRuns, records: Sequence[PathRecord]) -> str:
    """Why a log that a run moved alone cannot be put back: its database changed since; or ""."""
    mine = {home.path / record.path for record in records}
    for record in records:
        path = home.path / record.path
        if not paths.is_log(path) or database_of(path) in mine or paths.changes_only_mode(record):
            continue
        if paths.was_used_since(joined.journal_about(path), path):
            database = home.name_of(database_of(path))
            journal = joined.first_run_with(record.path)
            backup = journal.backup
            kept = _ways(_aside(joined.journal(), record), backup)
            return sentences(
                text(
                    "{database} has changed since run {id} moved {log} away, so restoring that "
                    "write-ahead log could damage it. Nothing was changed.",
                    database=database,
                    id=journal.id,
                    log=record.path,
                ),
                kept,
                text(
                    "To restore it anyway: add --force. {database} is backed up first.",
                    database=database,
                ),
            )
    return ""


def describe_kept_logs(journal: Journal, names: Sequence[str], backup: Backup) -> str:
    """Explain why these logs cannot be put back, and where they are kept."""
    messages = []
    for record in journal.paths:
        if record.path not in names:
            continue
        database = journal.current_home.name_of(database_of(journal.path_of(record)))
        aside = _aside(journal, record)
        messages.append(
            text(
                "{database} has changed since, so its old write-ahead log {log} cannot be "
                "restored.",
                database=database,
                log=record.path,
            )
        )
        messages.append(
            text(
                "It is kept as {file} and in backup {id} ({folder}).",
                file=aside,
                id=backup.id,
                folder=backup.folder,
            )
            if aside
            else text("It is kept in backup {id} ({folder}).", id=backup.id, folder=backup.folder)
        )
    return sentences(*messages)


def _ways(aside: str, backup: Backup | Path) -> str:
    """A sentence that says where the rows of a log are kept."""
    folder = backup if isinstance(backup, Path) else backup.folder
    if aside:
        return text(
            "The write-ahead log is kept as {file}; hermes-doctor check shows how to add the rows "
            "that are only in it.",
            file=aside,
        )
    return text("The write-ahead log is in {folder}.", folder=folder / "files")


def _aside(journal: Journal, record: PathRecord) -> str:
    """The file in which a run kept a log that it moved away; empty if there is none."""
    for path_record in files_created_with(journal, record):
        if snapshot(journal.path_of(path_record)).kind == "file":
            return path_record.path
    return ""


def files_created_with(journal: Journal, record: PathRecord) -> list[PathRecord]:
    """The files that the same items of a run created, such as the new name of a log."""
    return [
        path
        for path in journal.paths
        if path.before.kind == "absent" and set(path.items) & set(record.items)
    ]


def gateway_runs(home: Home) -> bool:
    try:
        return bool(Probes(home).gateway.running())
    except CouldNotLook:
        return False


def refuse_edits(
    home: Home,
    joined: JoinedRuns,
    records: Sequence[PathRecord],
    changed: Sequence[str],
    *,
    gateway_wrote: bool,
) -> None:
    """Raise Trouble if an undo would lose what a person wrote after the runs or between them."""
    if reason := reason_to_refuse_undo(home, joined, records):
        raise Trouble(reason)
    edited = [
        name
        for name in changed
        if not (gateway_wrote and (is_database(name) or is_gateway_file(name)))
    ]
    if gateway_wrote and config_yaml.NAME in edited and _has_only_marks(home, records):
        edited.remove(config_yaml.NAME)
    if edited:
        raise Trouble(
            "{changed} changed since run {id}, and an undo would lose that "
            "change. Nothing was changed. To undo anyway: add --force. The current "
            "version is backed up first.",
            changed=", ".join(edited),
            id=joined.first_run_with(edited[0]).id,
        )


def _has_only_marks(home: Home, records: Sequence[PathRecord]) -> bool:
    """Whether config.yaml still has the settings that the runs left."""
    left = next((record.settings for record in records if record.path == config_yaml.NAME), None)
    return left is not None and digest_without_marks(home.path / config_yaml.NAME) == left


def gateway_started(runs: Sequence[Journal]) -> bool:
    """Whether one of these runs started a gateway, which has worked since."""
    return any(run.gateway == STARTED for run in runs)


def lost_rows(
    home: Home, joined: JoinedRuns, saved: Sequence[SavedPath], changed: Sequence[str]
) -> Iterator[str]:
    """Say how many rows an undo removes from each of the changed databases."""
    databases = {database_of(home.path / name) for name in changed if is_database(name)}
    since = paths.start_time_ns(joined.runs[0]) / 1e9
    rows = LastRows(Vault(home), ())
    for backup, entry in saved:
        mine = home.path / entry.path in databases
        if mine and (said := removed(rows, backup, entry, since)):
            yield said


def changed_paths(home: Home, joined: JoinedRuns, records: Sequence[PathRecord]) -> list[str]:
    changed = joined.changed_between()
    changed += [
        record.path
        for record in records
        if record.path not in changed
        and not paths.matches(
            paths.read_state(home.path / record.path, content=record.after.sha256 is not None),
            record.after,
        )
    ]
    changed += [
        record.path
        for record in records
        if record.path not in changed
        and not paths.changes_only_mode(record)  # its content is not changed
        and paths.was_used_since(
            joined.journal_about(home.path / record.path), home.path / record.path
        )
    ]
    return changed
