"""Decide how a missing column can be added, and which value existing rows get in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Column, TableBlueprint

_OWN = r"(?:^|[(,\n])\s*{name}\s[^,]*?\b(?:REFERENCES|UNIQUE|CHECK|COLLATE|GENERATED)\b"
_SHARED = r"\b(?:KEY|UNIQUE)\s*\([^)]*\b{name}\b"
FORMER_NAMES = {
    ("tasks", "consecutive_failures"): ("spawn_failures", "coalesce(spawn_failures, 0)"),
    ("tasks", "last_failure_error"): ("last_spawn_error", "last_spawn_error"),
}
"""Columns that had another name before 0.13: that name, and the SQL of the value to copy from it.

Every release copies it when it adds the column itself, and never later."""


def has_constraints(table: TableBlueprint, column: Column) -> bool:
    """Whether the column has constraints other than NOT NULL and a default."""
    return any(
        re.search(form.format(name=re.escape(column.name)), table.sql, re.IGNORECASE)
        for form in (_OWN, _SHARED)
    )


def can_append(table: TableBlueprint, column: Column) -> bool:
    """Whether `ALTER TABLE ADD COLUMN` can add it, whatever rows exist."""
    default = column.default
    return not (
        column.key
        or has_constraints(table, column)
        or (column.notnull and default is None)
        or (default is not None and (default.startswith("(") or "CURRENT_" in default.upper()))
    )


def value_for_old_rows(table: TableBlueprint, column: Column) -> str | None:
    """The SQL of the value that existing rows get in the column; None if there is no safe value.

    It is the default if there is one, else NULL, else an empty text or zero. An integer primary
    key gets the rowid. Any other key, a reference to another table and a unique or checked value
    are lost with the column.
    """
    if column.key:
        alone = sum(bool(one.key) for one in table.columns) == 1
        return "rowid" if alone and column.type.upper() == "INTEGER" else None
    if column.default is not None:
        return column.default
    if not column.notnull:
        return "NULL"
    if has_constraints(table, column):
        return None
    return "''" if column.type.upper() == "TEXT" else "0"


def column_definition(column: Column) -> str:
    """The column definition for `ADD COLUMN`."""
    return (
        f"{quote_name(column.name)} {column.type}"
        + (" NOT NULL" if column.notnull else "")
        + (f" DEFAULT {column.default}" if column.default is not None else "")
    )


def quote_name(name: str) -> str:
    """Quote an identifier for SQL."""
    return '"' + name.replace('"', '""') + '"'
