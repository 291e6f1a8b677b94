"""What a declared column asks of the rows that have to do without it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Column, Table

_OWN = r"(?:^|[(,\n])\s*{name}\s[^,]*?\b(?:REFERENCES|UNIQUE|CHECK|COLLATE|GENERATED)\b"
_SHARED = r"\b(?:KEY|UNIQUE)\s*\([^)]*\b{name}\b"


def constrained(table: Table, column: Column) -> bool:
    """Whether more is declared of the column than type, NOT NULL and default."""
    return any(
        re.search(form.format(name=re.escape(column.name)), table.sql, re.IGNORECASE)
        for form in (_OWN, _SHARED)
    )


def appendable(table: Table, column: Column) -> bool:
    """Whether `ALTER TABLE ADD COLUMN` can declare it, whatever rows there are."""
    default = column.default
    return not (
        column.key
        or constrained(table, column)
        or (column.notnull and default is None)
        or (default is not None and (default.startswith("(") or "CURRENT_" in default.upper()))
    )


def stand_in(table: Table, column: Column) -> str | None:
    """The SQL of what the old rows get in the column; None where nothing can be made up.

    The default if there is one, else NULL, else an empty text or a zero. A numbered key is
    the number that SQLite gives each row; any other key, a link to another table and a value
    that must be unique or is checked are lost with the column.
    """
    if column.key:
        alone = sum(bool(one.key) for one in table.columns) == 1
        return "rowid" if alone and column.type.upper() == "INTEGER" else None
    if column.default is not None:
        return column.default
    if not column.notnull:
        return "NULL"
    if constrained(table, column):
        return None
    return "''" if column.type.upper() == "TEXT" else "0"


def declare(column: Column) -> str:
    """The column as `ADD COLUMN` takes it."""
    return (
        f"{quoted(column.name)} {column.type}"
        + (" NOT NULL" if column.notnull else "")
        + (f" DEFAULT {column.default}" if column.default is not None else "")
    )


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
