"""What a database lacks of what its release makes it of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.schema import Schema


class Missing(NamedTuple):
    """One part that is not there."""

    kind: str
    """column, table, full-text table, index or trigger."""
    table: str
    name: str
    if_missing: str
    """What Hermes does without it: healed, silent, crash, or unknown."""

    def __str__(self) -> str:
        return f"{self.table}.{self.name}" if self.kind == "column" else self.name


def missing(found: Schema, plan: Blueprint) -> list[Missing]:
    """All that is not there; nothing at all for a database that has none of the tables.

    Only presence counts, for the text of a declaration differs with the releases that a file
    went through. An index or a trigger goes with its table and with the columns that it names,
    a trigger also with the full-text table that it feeds: they come back together.
    """
    if not found.declarations.keys() & plan.tables.keys():
        return []
    columns = list(_columns(found, plan))
    return [*_tables(found, plan), *columns, *_owned(found, plan, columns)]


def _tables(found: Schema, plan: Blueprint) -> Iterator[Missing]:
    for name, table in plan.tables.items():
        if name not in found.declarations and not table.lazy:
            yield Missing("table", name, name, plan.if_missing[name])
    for name in plan.virtual:
        if name not in found.virtual:
            yield Missing("full-text table", name, name, plan.if_missing[name])


def _columns(found: Schema, plan: Blueprint) -> Iterator[Missing]:
    for name, table in plan.tables.items():
        if found.declarations.get(name, table.sql) == table.sql:
            continue  # not there at all, or there to the letter
        there = {column.lower() for column in found.tables.get(name, {})}  # as SQLite takes it
        for column in table.columns:
            if column.name.lower() not in there:
                yield Missing("column", name, column.name, column.if_missing)


def _owned(found: Schema, plan: Blueprint, columns: list[Missing]) -> Iterator[Missing]:
    later = {name for v in plan.virtual if v not in found.virtual for name in feeds(plan, v)}
    lost = {(one.table, one.name) for one in columns}
    for kind, parts, there in (
        ("index", plan.indexes, found.indexes),
        ("trigger", plan.triggers, found.triggers),
    ):
        for name, sql in parts.items():
            table = plan.table_of[name]
            if name in there or name in later or table not in found.declarations:
                continue
            named = words(sql) if lost else frozenset()
            if not any(owner == table and column in named for owner, column in lost):
                yield Missing(kind, table, name, plan.if_missing[name])


def words(sql: str) -> frozenset[str]:
    """The names, and whatever else is a word, in a statement."""
    return frozenset(re.findall(r"\w+", sql))


def feeds(plan: Blueprint, virtual: str) -> list[str]:
    """The triggers that keep a full-text table up to date."""
    return [name for name, sql in plan.triggers.items() if virtual in words(sql)]
