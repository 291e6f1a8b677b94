"""Map the values of a record to the columns of the new table."""

from __future__ import annotations

from operator import itemgetter

from hermes_doctor.sqlite.cells import LostValue, Row
from hermes_doctor.sqlite.salvage.catalog import Layout
from hermes_doctor.sqlite.salvage.target import LITERAL
from hermes_doctor.sqlite.table_rows import Value


class ColumnMapping:
    """Maps the records of one table to the columns of the new table."""

    def __init__(self, source: Layout, target: Layout) -> None:
        theirs = {column.name.lower(): place for place, column in enumerate(source.columns)}
        self.source = source
        self.columns: list[str] = []
        self.places: list[int] = []
        self.fill: dict[int, Value] = {}
        """By position: the value for NULL in a column of the new table that is NOT NULL."""
        self.default: dict[int, Value] = {}
        """By position: the value of a column that a shorter record does not contain."""
        self.made_up = 0
        """How many NULLs in NOT NULL columns were replaced by a placeholder."""
        self.guessed: list[str] = []
        """The columns of the last row that got a placeholder."""
        if target.rowid_column is None:
            self.columns.append("rowid")
            self.places.append(-1)
        for place, column in enumerate(target.columns):
            at = theirs.get(column.name.lower())
            if column.name in target.computed or (at is None and place != target.rowid_column):
                continue
            if place == target.rowid_column:
                at = -1
            elif column.notnull and at is not None:
                self.fill[len(self.columns)] = placeholder(column.type, column.default)
            self.columns.append(column.name)
            self.places.append(-1 if at is None else at)
        for place, column in enumerate(source.columns):
            self.default[place] = parse_literal(column.default)
        self.role = theirs.get("role")
        # The rowid is appended to the values, so its position is -1.
        self._pick = itemgetter(*self.places, *self.places[:1])

    def values(self, row: Row) -> list[Value]:
        """The values of a row for the new table; lost values are NULL."""
        values = row.values
        count = len(values)
        if row.whole and count == len(self.source.columns):
            picked: list[Value] = list(self._pick([*values, row.rowid]))
            picked.pop()
            return self._filled(picked)
        out: list[Value] = []
        for place in self.places:
            if place < 0:
                out.append(row.rowid)
            elif place < count:
                value = values[place]
                out.append(None if isinstance(value, LostValue) else value)
            else:
                out.append(self.default[place])
        return self._filled(out)

    def _filled(self, values: list[Value]) -> list[Value]:
        self.guessed.clear()
        for at, filling in self.fill.items():
            value = values[at]
            if value is None or value != value:  # SQLite stores "not a number" as NULL
                values[at] = filling
                self.made_up += 1
                self.guessed.append(self.columns[at])
        return values


def parse_literal(default: str | None) -> Value:
    """The value of a declared default, if it is a number or a string."""
    found = LITERAL.fullmatch((default or "").strip())
    if not found:
        return None
    word = found[0]
    if word.startswith("'"):
        return word[1:-1].replace("''", "'")
    return float(word) if "." in word else int(word)


def placeholder(kind: str, default: str | None) -> Value:
    """The placeholder for NULL in a NOT NULL column."""
    value = parse_literal(default)
    if value is not None:
        return value
    return 0 if "INT" in kind or kind in ("REAL", "FLOAT", "DOUBLE", "NUMERIC") else ""
