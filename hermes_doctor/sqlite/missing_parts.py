"""Find tables, columns, indexes and triggers that a release declares and a database lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.sqlite.fulltext_options import options

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Blueprint
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


def find_missing(found: Schema, plan: Blueprint) -> list[MissingPart]:
    """List all missing parts; empty for a database that has none of the tables.

    Only presence counts, because the SQL text differs with the releases that upgraded a file. An
    index or trigger is not listed if its table or a column that it names is missing, nor a trigger
    if its full-text table is missing: they are created together with these.
    """
    if not found.declarations.keys() & plan.tables.keys():
        return []
    columns = list(_columns(found, plan))
    return [*_tables(found, plan), *columns, *_owned(found, plan, columns)]


def _tables(found: Schema, plan: Blueprint) -> Iterator[MissingPart]:
    for name, table in plan.tables.items():
        if name not in found.declarations and not table.created_on_demand:
            yield MissingPart("table", name, name, plan.if_missing[name])
    for name in plan.views:
        if name not in found.views:
            yield MissingPart("view", name, name, plan.if_missing[name])
    for name in plan.virtual:
        if name not in found.virtual:
            yield MissingPart("full-text table", name, name, plan.if_missing[name])


def _columns(found: Schema, plan: Blueprint) -> Iterator[MissingPart]:
    for name, table in plan.tables.items():
        if found.declarations.get(name, table.sql) == table.sql:
            continue  # missing, or identical to the letter
        there = {column.lower() for column in found.tables.get(name, {})}  # SQLite ignores case
        for column in table.columns:
            if column.name.lower() not in there and column.name not in table.late:
                yield MissingPart("column", name, column.name, column.if_missing)


def _owned(found: Schema, plan: Blueprint, columns: list[MissingPart]) -> Iterator[MissingPart]:
    later = {
        name for v in plan.virtual if v not in found.virtual for name in triggers_feeding(plan, v)
    }
    lost = {(one.table, one.name) for one in columns}
    for kind, parts, there in (
        ("index", plan.indexes, found.indexes),
        ("trigger", plan.triggers, found.triggers),
    ):
        for name, sql in parts.items():
            table = plan.table_of[name]
            if name in there or name in later or table not in found.declarations:
                continue
            named = words_of(sql) if lost else frozenset()
            if not any(owner == table and column in named for owner, column in lost):
                yield MissingPart(kind, table, name, plan.if_missing[name])


def duplicates_query(index: str) -> str | None:
    """The query for values that occur twice, which prevents this index; None if it is not unique.

    Like the index, it ignores rows in which a column is NULL.
    """
    found = _UNIQUE.search(index)
    if found is None:
        return None
    columns = [column.strip() for column in found["columns"].split(",")]
    conditions = [f"{column} IS NOT NULL" for column in columns]
    conditions += [f"({found['where']})"] if found["where"] else []
    return (
        f"SELECT 1 FROM {found['table']} WHERE {' AND '.join(conditions)}"
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
