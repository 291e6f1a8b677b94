"""Join the runs of one command, so that `undo` can undo them together as if they were one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal, MachineActionRecord, PathRecord, State
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.core.home import Home, database_of
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble
from hermes_doctor.repair.transaction import paths


class SavedPath(NamedTuple):
    """A backup, and the entry of it that a path is restored from."""

    backup: Backup
    entry: BackupEntry


@dataclass(frozen=True)
class JoinedRuns:
    """The runs of one command that are in effect, oldest first; often it is only one."""

    home: Home
    runs: Sequence[Journal]

    @property
    def newest(self) -> Journal:
        """The run that is undone first."""
        return self.runs[-1]

    def journal(self) -> Journal:
        """One journal for all runs: each path as it was before the first and after the last."""
        found: dict[str, PathRecord] = {}
        before = 0
        for run in self.runs:
            for record in _kept(run):
                shifted = replace(record, items=[before + number for number in record.items])
                first = found.get(record.path)
                found[record.path] = _joined(first, shifted) if first else shifted
            before += len(run.items)
        return replace(self.newest, started_at=self.runs[0].started_at, paths=list(found.values()))

    def journal_about(self, path: Path) -> Journal:
        """The same journal, as old as the first run that changed this path or its database."""
        database = database_of(path)
        for run in self.runs:
            if any(database_of(self.home.path / record.path) == database for record in _kept(run)):
                return replace(self.journal(), started_at=run.started_at)
        return self.journal()

    def first_run_with(self, path: str) -> Journal:
        return next(run for run in self.runs if any(record.path == path for record in _kept(run)))

    def changed_between(self) -> list[str]:
        """The paths that another program changed after one run and before the next."""
        found: dict[str, PathRecord] = {}
        changed = []
        for run in self.runs:
            for record in _kept(run):
                first = found.get(record.path)
                if first is not None and not _continues(first.after, record.before):
                    changed.append(record.path)
                found[record.path] = _joined(first, record) if first else record
        return list(dict.fromkeys(changed))

    def saved_paths(self, backups: Mapping[str, Backup]) -> list[SavedPath]:
        """Where the content of each path before the first run is saved; `backups` by run id."""
        found: dict[str, SavedPath] = {}
        for run in self.runs:
            backup = backups[run.id]
            for record in _kept(run):
                entry = backup.entry(record.path)
                if entry is None:
                    raise Trouble(
                        "Backup {id} lacks {file}, so the run cannot be undone. Nothing was "
                        "changed.",
                        id=backup.id,
                        file=record.path,
                    )
                first = found.get(record.path)
                if first is None:
                    found[record.path] = SavedPath(backup, entry)
                elif first.entry.kind == "mode" and entry.kind == "file":
                    was = first.entry  # the content is saved later, after this run changed the mode
                    entry = entry._replace(mode=was.mode, uid=was.uid, gid=was.gid)
                    found[record.path] = SavedPath(backup, entry)
        return list(found.values())

    def actions(self) -> Iterator[MachineActionRecord]:
        """The machine actions to revert, the newest run's first, without duplicates."""
        seen: list[tuple[str, dict[str, str]]] = []
        for run in reversed(self.runs):
            for act in run.acts:
                if act.begun and not act.reverted and (act.kind, act.words) not in seen:
                    seen.append((act.kind, act.words))
                    yield act


def _kept(run: Journal) -> list[PathRecord]:
    """The changes of a run that it did not roll back itself."""
    return [record for record in run.paths if not record.reverted]


def _joined(first: PathRecord, later: PathRecord) -> PathRecord:
    """One record for two changes of a path; one that changed only the mode knows no content."""
    before, after = first.before, later.after
    if paths.changes_only_mode(first):
        before = replace(before, sha256=later.before.sha256)
    if after.kind == "file" and after.sha256 is None:
        after = replace(after, sha256=first.after.sha256)
    items = sorted({*first.items, *later.items})
    return replace(later, before=before, after=after, items=items, database=first.database)


def _continues(after: State, before: State) -> bool:
    """Whether a run found a path as the run before it had left it."""
    if after.sha256 is None or before.sha256 is None:
        after, before = replace(after, sha256=None), replace(before, sha256=None)
    return after == before
