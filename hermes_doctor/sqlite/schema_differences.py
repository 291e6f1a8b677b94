"""Find what a database lacks or has in another form, compared with the schema of a release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.sqlite.schema import options

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Blueprint, Column, TableBlueprint
    from hermes_doctor.sqlite.schema import Schema

_UNIQUE = pattern(
    r"CREATE\s+UNIQUE\s+INDEX\s.*?\bON\s+(?P<table>\w+)\s*\((?P<columns>[\w\s,]+)\)"
    r"(?:\s*WHERE\s+(?P<where>.+))?",
    re.IGNORECASE | re.DOTALL,
)


class MissingPart(NamedTuple):
    """One part of the schema that is missing."""

    kind: str
    """column, table, view, full-text table, index or trigger."""
    table: str
    name: str
    if_missing: str
    """What Hermes does without it: healed, silent, crash, or unknown."""

    def __str__(self) -> str:
        return f"{self.table}.{self.name}" if self.kind == "column" else self.name


def find_missing(schema: Schema, plan: Blueprint) -> list[MissingPart]:
    """List all missing parts; empty for a database that has none of the tables.

    Only presence counts, because the SQL text differs with the releases that upgraded a file. An
    index or trigger is not listed if its table or a column that it names is missing, nor a trigger
    if its full-text table is missing: they are created together with these.
    """
    if not schema.declarations.keys() & plan.tables.keys():
        return []
    tables = [name for name, table in plan.tables.items() if not table.created_on_demand]
    parts = [
        MissingPart(kind, name, name, plan.if_missing[name])
        for kind, wanted, there in (
            ("table", tables, schema.declarations),
            ("view", plan.views, schema.views),
            ("full-text table", plan.virtual, schema.virtual),
        )
        for name in wanted
        if name not in there
    ]
    columns = list(_missing_columns(schema, plan))
    return [*parts, *columns, *_missing_of_tables(schema, plan, columns)]


def _missing_columns(schema: Schema, plan: Blueprint) -> Iterator[MissingPart]:
    for name, table in plan.tables.items():
        if schema.declarations.get(name, table.sql) == table.sql:
            continue  # missing, or identical to the letter
        there = {column.lower() for column in schema.tables.get(name, {})}  # SQLite ignores case
        for column in table.columns:
            if column.name.lower() not in there and column.name not in table.late:
                yield MissingPart("column", name, column.name, column.if_missing)


def _missing_of_tables(
    schema: Schema, plan: Blueprint, columns: list[MissingPart]
) -> Iterator[MissingPart]:
    later = {
        name for v in plan.virtual if v not in schema.virtual for name in triggers_feeding(plan, v)
    }
    lost = {(column.table, column.name) for column in columns}
    for kind, parts, there in (
        ("index", plan.indexes, schema.indexes),
        ("trigger", plan.triggers, schema.triggers),
    ):
        for name, sql in parts.items():
            table = plan.table_of[name]
            if name in there or name in later or table not in schema.declarations:
                continue
            named = words_of(sql) if lost else frozenset()
            if not any(owner == table and column in named for owner, column in lost):
                yield MissingPart(kind, table, name, plan.if_missing[name])


def duplicates_query(index: str) -> str | None:
    """The query for values that occur twice, which prevents this index; None if it is not unique.

    Like the index, it ignores rows in which a column is NULL.
    """
    parts = _UNIQUE.search(index)
    if parts is None:
        return None
    columns = [column.strip() for column in parts["columns"].split(",")]
    conditions = [f"{column} IS NOT NULL" for column in columns]
    conditions += [f"({parts['where']})"] if parts["where"] else []
    return (
        f"SELECT 1 FROM {parts['table']} WHERE {' AND '.join(conditions)}"
        f" GROUP BY {', '.join(columns)} HAVING count(*) > 1 LIMIT 1"
    )


def words_of(sql: str) -> frozenset[str]:
    """All words of a statement, among them the names that it uses."""
    return frozenset(re.findall(r"\w+", sql))


def search_copies(plan: Blueprint, table: str) -> list[str]:
    """The full-text tables that keep a copy of the text of this table's rows."""
    fed = [name for name in plan.triggers if plan.table_of[name] == table]
    return [
        virtual
        for virtual, sql in plan.virtual.items()
        if {*triggers_feeding(plan, virtual)} & {*fed} and "content" not in options(sql)
    ]


def triggers_feeding(plan: Blueprint, virtual: str) -> list[str]:
    """The triggers that keep a full-text table up to date."""
    return [name for name, sql in plan.triggers.items() if virtual in words_of(sql)]


_TOKENS = pattern(r"--[^\n]*|'(?:[^']|'')*'|\w+|[^\w\s\"`\[\];]")


class ChangedPart(NamedTuple):
    """One part of the schema that differs from the release's declaration."""

    kind: str
    """column, key, index or trigger."""
    table: str
    name: str
    what: str
    """How it differs. Of the file's content it names only tables and columns."""
    effect: str
    """The effect on this release of Hermes: healed, harmless, silent or crash."""

    @property
    def breaks(self) -> bool:
        """Whether it causes an error that Hermes does not repair by itself."""
        return self.effect in ("silent", "crash")

    def __str__(self) -> str:
        if self.kind == "key":
            return f"the key of {self.table}"
        return f"{self.table}.{self.name}" if self.kind == "column" else self.name


def find_changed(schema: Schema, plan: Blueprint) -> list[ChangedPart]:
    """List all differences that are more than spelling.

    An upgrade appends columns and keeps the rest of the SQL as an older release wrote it. So the
    SQL text of tables is not compared, only what it declares.
    """
    return [*_changed_tables(schema, plan), *_changed_of_tables(schema, plan)]


def _changed_tables(schema: Schema, plan: Blueprint) -> Iterator[ChangedPart]:
    for name, table in plan.tables.items():
        if schema.declarations.get(name, table.sql) == table.sql:
            continue  # missing, or identical to the letter
        there = {column.name.lower(): column for column in schema.tables.get(name, {}).values()}
        if not all(column.name.lower() in there for column in table.columns if column.key):
            continue  # a key column is missing, which is reported as missing
        yield from _changed_key(table, there)
        for column in table.columns:
            mine = there.get(column.name.lower())
            if mine is not None:
                yield from _changed_column(name, column, mine)


def _changed_key(table: TableBlueprint, there: Mapping[str, Column]) -> Iterator[ChangedPart]:
    wanted = _keys({column.name.lower(): column for column in table.columns})
    mine = _keys(there)
    if mine == wanted:
        return
    lost = not mine or (len(mine) == 1 and mine[0][0] == wanted[0][0])
    what = f"{table.name} has {'no' if lost else 'another'} primary key"
    yield ChangedPart("key", table.name, table.name, what, table.if_unkeyed if lost else "crash")


def _keys(columns: Mapping[str, Column]) -> list[tuple[str, bool]]:
    """The columns of a key, and whether it is a rowid alias that SQLite numbers by itself."""
    parts = sorted((column.key, name) for name, column in columns.items() if column.key)
    numbered = len(parts) == 1 and columns[parts[0][1]].type.upper() == "INTEGER"
    return [(name, numbered) for _, name in parts]


def _changed_column(table: str, column: Column, mine: Column) -> Iterator[ChangedPart]:
    place = f"{table}.{column.name}"
    differences = []
    effects = {"harmless"}
    wanted, has = _value(column.default), _value(mine.default)
    if wanted != has:
        way = "loose" if column.notnull and not mine.notnull else "bare"
        effect = column.if_changed.get(way, "harmless") if wanted is not None else "harmless"
        if has is not None and effect == "crash":
            effect = "silent"  # a value is written, but not the one that Hermes expects
        effects.add(effect)
        differences.append("has no default" if has is None else "has another default")
    if column.notnull and not mine.notnull and not column.key:
        differences.append("may be NULL")
    if mine.notnull and not column.notnull and not column.key:
        effects.add("crash")
        differences.append("must not be NULL")
    if _affinity(column.type) != _affinity(mine.type) and not column.key:
        differences.append("has another type")
    if differences:
        levels = ("crash", "silent", "healed", "harmless")
        effect = next(level for level in levels if level in effects)
        what = f"{place} {' and '.join(differences)}"
        yield ChangedPart("column", table, column.name, what, effect)


def _changed_of_tables(schema: Schema, plan: Blueprint) -> Iterator[ChangedPart]:
    for kind, parts, there in (
        ("index", plan.indexes, schema.indexes),
        ("trigger", plan.triggers, schema.triggers),
    ):
        for name, sql in parts.items():
            mine = there.get(name, sql)
            if mine == sql or _tokens(mine) == _tokens(sql):
                continue
            what = f"{name} is another {kind}"
            effect = plan.if_changed.get(name, "harmless")
            if kind == "index":
                has, wanted = _tokens(mine), _tokens(sql)
                unique = has[1:2] == ["unique"]
                if unique and has[2:] != wanted[2:]:
                    effect, what = "crash", f"{name} lets a value be there only once"
                elif wanted[1:2] == ["unique"] and not unique:
                    what = f"{name} is not unique"
            yield ChangedPart(kind, plan.table_of[name], name, what, effect)


def _tokens(sql: str) -> list[str]:
    """The tokens of a statement, so that spaces, case and quotes make no difference."""
    words = [w if w[0] == "'" else w.lower() for w in _TOKENS.findall(sql) if w[:2] != "--"]
    for place in range(len(words) - 2):
        if words[place : place + 3] == ["if", "not", "exists"]:
            return words[:place] + words[place + 3 :]
    return words


def _value(default: str | None) -> str | None:
    """Normalise a default: 0, (0) and '0' are equal for a numeric column."""
    if default is None:
        return None
    text = default.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if text.upper() == "NULL":
        return None
    return text[1:-1] if text[:1] in ("'", '"') and len(text) > 1 else text.upper()


def _affinity(declared: str) -> str:
    """The affinity that SQLite derives from a declared type."""
    text = declared.upper()
    for words, affinity in (
        (("INT",), "integer"),
        (("CHAR", "CLOB", "TEXT"), "text"),
        (("BLOB",), "blob"),
        (("REAL", "FLOA", "DOUB"), "real"),
    ):
        if any(word in text for word in words):
            return affinity
    return "numeric" if text else "blob"
