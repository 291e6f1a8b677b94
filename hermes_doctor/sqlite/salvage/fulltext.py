"""Full-text tables: what they index, filling them fast, and proving them.

A table that Hermes fills a message at a time is merged over and over. Filled in one go, with
merging off and room for whole segments in memory, the same index takes half as long. The
slowest of them is filled beside the reading of pages, by a thread with a file of its own: the
work is in SQLite, which leaves the interpreter free meanwhile.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.salvage.catalog import SHADOWS
from hermes_doctor.sqlite.salvage.target import connect, quoted

HASH = 32 * 1024 * 1024


@dataclass(frozen=True)
class Index:
    """A full-text table and what its insert trigger puts into it."""

    name: str
    sql: str
    table: str = ""
    fields: str = ""
    """Its columns, as the trigger names them: `rowid, content`."""
    expression: str = ""
    """What goes into them, over a row called `new`."""
    columns: tuple[str, ...] = ()
    """The columns of the table whose texts, with a blank between, are its second copy."""

    @property
    def external(self) -> bool:
        """It keeps no copy of the text."""
        return "content=" in "".join(self.sql.lower().split())


INSERT = re.compile(
    r"AFTER\s+INSERT\s+ON\s+(?P<table>\w+).*?INSERT\s+INTO\s+(?P<name>\w+)\s*"
    r"\((?P<fields>[^)]*)\)\s*VALUES\s*\((?P<values>.*)\)\s*;\s*END",
    re.IGNORECASE | re.DOTALL,
)
TEXTS = re.compile(r"coalesce\(new\.(\w+),''\)", re.IGNORECASE)


def known(virtual: Mapping[str, str], triggers: Mapping[str, str]) -> list[Index]:
    """The full-text tables of a release, each with how it is filled."""
    fills = {}
    for sql in triggers.values():
        found = INSERT.search(sql)
        if found:
            fills[found["name"]] = found
    indexes = []
    for name, sql in virtual.items():
        found = fills.get(name)
        if found is None:
            indexes.append(Index(name, sql))
            continue
        _, _, text = "".join(found["values"].split()).partition(",")
        columns = tuple(TEXTS.findall(text))
        simple = "||''||".join(f"coalesce(new.{column},'')" for column in columns)
        if "' '" not in found["values"] or text.lower() != simple.lower():
            columns = ()
        indexes.append(Index(name, sql, found["table"], found["fields"], found["values"], columns))
    return indexes


def fill(database: sqlite3.Connection, index: Index, source: str = "main") -> None:
    """Create and fill a full-text table from the rows of its table."""
    _create(database, index)
    if index.external:
        database.execute(
            f"INSERT INTO {quoted(index.name)}({quoted(index.name)}) VALUES('rebuild')"
        )
    elif index.table:
        database.execute("BEGIN")
        database.execute(_select(index, source))
        database.execute("COMMIT")
    _settle(database, index)


def _create(database: sqlite3.Connection, index: Index) -> None:
    try:
        database.execute(index.sql)
    except sqlite3.OperationalError as error:
        raise CannotFix("the SQLite of this Python cannot make full-text tables") from error
    name = quoted(index.name)
    for option, value in (("automerge", 0), ("crisismerge", 1999), ("hashsize", HASH)):
        database.execute(f"INSERT INTO {name}({name}, rank) VALUES(?, ?)", (option, value))


def _select(index: Index, source: str, condition: str = "") -> str:
    return (
        f"INSERT INTO main.{quoted(index.name)}({index.fields}) SELECT {index.expression} "
        f"FROM {source}.{quoted(index.table)} AS new {condition}"
    )


def _settle(database: sqlite3.Connection, index: Index) -> None:
    """Back to the settings that Hermes makes it with, which are none."""
    database.execute(f"DELETE FROM {quoted(index.name + '_config')} WHERE k <> 'version'")


def prove(database: sqlite3.Connection, index: Index) -> str:
    """Raise unless the index has what its rows say."""
    name = quoted(index.name)
    try:
        database.execute(f"INSERT INTO {name}({name}) VALUES('integrity-check')")
    except sqlite3.DatabaseError as error:
        raise CannotFix("the full-text table of the salvaged database is not sound") from error
    return f"integrity-check of {index.name}"


class Proof:
    """The proof of one full-text table in a thread, beside the other proofs."""

    def __init__(self, path: Path, index: Index) -> None:
        self.path = path
        self.index = index
        self.outcome: str | BaseException = ""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with contextlib.closing(connect(self.path)) as database:
                self.outcome = prove(database, self.index)
        except (sqlite3.Error, CannotFix) as error:
            self.outcome = error

    def result(self) -> str:
        """Wait for it."""
        self.thread.join()
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


class Beside:
    """Fills one full-text table in a file of its own while rows are still being read."""

    def __init__(self, target: Path, index: Index) -> None:
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
        """So many more rows are committed."""
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
            _create(database, self.index)
            done = "SELECT rowid FROM main." + quoted(self.index.name + "_docsize")
            last = -(1 << 63)
            while True:
                with self.more:
                    while not self.ready and not self.over:
                        self.more.wait()
                    over, self.ready = self.over and not self.ready, 0
                if over:
                    break
                database.execute("BEGIN")
                top = f"SELECT max(rowid) FROM rows.{quoted(self.index.table)}"
                reach = database.execute(top).fetchone()[0]
                if reach is not None and reach > last:
                    span = f"WHERE new.rowid > {last} AND new.rowid <= {reach} ORDER BY new.rowid"
                    database.execute(_select(self.index, "rows", span))
                    last = reach
                database.execute("COMMIT")
            database.execute("BEGIN")
            database.execute(
                _select(self.index, "rows", f"WHERE new.rowid NOT IN ({done}) ORDER BY new.rowid")
            )
            database.execute("COMMIT")
            _settle(database, self.index)
        finally:
            database.close()

    def finish(self, database: sqlite3.Connection) -> None:
        """Wait for it, and take over what it made."""
        self.close()
        if self.error:
            raise CannotFix("the full-text table could not be filled") from self.error
        database.execute(self.index.sql)
        database.execute("ATTACH ? AS made", (str(self.path),))
        database.execute("BEGIN")
        for suffix in SHADOWS:
            name = quoted(self.index.name + suffix)
            database.execute(f"DELETE FROM main.{name}")
            database.execute(f"INSERT INTO main.{name} SELECT * FROM made.{name}")
        database.execute("COMMIT")
        database.execute("DETACH made")

    def close(self) -> None:
        """Let the thread end."""
        with self.more:
            self.over = True
            self.more.notify()
        self.thread.join()

    def remove(self) -> None:
        """Leave nothing behind."""
        self.close()
        for suffix in ("", "-journal", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def split(indexes: Sequence[Index]) -> tuple[Index | None, list[Index]]:
    """The slowest one, for a thread of its own, and the others."""
    slow = next((one for one in indexes if "trigram" in one.sql and one.table), None)
    return slow, [one for one in indexes if one is not slow]
