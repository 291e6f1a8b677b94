"""Save every readable row of a damaged database into a new one with its release's schema.

The damaged file is parsed page by page by our own code and never opened by SQLite. The new one is
written only by SQLite, with bound values, and is checked before it is used.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite import fulltext
from hermes_doctor.sqlite.blueprint import Blueprint, quote_name
from hermes_doctor.sqlite.examine.soundness import name_of
from hermes_doctor.sqlite.salvage import foreign, layouts, references, views
from hermes_doctor.sqlite.salvage.account import SalvageResult
from hermes_doctor.sqlite.salvage.assign_pages import AssignedPages, assign_leaves
from hermes_doctor.sqlite.salvage.complete_rows import RowCompleter
from hermes_doctor.sqlite.salvage.image import DamagedFile, open_image
from hermes_doctor.sqlite.salvage.layouts import Layout, SalvagedCatalog
from hermes_doctor.sqlite.salvage.load import LoadedTable, Loader, load_clustered
from hermes_doctor.sqlite.salvage.older_copies import OlderCopies, OlderFile, Transcripts
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.salvage.target import NewDatabase, connect
from hermes_doctor.sqlite.salvage.trees import ByRowid, FulltextCopies


def salvage(
    source: Path,
    target: Path,
    blueprint: Blueprint,
    *,
    older_copies: Sequence[OlderFile] = (),
    progress: Callable[[int, int], None] | None = None,
) -> SalvageResult:
    """Save the rows of the damaged database `source` into `target`, which must not exist.

    `source` is a private copy with its write-ahead log or journal; it is only read. If it raises
    CouldNotLook or CannotFix, there is no `target`.
    """
    if os.path.lexists(target):
        raise CannotFix("{target} exists already", target=target.name)
    try:
        return SalvageRun(source, target, blueprint, older_copies, progress).run()
    except (sqlite3.Error, OSError, MemoryError) as error:
        name = name_of(error)
        raise CannotFix(
            "the salvage of {source} could not be finished ({name})", source=source.name, name=name
        ) from error


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
            for suffix in ("", "-wal", "-shm", "-journal"):
                if suffix or not finished:
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return account

    def _salvage(self, image: DamagedFile) -> SalvageResult:
        self.total = 3 * image.count
        (survey, catalog), note = views.choose_view(image, lambda _: self._step(4096))
        self.notes += [note] if note else []
        forest = self.assign_leaves(survey, catalog)
        texts = self._texts(survey, forest)
        self.target = target = NewDatabase(self.path, self.blueprint, catalog, image)
        mender = RowCompleter(
            survey, catalog, forest, target, texts, self.older_copies, self.transcripts
        )
        loader = Loader(survey, target, texts, mender.evidence, self._step)
        loaded = self._load(loader, forest, target)
        for table in sorted(loaded, key=lambda table: target.refers_to_others(table.name)):
            mender.complete_table(table)
        tallies = [table.tally for table in loaded]
        tallies += [  # tables without rowids; Hermes itself has none
            load_clustered(survey, target, target.layouts[name], catalog.root(name))
            for name in target.extra
            if not target.layouts[name].plain
        ]
        self.notes += references.repair_references(mender)
        self._sequences(survey, catalog, target, mender)
        self._version(target, mender)
        for index in self.indexes:
            fulltext.fill(target.database, index)
        fulltext.end_rebuild(target.database)  # every row is indexed
        target.build_indexes(catalog)
        foreign.create_views(target, catalog)
        theirs = foreign.restore_virtual_tables(target, catalog, tallies)
        for sql in self.blueprint.triggers.values():
            target.database.execute(sql)
        foreign.create_triggers(target, catalog)
        proofs = self._prove(target)
        self._step(self.total)
        self.notes += notes(image, catalog, forest, mender, target)
        results = tuple(table for table in tallies if table.name not in theirs)
        return SalvageResult(results, tuple(self.notes), proofs, tuple(target.lost))

    def assign_leaves(self, survey: Survey, catalog: SalvagedCatalog) -> AssignedPages:
        """Assign each leaf page to its table."""
        return assign_leaves(survey, catalog, self._known(catalog), self._copies(), self._sizes())

    def _known(self, catalog: SalvagedCatalog) -> dict[str, Sequence[Layout]]:
        """The possible layouts of all tables."""
        known: dict[str, Sequence[Layout]] = dict(layouts.expected_layouts(self.blueprint))
        hidden = layouts.shadow_tables(self.blueprint.virtual)
        for index in self.indexes:
            if not index.external:
                known[index.name + "_content"] = [layouts.content_layout(index.name + "_content")]
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
    ) -> list[LoadedTable]:
        """Load the tables, except those of SQLite itself."""
        loaded = []
        for name in target.layouts:
            stand = forest.tables.get(name)
            if stand is None or name.startswith("sqlite_"):
                continue
            try:
                loaded.append(loader.load(name, stand))
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
        versions = [
            row[0]
            for row in target.database.execute("SELECT version FROM schema_version")
            if isinstance(row[0], int) and 0 < row[0] < 10_000
        ]
        target.database.execute("DELETE FROM schema_version")
        version = versions[0] if versions else self.blueprint.version
        tally = mender.tally("schema_version")
        if not versions:
            tally.restore("the schema of the release")
        tally.unsure = False  # there is always exactly one row
        target.database.execute("INSERT INTO schema_version (version) VALUES (?)", (version,))

    def _prove(self, target: NewDatabase) -> tuple[str, ...]:
        """Check the whole file through a new connection, without cached state."""
        target.finish()
        target.database.close()
        target.database = connect(self.path)
        texts = (fulltext.check_integrity(target.database, index) for index in self.indexes)
        return (*target.prove(), *texts)


def notes(
    image: DamagedFile,
    catalog: SalvagedCatalog,
    forest: AssignedPages,
    completer: RowCompleter,
    target: NewDatabase,
) -> list[str]:
    """The notes on a finished salvage."""
    sentences: list[str] = []
    if not catalog.whole:
        sentences.append(
            "The list of tables is damaged. Tables that it no longer names and that the release "
            "does not know are not in the new database."
        )
    if image.log.damaged:
        sentences.append(
            f"The write-ahead log is damaged. Pages of it that are lost: "
            f"{image.log.dropped:,}; used although SQLite would not have read them: "
            f"{image.log.frames_after_damage:,}."
        )
    if forest.skipped_leaves:
        sentences.append(f"Pages of deleted rows, which stay deleted: {forest.skipped_leaves:,}.")
    unproven = sum(
        pages.unknown_rows for name, pages in forest.tables.items() if name in target.layouts
    )
    if unproven:
        sentences.append(
            f"Rows on pages without a parent; they may have been deleted earlier, and no evidence "
            f"of that is left: {unproven:,}."
        )
    if completer.withheld:
        sentences.append(
            f"Rows that only an index names; they were not restored, because the pages where "
            f"they would be are intact and do not have them: {completer.withheld:,}."
        )
    if completer.transcribed:
        sentences.append(
            f"Incomplete messages with text from transcripts: {completer.transcribed:,}."
        )
    refused = (
        f"{name} is damaged itself and was not used." for name in completer.older_copies.refused
    )
    return [*sentences, *refused, *target.notes]
