"""Compare a database's schema with the schema that the installed release expects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.sqlite import blueprint, schema_differences
from hermes_doctor.sqlite.schema_differences import ChangedPart, MissingPart

if TYPE_CHECKING:
    from hermes_doctor.hermes.installation.find import Installation
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.schema import Schema


class Structure(NamedTuple):
    """The differences between a database's schema and the expected one."""

    plan: Blueprint | None
    """The expected schema; None if the atlas has none for this database."""
    newer: bool
    """A Hermes newer than the atlas has changed the database, so it is not compared."""
    missing: tuple[MissingPart, ...] = ()
    changed: tuple[ChangedPart, ...] = ()
    """What is declared differently; empty if an unknown Hermes may have done it."""
    beyond: bool = False
    """The installed Hermes is newer than the atlas: only it knows what to add."""
    alien: bool = False
    """It has columns that no known release creates."""

    def can_be_made(self, part: MissingPart) -> bool:
        """Tell whether a missing part can be added: there is a value for existing rows."""
        table = self.plan.tables.get(part.table) if self.plan else None
        column = table.column(part.name) if table and part.kind == "column" else None
        if table is None or column is None:
            return True
        return blueprint.value_for_old_rows(table, column) is not None

    def copies_query(self, part: MissingPart) -> str | None:
        """The SQL that counts the rows of a missing table whose text a search index still has."""
        if self.plan is None or part.kind != "table":
            return None
        copies = schema_differences.search_copies(self.plan, part.table)
        return f"SELECT count(*) FROM {copies[0]}_content" if copies else None

    def duplicates_query(self, part: MissingPart) -> str | None:
        """The SQL that finds rows which prevent a missing unique index; None for other parts."""
        sql = self.plan.indexes.get(part.name) if self.plan else None
        return schema_differences.duplicates_query(sql) if sql else None


def compare(
    name: str,
    schema: Callable[[], Schema],
    installation: Callable[[], Installation | None],
) -> Structure:
    """Compare the schema of a home's database with the expected one."""
    kind = atlas.kind_of(name)
    if kind is None:
        return Structure(plan=None, newer=False)
    found = schema()
    if atlas.is_from_newer_release(kind, found):
        return Structure(plan=None, newer=True)
    installed = installation()
    release = installed.release if installed else None
    plan = atlas.expected_blueprint(kind, release, found)
    if plan is None:
        return Structure(plan=None, newer=False)
    missing = tuple(schema_differences.find_missing(found, plan))
    changed = tuple(schema_differences.find_changed(found, plan))
    beyond = atlas.is_newer_than_atlas(kind, release)
    alien = bool(missing or changed) and _alien(kind, found)
    if beyond or alien:
        changed = ()
    return Structure(plan, False, missing, changed, beyond, alien)


def _alien(kind: str, schema: Schema) -> bool:
    known = atlas.newest_blueprint(kind)
    return any(
        known.tables[table].column(column) is None
        for table, columns in schema.tables.items()
        if table in known.tables
        for column in columns
    )
