"""Save a database together with its sidecars in one consistent state."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from hermes_doctor.backup.vault.manifest import BackupEntry, BackupSource
from hermes_doctor.backup.vault.save_file import FileSaver, busy_file_error
from hermes_doctor.core.home import SIDECARS, Home, database_of, is_database
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import Snapshot, read_head, snapshot
from hermes_doctor.sqlite.exclusive import in_use, is_being_written

WAIT = 0.1
"""Seconds before a database that is being written is tried again; doubled each time."""


class DatabaseSaver:
    """Saves databases, each with its sidecars."""

    def __init__(self, home: Home, files: FileSaver) -> None:
        self.home = home
        self.files = files

    def save(self, group: Sequence[BackupSource]) -> list[BackupEntry]:
        """Save a database with its sidecars, or a single file, in one consistent state.

        For a run they must be as planned. A patient copy is repeated until nobody writes
        during it, and made through SQLite if a process keeps writing.
        """
        database = database_of(group[0].path)
        if not group[0].patient or not is_database(database):
            entries = [self.files.save(source) for source in group]
            return [entry for entry in entries if entry is not None]
        live = any(source.live for source in group) and _keeps_log(database)
        for attempt in range(0 if live else 5):
            time.sleep(WAIT * (2**attempt - 1))
            before, still = _moment(database), not _may_change(database)
            group = self._with_sidecars(group, database)
            entries = [self.files.save(source._replace(live=False)) for source in group]
            if still and before == _moment(database) and not _may_change(database):
                return self._judged(database, [entry for entry in entries if entry], before)
            for source in group:
                self.files.partial.drop(source.name)
            live = in_use(database) and _keeps_log(database)
            if live:
                break
        main = next((source for source in group if source.path == database), None)
        if main is None or not _keeps_log(database):
            raise busy_file_error(str(database))
        entry = self.files.save(main._replace(live=True))
        return [entry] if entry else []

    def _judged(
        self, database: Path, entries: list[BackupEntry], before: list[Snapshot]
    ) -> list[BackupEntry]:
        """Add SQLite's verdict on an unused database of Hermes, unless it has one.

        Other files named like a database need not be one; and a database with a non-empty log
        would have to be judged together with it.
        """
        mains = (e for e in entries if e.kind == "file" and not e.path.endswith(SIDECARS))
        main = next(mains, None)
        logged = any(e.size for e in entries if e.path.endswith(("-wal", "-journal")))
        if main is None or main.integrity or logged or database not in self._hermes_own:
            return entries
        from hermes_doctor.sqlite.examine.soundness import DAMAGED, OK, background_check

        with suppress(CannotFix, OSError), background_check(database) as verdict:
            answer, now = verdict(), time.time_ns()
            damage = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
            is_one = answer in (OK, DAMAGED) or answer.startswith(damage)
            if is_one and before == _moment(database):  # else the verdict is of another state
                entries[entries.index(main)] = main._replace(integrity=answer, examined_at=now)
        return entries

    @cached_property
    def _hermes_own(self) -> set[Path]:
        homes = (self.home, *map(Home, self.home.profiles()))
        return {database for home in homes for database in home.databases()}

    def _with_sidecars(self, group: Sequence[BackupSource], database: Path) -> list[BackupSource]:
        """Add the sidecars that are beside the database now to the group.

        A killed writer has left a log or a journal. Without it, an unfinished transaction would
        count, or a committed one would be lost.
        """
        known = {source.path_str for source in group}
        added = []
        for path in (database.with_name(database.name + suffix) for suffix in SIDECARS):
            if str(path) not in known and (state := snapshot(path)).kind == "file":
                name = self.home.name_of(path)
                added.append(BackupSource(name, str(path), state, patient=True))
        return [*group, *added]


def groups(sources: Iterable[BackupSource]) -> list[list[BackupSource]]:
    """Group databases with their sidecars."""
    groups: dict[str, list[BackupSource]] = {}
    for source in sources:
        groups.setdefault(str(database_of(source.path)), []).append(source)
    return list(groups.values())


def _moment(database: Path) -> list[Snapshot]:
    return [snapshot(database.with_name(database.name + suffix)) for suffix in ("", *SIDECARS)]


def _may_change(database: Path) -> bool:
    """Whether a process may write to the files of a database while they are copied.

    In WAL mode, every process that has the database open may write at any time. In other modes, a
    writer needs a lock that we can see and changes the times of the file, so readers do no harm.
    """
    return in_use(database) if _keeps_log(database) else is_being_written(database)


def _keeps_log(database: Path) -> bool:
    """Whether a database is in WAL mode, where a reader does not block a writer."""
    try:
        return read_head(database, 20)[0][18:20] == b"\x02\x02"
    except (CouldNotLook, OSError):
        return False
