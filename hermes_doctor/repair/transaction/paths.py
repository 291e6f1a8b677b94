"""The temporary names, states and restore operations of one path that a run changes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal, PathRecord, State
from hermes_doctor.backup.vault import restore_files
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.restore_files import rebuild
from hermes_doctor.core.home import Home, database_of, is_database
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk, privileges
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.step import Change
from hermes_doctor.sqlite.files import sidecars

_LONG, _SHORT = 180, 140
"""Bytes. Most file systems allow names of 255, and temporary names contain the target's name."""


def refuse_foreign_paths(home: Home, named: Iterable[str], what: str) -> None:
    """Raise Trouble if root would change paths that do not belong to the home's owner.

    The home's owner can write receipts and manifests, so the paths they name are not trusted.
    """
    owner = os.stat(home.path).st_uid
    if os.geteuid() != 0 or owner == 0:
        return
    for name in named:
        whose = privileges.of(home.path / name)
        if whose is None or whose.uid != owner:
            raise Trouble(
                "{what} names {name}, which does not belong to the owner of the home. "
                "Nothing was changed.",
                what=what,
                name=name,
            )


def staged_path(path: Path, run: str) -> Path:
    """The name of a path's new content until the commit."""
    return _beside(path, run, "new")


def kept_path(path: Path, run: str) -> Path:
    """The second name that the old file keeps until the end of the run."""
    return _beside(path, run, "old")


def restoring_path(path: Path, run: str) -> Path:
    """The name of old content while it is being restored from the vault."""
    return _beside(path, run, "back")


def joined_old_path(path: Path, run: str) -> Path:
    """The name of the file that joins the old database and its log."""
    return _beside(path, run, "joined-old")


def joined_new_path(path: Path, run: str) -> Path:
    """The name of the file that joins the new database and its log."""
    return _beside(path, run, "joined-new")


def _beside(path: Path, run: str, what: str) -> Path:
    """A hidden name beside a path; a very long name is shortened and made unique by a hash."""
    name = path.name
    if len(os.fsencode(name)) > _LONG:
        import hashlib

        whole = os.fsencode(name)
        name = f"{os.fsdecode(whole[:_SHORT])}~{hashlib.sha256(whole).hexdigest()[:16]}"
    return path.with_name(f".{name}.hermes-doctor-{run}.{what}")


def set_mode_and_owner(change: Change) -> None:
    """Change the mode or owner of a path; raise Trouble if it changed since the plan."""
    path = change.path
    for other, known in ((path, change.expect), *change.beside):
        if snapshot(other) != known:
            raise Trouble("another program changed {other} during the run", other=other.name)
    restore_files.set_mode_and_owner(
        path, change.mode, change.owner, change.expect, from_root=change.from_root
    )
    with contextlib.suppress(OSError):  # unreadable for us; the journal has it anyway
        disk.sync_file(path)


def rolled_back_folder(backup: Backup) -> Path:
    """The folder for new content that a rollback replaced by the old."""
    return backup.folder / "given-back"


def was_used_since(journal: Journal, path: Path) -> bool:
    """Whether a database was used since the run; one changed file of it is enough.

    An old database with a new log, or the reverse, would be inconsistent.
    """
    if not is_database(path):
        return False
    database = database_of(path)
    known = {journal.path_of(record): record for record in journal.paths}
    start = start_time_ns(journal)
    if database not in known:
        beside = [known[sidecar] for sidecar in sidecars(database) if sidecar in known]
        if is_another_database(database, beside):
            return True
    for one in (database, *sidecars(database)):
        record = known.get(one)
        if record is not None:
            now = read_state(one, content=not changes_only_mode(record))
            if not matches(now, record.before) and not is_ours(now, record):
                return True
        elif one != database and one.name.endswith(("-wal", "-journal")):
            taken = snapshot(one)
            if taken.size and taken.ctime_ns >= start:  # else it was there before the run
                return True
    return False


def is_another_database(database: Path, records: Iterable[PathRecord]) -> bool:
    """Whether a log was changed without its database, and the database has other content now.

    A log belongs only to the database that it was taken from: SQLite would apply it to any other.
    Receipts of earlier versions do not record that database, so it counts as another one.
    """
    logs = [record for record in records if is_log(record.path) and not changes_only_mode(record)]
    if not logs:
        return False
    was = next((record.database for record in logs if record.database), None)
    if was is None:
        return True
    now = read_state(database, like=was.sha256)
    return (now.kind, now.sha256) != (was.kind, was.sha256)


def is_log(path: str | Path) -> bool:
    """Whether a file is a write-ahead log or a rollback journal of a database."""
    return is_database(path) and os.fspath(path).endswith(("-wal", "-journal"))


def start_time_ns(journal: Journal) -> float:
    """When a run started, in nanoseconds since the epoch; 0 if the receipt has no valid time."""
    try:
        return datetime.fromisoformat(journal.started_at).timestamp() * 1e9
    except (ValueError, OverflowError, OSError):
        return 0.0


def changes_only_mode(record: PathRecord) -> bool:
    """Whether a run changed nothing of a file but its mode or owner."""
    return record.before.kind == "file" and record.before.sha256 is None


def is_ours(now: State, record: PathRecord) -> bool:
    """Whether a path is as the run left it; mode and owner may be changed only in part."""
    before, after = record.before, record.after
    if changes_only_mode(record) and now.kind == "file":
        owners = ((before.uid, before.gid), (after.uid, after.gid))
        return now.mode in (before.mode, after.mode) and (now.uid, now.gid) in owners
    return matches(now, after)


def restore(backup: Backup, entry: BackupEntry | None, path: Path, run: str) -> bool:
    """Restore one path from the vault; return False if its owner could not be restored."""
    if entry is None:
        raise Trouble("Backup {id} does not contain {file}.", id=backup.id, file=path.name)
    if entry.kind == "absent":
        disk.remove(path)
    elif entry.kind == "mode":
        return restore_files.restore_mode_and_owner(path, entry)
    else:
        back = restoring_path(path, run)
        disk.remove(back)
        rebuild(backup, entry, back)
        disk.rename(back, path)
    return True


def remove_folders(journal: Journal) -> None:
    """Remove the folders that a run created if they are empty, the deepest first."""
    places = [journal.current_home.path / name for name in journal.folders]
    for place in sorted(places, key=lambda one: len(one.parts), reverse=True):
        with contextlib.suppress(OSError):
            disk.remove_folder(place)


def read_state(path: Path, *, content: bool = True, like: str | None = None) -> State:
    """The current state of a path for the journal; the digest uses the algorithm of `like`."""
    taken = snapshot(path)
    if taken.kind == "symlink":
        return State("symlink", uid=taken.uid, gid=taken.gid, target=os.readlink(path))
    if taken.kind != "file":
        return State(taken.kind)
    sha = disk.digest(path, like=like) if content else None
    return State("file", sha, taken.mode & 0o777, taken.uid, taken.gid)


def matches(now: State, known: State) -> bool:
    """Whether a path has the recorded state; a digest that was not recorded is not compared."""
    if known.sha256 is None:
        now = replace(now, sha256=None)
    return now == known


def state_of(entry: BackupEntry) -> State:
    """The state that a backup entry describes, for the journal."""
    if entry.kind == "absent":
        return State("absent")
    if entry.kind == "symlink":
        return State("symlink", uid=entry.uid, gid=entry.gid, target=entry.target)
    return State("file", entry.sha256, entry.mode, entry.uid, entry.gid)
