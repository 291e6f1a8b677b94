"""The part of `Probes` about databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hermes_doctor.core.message import listed, sentences, text
from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes.scope import View
from hermes_doctor.sqlite import header

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_doctor.core.file_copies import DatabaseCopy
    from hermes_doctor.diagnosis.probes.database_users import DatabaseUsers, LostFile, StuckLock
    from hermes_doctor.diagnosis.probes.databases import DatabaseList, Structure
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.hermes_view import HermesView
    from hermes_doctor.diagnosis.probes.scope import Scope
    from hermes_doctor.diagnosis.probes.traces import Trace
    from hermes_doctor.sqlite.examine.condition import Condition
    from hermes_doctor.sqlite.header import Header
    from hermes_doctor.sqlite.reader import QueryResult, Row
    from hermes_doctor.sqlite.schema import Schema


class DatabasesView(View):
    """The databases of the home: their files, schemas, rows and copies."""

    def __init__(self, scope: Scope, gateway: GatewayView, hermes: HermesView) -> None:
        super().__init__(scope)
        self._gateway = gateway
        self._hermes = hermes
        self._conditions: list[Condition] = []
        self._shares: dict[str, Callable[[], float]] = {}

    def close(self) -> None:
        """Close every database; the answers are kept."""
        for condition in self._conditions:
            if condition.reader is not None:
                condition.reader.close()

    def progress(self) -> str:
        """The progress of the examinations of large databases."""
        return ", ".join(f"{name} {share():.0%}" for name, share in list(self._shares.items()))

    @once(limit=2, what="databases")
    def files(self) -> DatabaseList:
        """The databases that this home has."""
        from hermes_doctor.diagnosis.probes import databases

        return databases.find(self.home)

    @once(limit=2)
    def header(self, path: Path) -> Header:
        """The first page of a database, checked."""
        return header.read(path)

    @once(limit=2)
    def schema(self, path: Path) -> Schema:
        """The schema of a database, read from its pages without opening it."""
        from hermes_doctor.sqlite import schema

        return schema.read(path)

    def structure(self, path: Path) -> Structure:
        """Compare the schema of a database with that of the installed Hermes."""
        from hermes_doctor.diagnosis.probes import databases

        name = self.home.name_of(path)
        return databases.compare_schema(name, lambda: self.schema(path), self._hermes.release)

    @once(limit=2, what="held")
    def users(self) -> DatabaseUsers:
        """Which processes have the databases of this home open or locked."""
        from hermes_doctor.diagnosis.probes import database_users

        return database_users.find(self.files().paths or self.files().missing[:1])

    @once(limit=2)
    def lost_files(self) -> list[LostFile]:
        """Database files that a process still uses although they were deleted or replaced."""
        from hermes_doctor.diagnosis.probes import database_users

        gateways = known_or([], lambda: [gateway.pid for gateway in self._gateway.running()])
        database_list = self.files()
        return database_users.lost_files(
            self.users(), (*database_list.paths, *database_list.missing), gateways
        )

    @once(limit=3)
    def stuck_locks(self) -> list[StuckLock]:
        """Write locks that are held without being used."""
        from hermes_doctor.diagnosis.probes import database_users

        return database_users.find_stuck(self.files().paths, self.users().locked)

    @once(limit=4)
    def condition(self, path: Path) -> Condition:
        """The full examination of a database, shared by all checks."""
        from hermes_doctor.diagnosis.probes import database_users, databases
        from hermes_doctor.sqlite.examine import condition, run

        known = iter([self.users()])
        found = run.examine(
            path,
            holders=lambda: (next(known, None) or database_users.find([path])).holders(path),
            deep=self.scope.deep,
            seconds=databases.time_share(
                self.files(), condition.SMALL_BYTES, condition.QUICK_CHECK_SECONDS
            ),
            watch=lambda share: self._shares.update({self.home.name_of(path): share}),
        )
        self._conditions.append(found)
        return found

    def conditions(self) -> Iterator[tuple[str, Path, Condition]]:
        """Every database that can be read, with its name in the home.

        Those that cannot be read are reported by one check only, so that a cause is not repeated.
        """
        for path in self.files().paths:
            try:
                yield self.home.name_of(path), path, self.condition(path)
            except (CouldNotLook, FileNotFoundError):
                continue

    def query(self, path: Path, sql: str) -> QueryResult:
        """Run one query on a database; a quick check waits only a moment for the answer."""
        found = self.condition(path)
        if found.reader is None or not found.readable:
            raise CouldNotLook(
                "{file}: {reason}",
                file=self.home.name_of(path),
                reason=found.doubt or "could not read it",
            )
        return found.reader.ask(sql, found.patience(self.scope.deep))

    def is_reported(self, path: Path) -> bool:
        """Whether a database has no readable rows because of a fault that its own checks report."""
        found = self.condition(path)
        return found.wrong and not found.readable

    def rows(self, path: Path, sql: str, *tables: str) -> list[Row]:
        """The rows of one query; none if the database lacks one of the tables.

        Raises CouldNotLook if SQLite fails or takes too long: no rows mean that there are none.
        """
        catalog = self.condition(path).catalog
        if catalog is not None and any(table not in catalog.tables for table in tables):
            return []
        answer = self.query(path, sql)
        if answer.error:
            name = self.home.name_of(path)
            if answer.unfinished:
                raise CouldNotLook("{file}: the query takes too long", file=name)
            raise CouldNotLook(
                "{file}: SQLite cannot read it ({error})", file=name, error=answer.error
            )
        return answer.rows

    @once(limit=2)
    def copies(self, path: Path) -> list[DatabaseCopy]:
        """Backups and copies of this database, newest first."""
        from hermes_doctor.backup.vault import copies

        return copies.database_copies(self.home, path)

    @once(limit=6)
    def all_copies(self, path: Path) -> list[DatabaseCopy]:
        """All copies that can be read, by their newest content; copies of other homes are last.

        They are searched in the vault, in Hermes' snapshots and backup zips, next to the database
        and where a person may have moved it.
        """
        from hermes_doctor.backup.vault import copies, copy_content

        found = {copy.path: copy for copy in copies.moved_copies(self.home, path)}
        found |= {copy.path: copy for copy in self.copies(path)}
        zipped = self._archived().get(self.home.name_of(path), [])
        return copy_content.readable_copies(path.name, [*found.values(), *zipped])

    @once(limit=2)
    def advice_without_copy(self, path: Path) -> str:
        """What to do if no copy was found; it names the folders that could not be searched."""
        from hermes_doctor.backup.vault import copies, copy_content

        closed = [str(folder) for folder in copies.unsearched_folders(self.home, path)]
        not_searched = (
            "{folders} could not be searched with the rights of the home's owner. If a copy is "
            "there, move it next to the database and give it to that user."
            if root_parent.is_separate()
            else "{folders} could not be searched: permission denied."
        )
        return sentences(
            text(not_searched, folders=listed(closed)) if closed else "", copy_content.ELSEWHERE
        )

    @once(limit=4)
    def _archived(self) -> dict[str, list[DatabaseCopy]]:
        """The databases in Hermes' own backup zips, by name."""
        from hermes_doctor.backup.vault import copies

        return copies.archived_databases(self.home)

    @once(limit=4)
    def damaged_copies(self, path: Path) -> list[DatabaseCopy]:
        """Copies of this home that SQLite cannot read, but that may still have rows."""
        from hermes_doctor.backup.vault import copy_content
        from hermes_doctor.sqlite.examine import first_page

        sound = {copy.path for copy in self.all_copies(path)}
        others = [copy for copy in self.copies(path) if copy.path not in sound]
        others = [copy for copy in others if copy_content.with_content(path.name, copy) is None]
        return [copy for copy in others if first_page.has_rows(copy.path)]

    @once(limit=2)
    def traces(self, path: Path) -> list[Trace]:
        """What shows that this database was used, although it may be missing or empty now."""
        from hermes_doctor.diagnosis.probes import traces

        return traces.traces_of(self.home, path)

    @once(limit=2)
    def leftovers(self, path: Path) -> list[DatabaseCopy]:
        """The copies that Hermes made each time it found this database damaged."""
        from hermes_doctor.backup.vault import copies

        return copies.damaged_copies(path)
