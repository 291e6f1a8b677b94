"""The schema that a Hermes release declares for a database, and how a missing column is added."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes_doctor.core.lazy import EMPTY, NamedTuple


class Column(NamedTuple):
    """One column as the release declares it."""

    name: str
    type: str
    notnull: bool = False
    default: str | None = None
    """The SQL text of the default value."""
    key: int = 0
    """Its position in the primary key, from 1; 0 if it is not part of the key."""
    if_missing: str = "unknown"
    """What the release does without it: healed, silent, crash, or unknown."""
    if_changed: Mapping[str, str] = EMPTY
    """What happens to rows when it is `bare` (without its default) or `loose` (also without its
    NOT NULL): silent or crash. Harmless changes are not listed."""


class TableBlueprint(NamedTuple):
    """One ordinary table of the schema; shadow tables of virtual tables are not listed."""

    name: str
    sql: str
    columns: tuple[Column, ...]
    orders: tuple[tuple[str, ...], ...] = ()
    """The column orders a file can have, depending on the releases that upgraded it."""
    created_on_demand: bool = False
    """Hermes creates it only when it is first needed, so a missing one is not a finding."""
    if_unkeyed: str = "harmless"
    """What the release does when the table has lost its primary key."""
    late: tuple[str, ...] = ()
    """The columns that Hermes adds only when they are first needed; likewise not a finding."""

    def column(self, name: str) -> Column | None:
        """Return the column with this name."""
        return next((column for column in self.columns if column.name == name), None)


class Blueprint(NamedTuple):
    """The schema of one database in one release."""

    database: str
    release: str
    tables: Mapping[str, TableBlueprint]
    virtual: Mapping[str, str] = EMPTY
    """The SQL of the full-text tables."""
    indexes: Mapping[str, str] = EMPTY
    triggers: Mapping[str, str] = EMPTY
    version: int | None = None
    """The number in its table `schema_version`, if it has that table."""
    table_of: Mapping[str, str] = EMPTY
    """The table that an index or a trigger belongs to."""
    if_missing: Mapping[str, str] = EMPTY
    """What the release does without a table, full-text table, index or trigger."""
    if_changed: Mapping[str, str] = EMPTY
    """What the release does if a unique index is not unique or a trigger differs."""
    views: Mapping[str, str] = EMPTY
    """The views from which full-text tables take their text."""
    earlier: Mapping[str, tuple[str, ...]] = EMPTY
    """The SQL of full-text tables and triggers that an older release created and this one keeps."""

    def fitted(self, virtual: Mapping[str, str]) -> Blueprint:
        """Return the schema for a file with these full-text tables: it may keep earlier ones."""
        kept = {
            name: sql
            for name, sql in virtual.items()
            if self.earlier.get(name)
            and spaced(sql) != spaced(self.virtual[name])
            and spaced(sql) in map(spaced, self.earlier[name])
        }
        return self.with_earlier(kept) if kept else self

    def with_earlier(self, kept: Mapping[str, str]) -> Blueprint:
        """Return the schema with these earlier full-text tables and their triggers."""
        triggers = {
            name: self.earlier[name][-1]
            if self.earlier.get(name) and any(_feeds(sql, virtual) for virtual in kept)
            else sql
            for name, sql in self.triggers.items()
        }
        views = {
            name: sql
            for name, sql in self.views.items()
            if not any(_feeds(self.virtual[virtual], name) for virtual in kept)
        }
        virtual = {name: kept.get(name, sql) for name, sql in self.virtual.items()}
        return self._replace(virtual=virtual, triggers=triggers, views=views)


def spaced(sql: str) -> str:
    """Return a statement with single spaces."""
    return " ".join(sql.split())


def _feeds(sql: str, name: str) -> bool:
    return name in re.findall(r"\w+", sql)


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
        alone = sum(bool(column.key) for column in table.columns) == 1
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
