"""Repair references to lost rows: correct them, clear them, or create the missing row."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.salvage.account import FROM_INDEXES, LEFT, LOST_VALUE
from hermes_doctor.sqlite.salvage.complete_rows import PLACEHOLDERS, RowCompleter
from hermes_doctor.sqlite.salvage.row_fit import placeholder

ROUNDS = 4
"""The most passes: a created parent row may itself refer to a missing one."""


def repair_references(completer: RowCompleter) -> list[str]:
    """Repair every broken reference; return what was done, one sentence each."""
    sentences: list[str] = []
    for _ in range(ROUNDS):
        broken: dict[tuple[str, str], list[int]] = defaultdict(list)
        target = completer.target
        for name in (name for name in target.layouts if name not in target.extra):
            for table, rowid, parent, _ in target.dangling_rows(name):
                broken[table, parent].append(rowid)
        if not broken:
            break
        for (table, parent), rowids in broken.items():
            for child, to, column in target.foreign_keys(table):
                if to == parent:
                    reference = _Reference(completer, table, child, parent, column)
                    sentences += reference.repair(rowids)
    return sentences


@dataclass
class _Reference:
    """A foreign key of a table: the column `child` refers to `column` of `parent`."""

    completer: RowCompleter
    table: str
    child: str
    parent: str
    column: str

    def __post_init__(self) -> None:
        self.target = self.completer.target
        self.database = self.target.database

    def repair(self, rowids: list[int]) -> list[str]:
        """Repair the reference in these rows; return what was done, one sentence each."""
        sentences: list[str] = []
        fixed = self._from_indexes([rowid for rowid in rowids if not self._holds(rowid)])
        tally = self.completer.tally(self.table)
        tally.change(fixed, FROM_INDEXES)
        if fixed:
            sentences.append(
                f"Rows of {self.table} that refer to their {self.parent} again, by an index: "
                f"{fixed:,}."
            )
        left = [rowid for rowid in rowids if not self._holds(rowid)]
        if not left:
            return sentences
        columns = self.target.layouts[self.table].columns
        if any(column.notnull or column.key for column in columns if column.name == self.child):
            return sentences + self._create_parents(left)
        tally.change(len(left))
        for key in self.target.keys(self.table, left):
            tally.incomplete.add(LOST_VALUE, [self.child], key)
        self.database.executemany(
            f"UPDATE {quote_name(self.table)} SET {quote_name(self.child)} = NULL WHERE rowid = ?",
            [(rowid,) for rowid in left],
        )
        return [
            *sentences,
            f"Rows of {self.table} that referred to lost rows of {self.parent}: {len(left):,}.",
        ]

    def _holds(self, rowid: int) -> bool:
        sql = (
            f"SELECT 1 FROM {quote_name(self.table)} AS c JOIN {quote_name(self.parent)} AS p "
            f"ON p.{quote_name(self.column)} = c.{quote_name(self.child)} WHERE c.rowid = ?"
        )
        return self.database.execute(sql, (rowid,)).fetchone() is not None

    def _from_indexes(self, rowids: list[int]) -> int:
        """Correct references that are damaged in the row but still right in an index."""
        witness = self.completer.forest.evidence(self.table)
        wanted = set(rowids)
        correct = (
            f"UPDATE {quote_name(self.table)} SET {quote_name(self.child)} = ? "
            f"WHERE rowid = ? AND EXISTS (SELECT 1 FROM {quote_name(self.parent)} "
            f"WHERE {quote_name(self.column)} = ?)"
        )
        for index in witness.indexes:
            if self.child not in index.columns or not wanted:
                continue
            place = index.columns.index(self.child)
            for values, rowid in witness.entries(index):
                key = values[place]
                if rowid not in wanted or not isinstance(key, str | int):
                    continue
                if self.database.execute(correct, (key, rowid, key)).rowcount:
                    wanted.discard(rowid)
        return len(set(rowids)) - len(wanted)

    def _create_parents(self, rowids: list[int]) -> list[str]:
        """Create the rows that are referred to, from another file or with placeholder values."""
        layout = self.target.layouts[self.parent]
        tally = self.completer.tally(self.parent)
        find = f"SELECT {quote_name(self.child)} FROM {quote_name(self.table)} WHERE rowid = ?"
        keys = {self.database.execute(find, (rowid,)).fetchone()[0] for rowid in rowids}
        damaged = self.completer.forest.tables[self.parent].damaged
        bare = 0
        for key in keys:
            known = {self.column: key}
            older_row = self.completer.older_copies.row(layout, 0, known) if damaged else None
            if older_row is not None:
                row, source = older_row
                if self.target.insert(self.parent, list(row), [list(row.values())]):
                    tally.restore(source)
                    continue
            row = {
                column.name: placeholder(column.type, column.default)
                for column in layout.columns
                if column.notnull and column.default is None
            }
            row |= {**PLACEHOLDERS.get(self.parent, {}), **known}
            if self.target.insert(self.parent, list(row), [list(row.values())]):
                bare += 1
                tally.incomplete.add(LEFT, [self.column], key)
        tally.partial += bare
        if not bare:
            return []
        return [
            f"Rows of {self.parent} without content, created because others refer to them: "
            f"{bare:,}."
        ]
