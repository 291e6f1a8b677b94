"""Fill and check the slowest full-text table in a thread.

It is filled in a file of its own while pages are still being read. SQLite does the work and
releases the interpreter lock meanwhile.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite import fulltext
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.salvage.catalog import FTS5_SHADOW_SUFFIXES
from hermes_doctor.sqlite.salvage.target import connect


class FulltextCheck:
    """Checks one full-text table in a thread, in parallel to the other checks."""

    def __init__(self, path: Path, index: fulltext.FulltextIndex) -> None:
        self.path = path
        self.index = index
        self.outcome: str | BaseException = ""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with contextlib.closing(connect(self.path)) as database:
                self.outcome = fulltext.check_integrity(database, self.index)
        except (sqlite3.Error, CannotFix) as error:
            self.outcome = error

    def result(self) -> str:
        """Wait for the check and return its result."""
        self.thread.join()
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


class FulltextFiller:
    """Fills one full-text table in a separate file while rows are still being read."""

    def __init__(self, target: Path, index: fulltext.FulltextIndex) -> None:
        self.target = target
        self.index = index
        self.path = target.with_name(target.name + "-fulltext")
        self.more = threading.Condition()
        self.ready = 0
        self.over = False
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def rows(self, count: int) -> None:
        """Announce that so many more rows are committed."""
        with self.more:
            self.ready += count
            self.more.notify()

    def _run(self) -> None:
        try:
            self._fill()
        except (sqlite3.Error, CannotFix, OSError) as error:
            self.error = error

    def _fill(self) -> None:
        database = connect(self.path)
        try:
            database.execute("PRAGMA journal_mode=OFF")
            database.execute("ATTACH ? AS rows", (str(self.target),))
            fulltext.create(database, self.index)
            done = "SELECT rowid FROM main." + quote_name(self.index.name + "_docsize")
            last = -(1 << 63)
            while True:
                with self.more:
                    while not self.ready and not self.over:
                        self.more.wait()
                    over, self.ready = self.over and not self.ready, 0
                if over:
                    break
                database.execute("BEGIN")
                top = f"SELECT max(rowid) FROM rows.{quote_name(self.index.table)}"
                reach = database.execute(top).fetchone()[0]
                if reach is not None and reach > last:
                    span = f"WHERE new.rowid > {last} AND new.rowid <= {reach} ORDER BY new.rowid"
                    database.execute(fulltext.indexing_sql(self.index, "rows", span))
                    last = reach
                database.execute("COMMIT")
            database.execute("BEGIN")
            database.execute(
                fulltext.indexing_sql(
                    self.index, "rows", f"WHERE new.rowid NOT IN ({done}) ORDER BY new.rowid"
                )
            )
            database.execute("COMMIT")
            fulltext.clear_settings(database, self.index)
        finally:
            database.close()

    def finish(self, database: sqlite3.Connection) -> None:
        """Wait for the thread and copy its full-text table into the database."""
        self.close()
        if self.error:
            raise CannotFix("could not fill the search index") from self.error
        database.execute(self.index.sql)
        database.execute("ATTACH ? AS made", (str(self.path),))
        database.execute("BEGIN")
        for suffix in FTS5_SHADOW_SUFFIXES:
            name = quote_name(self.index.name + suffix)
            database.execute(f"DELETE FROM main.{name}")
            database.execute(f"INSERT INTO main.{name} SELECT * FROM made.{name}")
        database.execute("COMMIT")
        database.execute("DETACH made")

    def close(self) -> None:
        """End the thread."""
        with self.more:
            self.over = True
            self.more.notify()
        self.thread.join()

    def remove(self) -> None:
        """End the thread and delete its files."""
        self.close()
        for suffix in ("", "-journal", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
