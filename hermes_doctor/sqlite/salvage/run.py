"""Run one salvage, from reading the first page to checking the new database."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_doctor.sqlite import fulltext
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.fulltext_coverage import HIGH_WATER, META, PROGRESS
from hermes_doctor.sqlite.salvage import (
    catalog as catalogs,
    clustered,
    foreign,
    notes,
    rebuild,
    references,
    views,
)
from hermes_doctor.sqlite.salvage.account import SalvageResult, Tally
from hermes_doctor.sqlite.salvage.catalog import Layout, SalvagedCatalog
from hermes_doctor.sqlite.salvage.complete_rows import RowCompleter
from hermes_doctor.sqlite.salvage.fulltext_copies import FulltextCopies
from hermes_doctor.sqlite.salvage.fulltext_worker import FulltextCheck, FulltextFiller
from hermes_doctor.sqlite.salvage.image import DamagedFile, open_image
from hermes_doctor.sqlite.salvage.load import LoadedTable, Loader
from hermes_doctor.sqlite.salvage.older_copies import OlderCopies, OlderFile
from hermes_doctor.sqlite.salvage.page_owners import AssignedPages, assign_leaves
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.salvage.target import NewDatabase, connect
from hermes_doctor.sqlite.salvage.transcripts import Transcripts
from hermes_doctor.sqlite.salvage.trees import ByRowid
from hermes_doctor.system.files import shown


class SalvageRun:
    """One salvage: reads the damaged database, writes the new one and checks it."""

    def __init__(
        self,
        source: Path,
        target: Path,
        blueprint: Blueprint,
        older_copies: Sequence[OlderFile],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.source = source
        self.path = target
        self.blueprint = blueprint
        self.older_copies = OlderCopies(older_copies, target)
        self.transcripts = Transcripts(older_copies)
        self.progress = progress
        self.indexes = fulltext.parse_indexes(blueprint.virtual, blueprint.triggers)
        self.notes: list[str] = []
        self.target: NewDatabase | None = None
        self.done = 0
        self.total = 1

    def _step(self, pages: int) -> None:
        self.done = min(self.total, self.done + pages)
        if self.progress:
            self.progress(self.done, self.total)

    def run(self) -> SalvageResult:
        """Read, write and check; the target is deleted if anything fails."""
        finished = False
        try:
            with open_image(self.source) as image:
                account = self._salvage(image)
            finished = True
        finally:
            self.older_copies.close()
            if self.target is not None:
                self.target.database.close()
            for suffix in ("", "-wal", "-shm", "-journal", "-fulltext"):
                if suffix or not finished:
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return account

    def _salvage(self, image: DamagedFile) -> SalvageResult:
        self.total = 3 * image.count
        (survey, catalog), told = views.choose_view(image, lambda _: self._step(4096))
        self.notes += [told] if told else []
        forest = self.assign_leaves(survey, catalog)
        texts = self._texts(survey, forest)
        self.target = target = NewDatabase(self.path, self.blueprint, catalog, image)
        slow, quick = fulltext.split_slowest(self.indexes, threaded=target.shared)
        beside = FulltextFiller(self.path, slow) if slow is not None else None
        try:
            mender = RowCompleter(
                survey, catalog, forest, target, texts, self.older_copies, self.transcripts
            )
            loader = Loader(survey, target, texts, mender.evidence, self._step)
            loaded = self._load(loader, forest, target, beside)
            for table in sorted(loaded, key=lambda one: _dependent(target, one.name)):
                mender.complete_table(table)
            tallies = [table.tally for table in loaded]
            tallies += self._clustered(survey, catalog, target)
            self.notes += references.repair_references(mender)
            self._sequences(survey, catalog, target, mender)
            self._version(target, mender)
            for index in quick:
                fulltext.fill(target.database, index)
            self._end_rebuild(target)
            target.build_indexes(catalog)
            proofs = self._prove_text(quick)  # while the slow one is still being filled
            if beside is not None:
                beside.finish(target.database)
        finally:
            if beside is not None:
                beside.remove()
        foreign.create_views(target, catalog)
        theirs = foreign.restore_virtual_tables(target, catalog, tallies)
        for sql in self.blueprint.triggers.values():
            target.database.execute(sql)
        foreign.create_triggers(target, catalog)
        proofs = self._prove(target, slow) + proofs
        self._step(self.total)
        self.notes += notes.notes(image, catalog, forest, mender, target)
        closed = tuple(tally.close() for tally in tallies if tally.name not in theirs)
        return SalvageResult(closed, tuple(self.notes), proofs, tuple(target.lost))

    def assign_leaves(self, survey: Survey, catalog: SalvagedCatalog) -> AssignedPages:
        """Assign each leaf page to its table."""
        return assign_leaves(survey, catalog, self._known(catalog), self._copies(), self._sizes())

    def _clustered(
        self, survey: Survey, catalog: SalvagedCatalog, target: NewDatabase
    ) -> list[Tally]:
        """Load the tables without rowids; Hermes itself has none."""
        return [
            clustered.load(survey, target, target.layouts[name], catalog.root(name))
            for name in target.extra
            if not target.layouts[name].plain
        ]

    def _known(self, catalog: SalvagedCatalog) -> dict[str, Sequence[Layout]]:
        """The possible layouts of all tables."""
        known: dict[str, Sequence[Layout]] = dict(catalogs.expected_layouts(self.blueprint))
        hidden = catalogs.shadow_tables(self.blueprint.virtual)
        for index in self.indexes:
            if not index.external:
                known[index.name + "_content"] = [catalogs.content_layout(index.name + "_content")]
        for name, layout in catalog.layouts.items():
            if name not in known and name not in hidden and layout.plain:
                known[name] = [layout]
        return known

    def _copies(self) -> dict[str, list[str]]:
        """By table: the shadow tables with full-text copies of its texts."""
        copies: dict[str, list[str]] = {}
        for index in self.indexes:
            if index.columns and not index.external:
                copies.setdefault(index.table, []).append(index.name + "_content")
        return copies

    def _sizes(self) -> dict[str, list[str]]:
        """By table: the shadow tables with the full-text size of each of its rows."""
        sizes: dict[str, list[str]] = {}
        for index in self.indexes:
            if index.table:
                sizes.setdefault(index.table, []).append(index.name + "_docsize")
        return sizes

    def _texts(self, survey: Survey, forest: AssignedPages) -> dict[str, FulltextCopies]:
        """By table: the full-text copies of its texts."""
        texts: dict[str, FulltextCopies] = {}
        for table, contents in forest.copies.items():
            columns = {index.columns for index in self.indexes if index.table == table}
            names = forest.tables[table].layout.names
            if len(columns) != 1 or not set(*columns) <= set(names):
                continue
            copies = [ByRowid(survey, forest.tables[name].tree) for name in contents]
            texts[table] = FulltextCopies(copies, [names.index(column) for column in columns.pop()])
        return texts

    def _load(
        self,
        loader: Loader,
        forest: AssignedPages,
        target: NewDatabase,
        beside: FulltextFiller | None,
    ) -> list[LoadedTable]:
        """Load the table that a thread indexes first, then the others."""
        first = beside.index.table if beside else ""
        names = sorted(target.layouts, key=lambda name: name != first)
        loaded = []
        for name in names:
            stand = forest.tables.get(name)
            if stand is None or name.startswith("sqlite_"):
                continue
            told = beside.rows if beside and name == first else None
            try:
                loaded.append(loader.load(name, stand, told))
            except sqlite3.Error:
                if name not in target.extra:
                    raise
                target.lost.append(f"the rows of {shown([name])}")
        return loaded

    def _sequences(
        self, survey: Survey, catalog: SalvagedCatalog, target: NewDatabase, mender: RowCompleter
    ) -> None:
        """Set the AUTOINCREMENT counters, so that no rowid is used twice, even of deleted rows."""
        highest: dict[str, int] = {}
        root = catalog.root("sqlite_sequence")
        from hermes_doctor.sqlite.salvage import trees

        for leaf in trees.walk_table(survey, root).leaves if root > 1 else ():
            for row in survey.rows(leaf.page):
                if len(row.values) == 2:
                    name, number = row.values
                    if isinstance(name, str) and isinstance(number, int):
                        highest[name] = max(number, highest.get(name, 0))
        for name, number in mender.forest.highest.items():
            highest[name] = max(number, highest.get(name, 0))
        database = target.database
        for name, layout in target.layouts.items():
            if "AUTOINCREMENT" not in layout.sql.upper() or name not in highest:
                continue
            top = database.execute(f"SELECT max(rowid) FROM {quote_name(name)}").fetchone()[0] or 0
            database.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            database.execute(
                "INSERT INTO sqlite_sequence VALUES (?, ?)", (name, max(top, highest[name]))
            )

    def _version(self, target: NewDatabase, mender: RowCompleter) -> None:
        """Store one schema version: that of the file if readable, else that of the release."""
        if self.blueprint.version is None or "schema_version" not in target.layouts:
            return
        found = [
            row[0]
            for row in target.database.execute("SELECT version FROM schema_version")
            if isinstance(row[0], int) and 0 < row[0] < 10_000
        ]
        target.database.execute("DELETE FROM schema_version")
        version = found[0] if found else self.blueprint.version
        tally = mender.tally("schema_version")
        if not found:
            tally.restore("the schema of the release")
        tally.unsure = False  # there is always exactly one row
        target.database.execute("INSERT INTO schema_version (version) VALUES (?)", (version,))

    def _end_rebuild(self, target: NewDatabase) -> None:
        """Delete the numbers of a rebuild that Hermes had not finished: every row is indexed."""
        if META in target.layouts:
            keys = [HIGH_WATER, PROGRESS]
            target.database.execute(f"DELETE FROM {META} WHERE key IN (?, ?)", keys)

    def _prove_text(self, indexes: Sequence[fulltext.FulltextIndex]) -> tuple[str, ...]:
        """Check full-text tables through a new connection, without cached state."""
        with contextlib.closing(connect(self.path)) as database:
            return tuple(fulltext.check_integrity(database, index) for index in indexes)

    def _prove(self, target: NewDatabase, slow: fulltext.FulltextIndex | None) -> tuple[str, ...]:
        """Check the whole file, and in parallel the slowest full-text table."""
        target.finish()
        target.database.close()
        aside = FulltextCheck(self.path, slow) if slow else None
        target.database = connect(self.path)
        try:
            proofs = target.prove()
            return (*proofs, aside.result()) if aside else proofs
        finally:
            target.database.close()
            if aside:
                aside.thread.join()


def _dependent(target: NewDatabase, name: str) -> bool:
    """Whether a table refers to other tables, which then have to be completed first."""
    return any(parent != name for _, parent, _ in rebuild.foreign_keys(target, name))
