"""Create an empty database with the schema of a release, or complete the schema of one."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.core.model import CannotFix
from hermes_doctor.sqlite import fulltext
from hermes_doctor.sqlite.blueprint import (
    FORMER_NAMES,
    Blueprint,
    Column,
    TableBlueprint,
    can_append,
    column_definition,
    quote_name,
    value_for_old_rows,
)
from hermes_doctor.sqlite.schema_differences import (
    ChangedPart,
    MissingPart,
    triggers_feeding,
    words_of,
)


def complete(
    path: Path, plan: Blueprint, missing: Sequence[MissingPart], changed: Sequence[ChangedPart] = ()
) -> list[str]:
    """Create missing parts and replace changed ones in one transaction; return what was done.

    If it raises CannotFix, nothing was changed.
    """
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA foreign_keys=OFF")  # a table is missing while it is rebuilt
            db.execute("PRAGMA legacy_alter_table=ON")  # a rename must not change references
            db.execute("BEGIN IMMEDIATE")
            work = _Completion(db, plan)
            work.make(missing, changed)
            db.execute("COMMIT")
            return work.messages
    except sqlite3.Error as error:
        reason = "SQLite could not complete the schema ({error})"
        if isinstance(error, sqlite3.IntegrityError):
            reason = "rows that exist twice or lack a value prevent it ({error})"
        raise CannotFix(reason, error=error.sqlite_errorname) from error


class _Completion:
    """Completes one database within the transaction of `complete`."""

    def __init__(self, db: sqlite3.Connection, plan: Blueprint) -> None:
        self.db = db
        self.plan = plan
        self.messages: list[str] = []
        self.again: set[str] = set()
        """The tables to rebuild as declared."""
        self.renumbered: set[str] = set()
        """Those of them whose rows may have new rowids."""
        self.dropped: set[str] = set()
        """Indexes and triggers that differed and were dropped."""

    def make(self, missing: Sequence[MissingPart], changed: Sequence[ChangedPart] = ()) -> None:
        """Create tables first, then columns, indexes and triggers, then full-text tables."""
        touched: dict[str, list[Column]] = {}
        missing = [*missing, *self._given_up(changed)]
        touched |= {table: [] for table in self.again}
        for part in missing:
            table = self.plan.tables.get(part.table)
            column = table.column(part.name) if table and part.kind == "column" else None
            if table:
                touched.setdefault(part.table, []).extend([column] if column else [])
        for name, lost in touched.items():
            self._table(self.plan.tables[name], lost)
        for name, sql in self.plan.indexes.items():
            if self.plan.table_of[name] in touched and not self._has(name):
                self._index(name, sql)
        for part in missing:
            if part.kind == "view" and not self._has(part.name):
                self.db.execute(self.plan.views[part.name])
        for virtual in self.plan.virtual:
            self._full_text(virtual, missing, set(touched))

    def _given_up(self, changed: Sequence[ChangedPart]) -> Iterator[MissingPart]:
        """Drop changed indexes and triggers and yield them as missing; mark tables to rebuild."""
        for part in changed:
            if part.kind in ("column", "key"):
                self.again.add(part.table)
                self.renumbered |= {part.table} if part.kind == "key" else set()
            else:
                self.db.execute(f"DROP {part.kind} {quote_name(part.name)}")
                self.dropped.add(part.name)
                self.messages.append(f"The {part.kind} {part.name} was made as declared.")
                yield MissingPart(part.kind, part.table, part.name, "unknown")

    def _index(self, name: str, sql: str) -> None:
        """Create an index. Skip it if duplicate values prevent it, or if it needs a key column that
        only Hermes can add: Hermes then creates the index too."""
        try:
            self.db.execute(sql)
        except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
            no_room = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM")
            if name in self.dropped or error.sqlite_errorname.startswith(no_room):
                raise

    def _full_text(self, virtual: str, missing: Sequence[MissingPart], touched: set[str]) -> None:
        """Create a full-text table or its triggers, and index the rows that they missed.

        The full-text table may have the only copy of the text of a lost column. In that case the
        rows that it has stay as they are.
        """
        wanted = {part.name for part in missing if part.kind != "column"}
        triggers = [name for name in triggers_feeding(self.plan, virtual) if not self._has(name)]
        if virtual in wanted:
            self.db.execute(self.plan.virtual[virtual])
        elif not self._has(virtual):
            return
        elif not any(name in wanted or self.plan.table_of[name] in touched for name in triggers):
            sources = {self.plan.table_of[name] for name in triggers_feeding(self.plan, virtual)}
            if not sources & self.renumbered:
                return
        if not all(self._can_run(name) for name in triggers):
            return  # they need a key column that only Hermes can add
        for name in triggers:
            self.db.execute(self.plan.triggers[name])
        named = set().union(*(words_of(self.plan.triggers[name]) for name in triggers))
        lost = any(part.kind == "column" and part.name in named for part in missing)
        [index] = fulltext.parse_indexes({virtual: self.plan.virtual[virtual]}, self.plan.triggers)
        if index.external:
            fulltext.rebuild(self.db, index)
        elif lost:  # index the rows that it lacks; keep the text that it has of the others
            rows = f"SELECT rowid FROM {quote_name(index.table)}"
            self.db.execute(f"DELETE FROM {virtual} WHERE rowid NOT IN ({rows})")
            lacking = f"WHERE new.rowid NOT IN (SELECT rowid FROM {virtual})"
            self.db.execute(fulltext.indexing_sql(index, "main", lacking))
        else:
            self.db.execute(f"DELETE FROM {virtual}")
            self.db.execute(fulltext.indexing_sql(index, "main"))

    def _can_run(self, trigger: str) -> bool:
        """Whether the table has all columns that a trigger names."""
        table = self.plan.tables[self.plan.table_of[trigger]]
        there = self._columns(table.name)
        named = words_of(self.plan.triggers[trigger])
        return all(column.name in there for column in table.columns if column.name in named)

    def _has(self, name: str) -> bool:
        rows = self.db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,))
        return rows.fetchone() is not None

    def _table(self, table: TableBlueprint, lost: list[Column]) -> None:
        if not self._has(table.name):
            self.db.execute(table.sql)
        elif table.name in self.again:
            self._rebuild(table, lost)
            self.messages.append(f"The table {table.name} was rebuilt as declared, with its rows.")
        elif all(can_append(table, column) for column in lost):
            name = quote_name(table.name)
            for column in lost:  # existing rows get its default, or what its former name has
                former = self._former_value(table, column)
                self.db.execute(f"ALTER TABLE {name} ADD COLUMN {column_definition(column)}")
                if former:
                    self.db.execute(f"UPDATE {name} SET {quote_name(column.name)} = {former}")
        else:
            self._rebuild(table, lost)

    def _former_value(self, table: TableBlueprint, column: Column) -> str | None:
        """The SQL of the value that a column has under its former name, if the table has that."""
        former, value = FORMER_NAMES.get((table.name, column.name), ("", ""))
        return value if former and former in self._columns(table.name) else None

    def _rebuild(self, table: TableBlueprint, lost: list[Column]) -> None:
        """Create the table again as declared and move all rows, indexes and triggers to it.

        Columns that the release does not know are appended. The AUTOINCREMENT counter is kept
        too; otherwise the number of a deleted row would be used again.
        """
        db, name = self.db, quote_name(table.name)
        there = self._columns(table.name)
        strange = [column for name, column in there.items() if not table.column(name)]
        values = {name: self._filled(table, column) for name, column in there.items()}
        for column in lost:
            former = self._former_value(table, column)
            values[column.name] = former or value_for_old_rows(table, column) or ""
        if not all(values.values()) or any(column.key for column in strange):
            raise CannotFix("{table} lacks a column without a default value", table=table.name)
        owned = "tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL"
        select = f"SELECT sql FROM sqlite_master WHERE {owned}"
        belongings = db.execute(select, (table.name,)).fetchall()
        next_number = self._sequence(table.name)
        fresh = f"{table.name}_as_declared"
        db.execute(f"CREATE TABLE {quote_name(fresh)} {table.sql[table.sql.index('(') :]}")
        for column in strange:
            db.execute(f"ALTER TABLE {quote_name(fresh)} ADD COLUMN {column_definition(column)}")
        for column in table.columns:
            if column.name not in values:  # only Hermes can add it
                db.execute(f"ALTER TABLE {quote_name(fresh)} DROP COLUMN {quote_name(column.name)}")
        db.execute(
            f"INSERT INTO {quote_name(fresh)} ({', '.join(map(quote_name, values))})"
            f" SELECT {', '.join(values.values())} FROM {name} ORDER BY rowid"
        )
        db.execute(f"DROP TABLE {name}")
        db.execute(f"ALTER TABLE {quote_name(fresh)} RENAME TO {name}")
        for (sql,) in belongings:
            db.execute(sql)
        if next_number is not None and "AUTOINCREMENT" in table.sql.upper():
            highest = max(next_number, self._sequence(table.name) or 0)
            db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table.name,))
            db.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table.name, highest))

    def _filled(self, table: TableBlueprint, there: Column) -> str:
        """The SQL of a column's value; NULLs written since its default was lost get the default."""
        name, column = quote_name(there.name), table.column(there.name)
        if column is None or column.key:
            return name
        default = value_for_old_rows(table, column) if column.notnull else column.default
        if there.notnull or default is None or (not column.notnull and there.default is not None):
            return name
        sql = f"SELECT count(*) FROM {quote_name(table.name)} WHERE {name} IS NULL"
        (count,) = self.db.execute(sql).fetchone()
        if not count:
            return name
        self.messages.append(f"Rows of {table.name} that got the declared {there.name}: {count:,}.")
        return f"coalesce({name}, {default})"

    def _columns(self, table: str) -> dict[str, Column]:
        rows = self.db.execute(f"PRAGMA table_xinfo({quote_name(table)})").fetchall()
        if any(row[6] for row in rows):
            raise CannotFix("{table} has computed columns, which Hermes never creates", table=table)
        return {row[1]: Column(row[1], row[2], bool(row[3]), row[4], row[5]) for row in rows}

    def _sequence(self, table: str) -> int | None:
        """The highest rowid that the table ever used, if SQLite records it."""
        if not self._has("sqlite_sequence"):
            return None
        row = self.db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        return row[0] if row and isinstance(row[0], int) else None


def create(path: Path, plan: Blueprint) -> sqlite3.Connection:
    """Create the database without its lazy tables; full-text tables only if this SQLite can."""
    db = sqlite3.connect(path)
    lazy = {table.name for table in plan.tables.values() if table.created_on_demand}
    for table in plan.tables.values():
        if not table.created_on_demand:
            db.execute(table.sql)
    for name, sql in plan.indexes.items():
        if plan.table_of[name] not in lazy:
            db.execute(sql)
    for sql in plan.views.values():
        db.execute(sql)
    for name, sql in plan.virtual.items():
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute(sql)
            for trigger in triggers_feeding(plan, name):
                db.execute(plan.triggers[trigger])
    if plan.version is not None:
        db.execute("INSERT INTO schema_version VALUES (?)", (plan.version,))
    db.commit()
    return db
