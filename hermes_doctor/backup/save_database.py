"""How a database comes into a backup together with its sidecars: all of one moment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from hermes_doctor.backup.entry import Entry
from hermes_doctor.backup.manifest import Source
from hermes_doctor.backup.save_file import Files, written_to
from hermes_doctor.home import SIDECARS, Home, is_database, main_of
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.exclusive import in_use
from hermes_doctor.system.files import Snapshot, read_head, snapshot

WAIT = 0.1
"""Seconds after which a database that somebody writes to is looked at again; then ever longer."""


class Databases:
    """Saves databases, each with what belongs to it."""

    def __init__(self, home: Home, files: Files) -> None:
        self.home = home
        self.files = files

    def save(self, group: Sequence[Source]) -> list[Entry]:
        """A database with its sidecars, or a single file: all of one moment.

        A run compares them with what it planned for; a patient copy is repeated until nothing
        was written meanwhile, and goes through SQLite when somebody keeps writing.
        """
        database = main_of(group[0].path)
        if not group[0].patient or not is_database(database):
            found = [self.files.save(source) for source in group]
            return [entry for entry in found if entry is not None]
        live = any(source.live for source in group) and _keeps_log(database)
        for attempt in range(0 if live else 5):
            time.sleep(WAIT * (2**attempt - 1))
            before = _moment(database)
            group = self._with_sidecars(group, database)
            found = [self.files.save(source._replace(live=False)) for source in group]
            if before == _moment(database) and not in_use(database):
                return self._judged(database, [entry for entry in found if entry], before)
            for source in group:
                self.files.made.drop(source.name)
            live = in_use(database) and _keeps_log(database)
            if live:
                break
        main = next((source for source in group if source.path == database), None)
        if main is None or not _keeps_log(database):
            raise written_to(str(database))
        entry = self.files.save(main._replace(live=True))
        return [entry] if entry else []

    def _judged(self, database: Path, entries: list[Entry], before: list[Snapshot]) -> list[Entry]:
        """With SQLite's verdict on one of Hermes' own at rest, unless it was given before.

        What others call a database need not be one; and one with something in its log is judged
        only together with that.
        """
        main = next(
            (e for e in entries if e.kind == "file" and not e.path.endswith(SIDECARS)), None
        )
        logged = any(e.size for e in entries if e.path.endswith(("-wal", "-journal")))
        if main is None or main.integrity or logged or database not in self._hermes_own:
            return entries
        from hermes_doctor.sqlite.soundness import DAMAGED, OK, judged

        with suppress(CannotFix, OSError), judged(database) as verdict:
            said, now = verdict(), time.time_ns()
            is_one = said in (OK, DAMAGED) or said.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
            if is_one and before == _moment(database):  # else it is somebody's work that was seen
                entries[entries.index(main)] = main._replace(integrity=said, examined_at=now)
        return entries

    @cached_property
    def _hermes_own(self) -> set[Path]:
        homes = (self.home, *map(Home, self.home.profiles()))
        return {database for home in homes for database in home.databases()}

    def _with_sidecars(self, group: Sequence[Source], database: Path) -> list[Source]:
        """The group with what lies beside its database by now.

        A writer that was killed has left a log or a journal there. Without it, what he had begun
        would count, or what he had committed would not.
        """
        known = {source.place for source in group}
        beside = [database.with_name(database.name + suffix) for suffix in SIDECARS]
        return [
            *group,
            *(
                Source(self.home.name_of(path), str(path), taken, patient=True)
                for path in beside
                if str(path) not in known and (taken := snapshot(path)).kind == "file"
            ),
        ]


def groups(sources: Iterable[Source]) -> list[list[Source]]:
    """Databases, each together with its sidecars."""
    groups: dict[str, list[Source]] = {}
    for source in sources:
        groups.setdefault(str(main_of(source.path)), []).append(source)
    return list(groups.values())


def _moment(database: Path) -> list[Snapshot]:
    return [snapshot(database.with_name(database.name + suffix)) for suffix in ("", *SIDECARS)]


def _keeps_log(database: Path) -> bool:
    """Whether it is in WAL mode, where a reader does not keep a writer waiting."""
    try:
        return read_head(database, 20)[0][18:20] == b"\x02\x02"
    except (CouldNotLook, OSError):
        return False
