"""Repair references to lost rows: correct them, clear them, or create the missing row."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.salvage.account import FROM_INDEXES
from hermes_doctor.sqlite.salvage.complete_rows import RowCompleter
from hermes_doctor.sqlite.salvage.partial_rows import LEFT, LOST_VALUE
from hermes_doctor.sqlite.salvage.rebuild import PLACEHOLDERS, foreign_keys
from hermes_doctor.sqlite.salvage.shape import placeholder

ROUNDS = 4
"""The most passes: a created parent row may itself refer to a missing one."""


def repair_references(completer: RowCompleter) -> list[str]:
    """Repair every broken reference; return what was done, one sentence each."""
    told: list[str] = []
    for _ in range(ROUNDS):
        broken: dict[tuple[str, str], list[int]] = defaultdict(list)
        target = completer.target
        for name in (name for name in target.layouts if name not in target.extra):
            for table, rowid, parent, _ in target.dangling_rows(name):
                broken[table, parent].append(rowid)
        if not broken:
            break
        for (table, parent), rowids in broken.items():
            told += _settle(completer, table, parent, rowids)
    return told


def _settle(completer: RowCompleter, table: str, parent: str, rowids: list[int]) -> list[str]:
    told: list[str] = []
    for child, to, column in foreign_keys(completer.target, table):
        if to != parent:
            continue
        left = [r for r in rowids if not _holds(completer, table, child, parent, column, r)]
        fixed = _from_indexes(completer, table, child, parent, column, left)
        completer.tally(table).change(fixed, FROM_INDEXES)
        if fixed:
            told.append(
                f"Rows of {table} that refer to their {parent} again, by an index: {fixed:,}."
            )
        left = [r for r in left if not _holds(completer, table, child, parent, column, r)]
        if not left:
            continue
        if _loose(completer, table, child):
            completer.tally(table).change(len(left))
            for key in completer.target.keys(table, left):
                completer.tally(table).incomplete.add(LOST_VALUE, [child], key)
            completer.target.database.executemany(
                f"UPDATE {quote_name(table)} SET {quote_name(child)} = NULL WHERE rowid = ?",
                [(rowid,) for rowid in left],
            )
            told.append(f"Rows of {table} that referred to lost rows of {parent}: {len(left):,}.")
        else:
            told += _stubs(completer, table, child, parent, column, left)
    return told


def _loose(completer: RowCompleter, table: str, child: str) -> bool:
    """Whether the reference may be NULL."""
    columns = completer.target.layouts[table].columns
    return not any(column.notnull or column.key for column in columns if column.name == child)


def _holds(
    completer: RowCompleter, table: str, child: str, parent: str, column: str, rowid: int
) -> bool:
    return bool(
        completer.target.database.execute(
            f"SELECT 1 FROM {quote_name(table)} AS c JOIN {quote_name(parent)} AS p "
            f"ON p.{quote_name(column)} = c.{quote_name(child)} WHERE c.rowid = ?",
            (rowid,),
        ).fetchone()
    )


def _from_indexes(
    completer: RowCompleter, table: str, child: str, parent: str, column: str, rowids: list[int]
) -> int:
    """Correct references that are damaged in the row but still right in an index."""
    witness = completer.evidence(table)
    wanted = set(rowids)
    fixed = 0
    for index in witness.indexes:
        if child not in index.columns or not wanted:
            continue
        place = index.columns.index(child)
        for values, rowid in witness.entries(index):
            if rowid in wanted and isinstance(values[place], str | int):
                done = completer.target.database.execute(
                    f"UPDATE {quote_name(table)} SET {quote_name(child)} = ? "
                    f"WHERE rowid = ? AND EXISTS (SELECT 1 FROM {quote_name(parent)} "
                    f"WHERE {quote_name(column)} = ?)",
                    (values[place], rowid, values[place]),
                ).rowcount
                if done:
                    fixed += 1
                    wanted.discard(rowid)
    return fixed


def _stubs(
    completer: RowCompleter, table: str, child: str, parent: str, column: str, rowids: list[int]
) -> list[str]:
    """Create the rows that are referred to, from another file or with placeholder values."""
    database = completer.target.database
    layout = completer.target.layouts[parent]
    values = {
        database.execute(
            f"SELECT {quote_name(child)} FROM {quote_name(table)} WHERE rowid = ?",
            (rowid,),
        ).fetchone()[0]
        for rowid in rowids
    }
    damaged = completer.forest.tables[parent].damaged
    bare = 0
    told = []
    for value in values:
        found = completer.older_copies.row(layout, 0, {column: value}) if damaged else None
        if found is not None and completer.target.insert(
            parent, list(found.values), [list(found.values.values())]
        ):
            completer.tally(parent).restore(found.source)
            continue
        row: dict[str, Any] = {
            c.name: placeholder(c.type, c.default)
            for c in layout.columns
            if c.notnull and c.default is None
        }
        row |= {**PLACEHOLDERS.get(parent, {}), column: value}
        if completer.target.insert(parent, list(row), [list(row.values())]):
            bare += 1
            completer.tally(parent).incomplete.add(LEFT, [column], value)
    completer.tally(parent).partial += bare
    if bare:
        told.append(
            f"Rows of {parent} without content, created because others refer to them: {bare:,}."
        )
    return told
