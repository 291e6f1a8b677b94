"""What a database of one Hermes release is made of: the form in which the atlas is read."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_doctor.lazy import NOTHING, NamedTuple


class Column(NamedTuple):
    """One column as that release declares it."""

    name: str
    type: str
    notnull: bool = False
    default: str | None = None
    """The SQL text of its default."""
    key: int = 0
    """Its place in the primary key, from 1; 0 when it is not part of it."""
    if_missing: str = "unknown"
    """What that release does without it: healed, silent, crash, or unknown."""
    if_changed: Mapping[str, str] = NOTHING
    """What becomes of rows when it is `bare` (without its default) or `loose` (also without its
    NOT NULL): silent or crash. What is harmless is not listed."""


class Table(NamedTuple):
    """One ordinary table; the shadow tables of a virtual one are not listed."""

    name: str
    sql: str
    columns: tuple[Column, ...]
    orders: tuple[tuple[str, ...], ...] = ()
    """The orders in which its columns can lie in a file, by the releases it went through."""
    lazy: bool = False
    """Made only when it is first needed, so that its absence means nothing."""
    if_unkeyed: str = "harmless"
    """What that release does when it has lost its primary key."""

    def column(self, name: str) -> Column | None:
        """The column of that name."""
        return next((one for one in self.columns if one.name == name), None)


class Blueprint(NamedTuple):
    """The schema of one database in one release."""

    database: str
    release: str
    tables: Mapping[str, Table]
    virtual: Mapping[str, str] = NOTHING
    """The SQL of the full-text tables."""
    indexes: Mapping[str, str] = NOTHING
    triggers: Mapping[str, str] = NOTHING
    version: int | None = None
    """What its `schema_version` says, where it keeps one."""
    table_of: Mapping[str, str] = NOTHING
    """The table that an index or a trigger belongs to."""
    if_missing: Mapping[str, str] = NOTHING
    """What that release does without a table, full-text table, index or trigger."""
    if_changed: Mapping[str, str] = NOTHING
    """What it does with a unique index that is not, or a trigger that does something else."""
