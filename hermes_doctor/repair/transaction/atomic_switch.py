"""Replace a file or database atomically: readers see the old or the new content, never a mix.

A file is switched by one rename. A database is more than one file: SQLite applies a write-ahead
log to it, or rolls a journal back into it. Between two renames a reader could see the old database
without its log, or the new one with the old log. So the old database is first replaced by a joined
copy that already contains its log (`sqlite.joined_copy`). Then removing the log has no effect, the
switch itself is one rename, and a new log is placed the same way:

    old + log    joined old + log    joined old    joined new    joined new + log    new + log

Rolling back takes the same steps in reverse. Each version has its own file name beside the path
while it is not in place. So the names show how far a run got.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal, PathRecord, State
from hermes_doctor.backup.vault import restore_files
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.core.home import database_of, is_database
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.digests import PREFIX
from hermes_doctor.core.system.file_swap import (
    changed_error,
    copy_metadata,
    move_away,
    move_to_free_name,
    swap,
)
from hermes_doctor.core.system.files import ABSENT, Snapshot, snapshot
from hermes_doctor.repair.transaction import paths
from hermes_doctor.sqlite import joined_copy
from hermes_doctor.sqlite.exclusive import exclusive_access, in_use

BACK, AS_BEFORE, STAYS = "back", "as-before", "stays"
"""The result of reversing a switch: the old files are back; the switch had not happened, and the
database was used since; or the switch had happened, and the database was used since."""
_ORDER = ("-wal", "-shm", "-journal")
"""Sidecars are placed in this order and removed in the reverse order: SQLite rolls the journal
back before it reads the log, so a journal is never there without its log."""


class SwitchVersion(NamedTuple):
    """One version of the content, and the file name it has while it is not in place."""

    path: Path
    state: State


class Sidecar(NamedTuple):
    """A file beside a database that is switched together with it."""

    path: Path
    record: PathRecord


class Switch:
    """Switches one path from old to new content and back, a database with its sidecars."""

    def __init__(self, path: Path, run: str, main: PathRecord, sidecars: Sequence[Sidecar]) -> None:
        self.path = path
        self.run = run
        self.main = main
        self.sidecars = sorted(sidecars, key=lambda one: _ORDER.index(suffix_of(one.path)))
        self.old = [SwitchVersion(paths.kept_path(path, run), main.before)]
        if main.joined_before is not None:
            self.old.append(SwitchVersion(paths.joined_old_path(path, run), main.joined_before))
        self.new = [SwitchVersion(paths.staged_path(path, run), main.after)]
        if main.joined_after is not None:
            self.new.insert(0, SwitchVersion(paths.joined_new_path(path, run), main.joined_after))
        self._seen: dict[tuple[Snapshot, bool], State] = {}

    @property
    def chain(self) -> list[SwitchVersion]:
        """All versions, in the order in which they are in place."""
        return [*self.old, *self.new]

    @property
    def records(self) -> list[PathRecord]:
        """The journal records of the path and its sidecars."""
        return [self.main, *(sidecar.record for sidecar in self.sidecars)]

    def forward(self, expected: Mapping[Path, Snapshot]) -> None:
        """Switch from old to new; raise without changes if a path differs from its snapshot."""
        for path, known in expected.items():
            if snapshot(path) != known:
                raise changed_error(path)
        if is_database(self.path):
            for path in map(self._sidecar, ("-wal", "-journal")):
                if path not in expected and snapshot(path).size:
                    raise changed_error(path)
        if len(self.old) > 1:
            self._step(self.old[0], self.old[1], expected[self.path])
        for sidecar in reversed(self.sidecars):
            if sidecar.record.before.kind != "absent":
                move_away(
                    sidecar.path, paths.kept_path(sidecar.path, self.run), expected[sidecar.path]
                )
        known = expected[self.path] if len(self.old) == 1 else snapshot(self.path)
        self._step(self.old[-1], self.new[0], known)
        for sidecar in self.sidecars:
            if sidecar.record.after.kind != "absent":
                move_to_free_name(paths.staged_path(sidecar.path, self.run), sidecar.path)
        if len(self.new) > 1:
            self._step(self.new[0], self.new[1], snapshot(self.path))

    def _step(self, at: SwitchVersion, to: SwitchVersion, known: Snapshot) -> None:
        """Replace one version by the next one."""
        if to.state.kind == "absent" and at.state.kind == "absent":
            return
        if to.state.kind == "absent":
            move_away(self.path, at.path, known)
        elif at.state.kind == "absent":
            move_to_free_name(to.path, self.path)
        else:
            must_keep = at.path != paths.kept_path(self.path, self.run)
            swap(to.path, self.path, at.path, known, must_keep=must_keep)

    def is_done(self) -> bool:
        """Whether the path has the new content, or had it before another program changed it."""
        self._finish_exchange()
        if self._is_as_before():
            return False
        if self.main.after.kind != "absent":  # until the switch, all new versions are staged
            return not all(self._holds(link.path, link.state) for link in self.new)
        if not os.path.lexists(self.path):
            return True
        original = self.old[0].path
        if not os.path.lexists(original) or is_same_file(original, self.path):
            return False
        return len(self.old) == 1 or self._holds(self.old[1].path, self.old[1].state)

    def _is_as_before(self) -> bool:
        """Whether no trace of the switch is left, as after a rollback that was not recorded."""
        files = [self.path, *(sidecar.path for sidecar in self.sidecars)]
        moved = [
            *(paths.kept_path(file, self.run) for file in files),
            *(switch_version.path for switch_version in self.old),
        ]
        if any(os.path.lexists(one) for one in moved):
            return False
        records = [(self.path, self.main), *self.sidecars]
        return all(
            self._matches(path, record.before)
            for path, record in records
            if not path.name.endswith("-shm")
        )

    def is_used(self, *, locked: bool = False) -> bool:
        """Whether another program changed the path since, or has the database open.

        `locked` means that we hold the locks of the database, so no other program can use it.
        """
        if not any(self._matches(self.path, link.state) for link in self.chain):
            return True
        if not is_database(self.path):
            return False
        if not locked and in_use(self.path):
            return True
        known = {sidecar.path: sidecar.record for sidecar in self.sidecars}
        done = self.is_done()
        for suffix in ("-wal", "-journal"):
            path = self._sidecar(suffix)
            if not snapshot(path).size:
                continue
            record = known.get(path)
            if record is None:
                return True
            if not self._matches(path, record.after if done else record.before):
                return True
        return False

    def _finish_exchange(self) -> None:
        """Rename the displaced file if the run was killed right after exchanging two files."""
        chain = self.chain
        for n, link in enumerate(chain):
            if link.state.kind == "absent" or not os.path.lexists(link.path):
                continue
            if self._holds(link.path, link.state):
                continue
            owners = [
                switch_version
                for switch_version in chain
                if self._holds(link.path, switch_version.state)
            ]
            for other in owners or chain[max(0, n - 1) : n]:
                if not os.path.lexists(other.path):
                    disk.rename(link.path, other.path)
                    break

    def back(self, backup: Backup, *, locked: bool = False) -> str:
        """Reverse the switch unless the path was used since; return BACK, AS_BEFORE or STAYS.

        No program may write between the comparison and the renames, so the database is locked,
        unless it is `locked` already.
        """
        done = self.is_done()
        if not done and not self._is_begun():
            return AS_BEFORE if self.is_used(locked=locked) else BACK
        with contextlib.ExitStack() as locks:
            try:
                if not locked and is_database(self.path):
                    self._lock(locks)
                used = self.is_used(locked=True)
            except Trouble:
                used = True
            if used:
                return STAYS if done or self._lacks_old_log() else AS_BEFORE
            return self._reverse(done, backup)

    def _is_begun(self) -> bool:
        """Whether any file was moved; if none was, none must be touched."""
        moved = [
            paths.kept_path(path, self.run)
            for path in (self.path, *(s.path for s in self.sidecars))
        ]
        at_first = self._position(done=False) is self.old[0]
        return not at_first or any(os.path.lexists(one) for one in moved)

    def _lock(self, locks: contextlib.ExitStack) -> None:
        """Lock the database that is in place, and every version that may replace it."""
        for place in (self.path, *(link.path for link in self.chain)):
            if snapshot(place).kind == "file":
                locks.enter_context(exclusive_access(place))

    def _reverse(self, done: bool, backup: Backup) -> str:
        """Put the old files back, step by step."""
        at = self._position(done)
        if at in self.new:
            if at is not self.new[0] and os.path.lexists(self.new[0].path):
                self._step(at, self.new[0], snapshot(self.path))
                at = self.new[0]
            for sidecar in reversed(self.sidecars):
                staged = paths.staged_path(sidecar.path, self.run)
                placed = sidecar.record.after.kind != "absent" and not os.path.lexists(staged)
                if placed and os.path.lexists(sidecar.path):
                    disk.rename(sidecar.path, staged)
            self._return_to(self.old[-1], at, backup)
            at = self.old[-1]
        if not all(self._put_back(one, backup) for one in self.sidecars):
            return AS_BEFORE
        if at is not self.old[0]:
            self._return_to(self.old[0], at, backup)
        return BACK

    def _position(self, done: bool) -> SwitchVersion:
        """Which version is in place."""
        order = [*self.new, *self.old] if done else [*self.old, *self.new]
        for link in order:
            if self._matches(self.path, link.state):
                return link
        return order[0]

    def _return_to(self, link: SwitchVersion, at: SwitchVersion, backup: Backup) -> None:
        """Put an older version back; take it from the vault if its file is missing."""
        if link.state.kind != "absent" and not os.path.lexists(link.path):
            if link is self.old[0]:
                paths.restore(backup, backup.entry(self.main.path), self.path, self.run)
                return
            self._join_again(link, backup)
        self._step(at, link, snapshot(self.path))

    def _join_again(self, link: SwitchVersion, backup: Backup) -> None:
        """Write the joined copy of the old database again."""
        sources = []
        for suffix in ("", "-wal", "-journal"):
            path = self._sidecar(suffix)
            place = paths.kept_path(path, self.run)
            record = next((one for one in self.records if _path_of(one, self) == path), None)
            if record is not None and not os.path.lexists(place):
                entry = backup.entry(record.path)
                if entry is not None and entry.kind == "file":
                    coming = paths.restoring_path(path, self.run)
                    disk.remove(coming)
                    restore_files.rebuild(backup, entry, coming)
                    disk.rename(coming, place)
            sources.append(place)
        coming = paths.restoring_path(self.path, self.run)
        disk.remove(coming)
        with disk.new_file(coming) as fd:
            joined_copy.write_joined(joined_copy.Parts(*sources), fd)
        copy_metadata(sources[0], coming)
        disk.rename(coming, link.path)

    def _put_back(self, sidecar: Sidecar, backup: Backup) -> bool:
        """Put one sidecar back beside its database; False if a newer one is in its place."""
        if sidecar.record.before.kind == "absent":
            return True
        if self._matches(sidecar.path, sidecar.record.before):
            return True
        if snapshot(sidecar.path).size and suffix_of(sidecar.path) != "-shm":
            return False
        kept = paths.kept_path(sidecar.path, self.run)
        if os.path.lexists(kept):
            disk.rename(kept, sidecar.path)
        elif not os.path.lexists(sidecar.path):
            paths.restore(backup, backup.entry(sidecar.record.path), sidecar.path, self.run)
        return True

    def _lacks_old_log(self) -> bool:
        """Whether an old log was moved away whose content is in no other file.

        That happens beside an empty or missing database, where SQLite deletes the log.
        """
        return len(self.old) == 1 and any(
            sidecar.record.before.sha256 is not None
            and suffix_of(sidecar.path) != "-shm"
            and os.path.lexists(kept := paths.kept_path(sidecar.path, self.run))
            and snapshot(kept).size > 0
            for sidecar in self.sidecars
        )

    def _sidecar(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def _look(self, path: Path, like: str | None) -> State:
        """The state of a path; the digest is cached until the file changes."""
        taken = snapshot(path)
        key = (taken, bool(like and like.startswith(PREFIX)))
        if key not in self._seen:
            self._seen[key] = paths.read_state(path, like=like)
        return self._seen[key]

    def _holds(self, path: Path, state: State) -> bool:
        """Whether a file has this content; mode and owner are not compared."""
        with contextlib.suppress(FileNotFoundError, CouldNotLook):
            now = self._look(path, state.sha256)
            return (now.kind, now.sha256, now.target) == (state.kind, state.sha256, state.target)
        return False

    def _matches(self, path: Path, state: State) -> bool:
        return paths.matches(self._look(path, state.sha256), state)


def _path_of(record: PathRecord, switch: Switch) -> Path | None:
    if record is switch.main:
        return switch.path
    return next((sidecar.path for sidecar in switch.sidecars if sidecar.record is record), None)


def suffix_of(path: Path) -> str:
    """The suffix of a sidecar: `-wal`, `-shm` or `-journal`; empty for the database."""
    return path.name.removeprefix(database_of(path).name)


def is_same_file(path: Path, two: Path) -> bool:
    """Whether both names lead to the same file on the disk."""
    first, second = snapshot(path), snapshot(two)
    return first != ABSENT and (first.dev, first.ino) == (second.dev, second.ino)


def switches(journal: Journal, records: Sequence[PathRecord]) -> Iterator[Switch]:
    """Yield the switches that the records of a run describe, in order.

    A sidecar whose database is not replaced is a switch of its own.
    """
    replaced = {journal.path_of(one): one for one in records if not paths.changes_only_mode(one)}
    beside: dict[Path, list[Sidecar]] = {}
    for path, record in replaced.items():
        if is_database(path) and (database := database_of(path)) != path and database in replaced:
            beside.setdefault(database, []).append(Sidecar(path, record))
    moved = {sidecar.path for group in beside.values() for sidecar in group}
    for path, record in replaced.items():
        if path not in moved:
            yield Switch(path, journal.id, record, beside.get(path, []))
