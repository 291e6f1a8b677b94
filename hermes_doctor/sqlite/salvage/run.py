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
from hermes_doctor.sqlite.salvage import foreign, references, views
from hermes_doctor.sqlite.salvage.account import SalvageResult
from hermes_doctor.sqlite.salvage.assign_pages import AssignedPages, assign_leaves
from hermes_doctor.sqlite.salvage.complete_rows import RowCompleter
from hermes_doctor.sqlite.salvage.image import DamagedFile, open_image
from hermes_doctor.sqlite.salvage.load import LoadedTable, Loader, load_clustered
from hermes_doctor.sqlite.salvage.older_copies import OlderCopies, OlderFile, Transcripts
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.salvage.target import NewDatabase, connect
from hermes_doctor.sqlite.salvage.trees import ByRowid, FulltextCopies, walk_table


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
        forest = assign_leaves(survey, catalog, self.blueprint)
        texts = self._texts(survey, forest)
        self.target = target = NewDatabase(self.path, self.blueprint, catalog, image)
        mender = RowCompleter(forest, target, texts, self.older_copies, self.transcripts)
        loader = Loader(survey, target, texts, forest.evidence, self._step)
        loaded = self._load(loader, forest)
        for table in sorted(loaded, key=lambda table: target.refers_to_others(table.name)):
            mender.complete_table(table)
        tallies = [table.tally for table in loaded]
        tallies += [  # tables without rowids; Hermes itself has none
            load_clustered(survey, target, target.layouts[name], catalog.root(name))
            for name in target.extra
            if not target.layouts[name].plain
        ]
        self.notes += references.repair_references(mender)
        self._sequences(forest, target)
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
        self.notes += notes(mender)
        results = tuple(table for table in tallies if table.name not in theirs)
        return SalvageResult(results, tuple(self.notes), proofs, tuple(target.lost))

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

    def _load(self, loader: Loader, forest: AssignedPages) -> list[LoadedTable]:
        """Load the tables, except those of SQLite itself."""
        loaded, target = [], loader.target
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

    def _sequences(self, forest: AssignedPages, target: NewDatabase) -> None:
        """Set the AUTOINCREMENT counters, so that no rowid is used twice, even of deleted rows."""
        highest = forest.highest
        root = forest.catalog.root("sqlite_sequence")
        for leaf in walk_table(forest.survey, root).leaves if root > 1 else ():
            for row in forest.survey.rows(leaf.page):
                if len(row.values) == 2:
                    name, number = row.values
                    if isinstance(name, str) and isinstance(number, int):
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
        target.database.execute("PRAGMA journal_mode=DELETE")  # one file, without a log
        target.database.close()
        target.database = connect(self.path)
        texts = (fulltext.check_integrity(target.database, index) for index in self.indexes)
        return (*target.prove(), *texts)


def notes(completer: RowCompleter) -> list[str]:
    """The notes on a finished salvage."""
    sentences: list[str] = []
    forest, target, log = completer.forest, completer.target, completer.survey.image.log
    if not forest.catalog.whole:
        sentences.append(
            "The list of tables is damaged. Tables that it no longer names and that the release "
            "does not know are not in the new database."
        )
    if log.damaged:
        sentences.append(
            f"The write-ahead log is damaged. Pages of it that are lost: "
            f"{log.dropped:,}; used although SQLite would not have read them: "
            f"{log.frames_after_damage:,}."
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
