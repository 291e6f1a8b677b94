"""Find the databases of a home, and compare their schemas with those that the release expects."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.sqlite import blueprint, schema_differences
from hermes_doctor.sqlite.schema_differences import ChangedPart, MissingPart

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Blueprint
    from hermes_doctor.sqlite.schema import Schema


class DatabaseList(NamedTuple):
    """The existing databases, most important first, and those that could not be checked."""

    paths: tuple[Path, ...]
    unreadable: tuple[str, ...]
    missing: tuple[Path, ...] = ()
    """The paths at which there is no database."""


def find(home: Home) -> DatabaseList:
    """Check every path; one that cannot be checked does not hide the others."""
    paths: list[Path] = []
    missing: list[Path] = []
    doubts: list[str] = []
    for path in _places(home, doubts):
        try:
            (missing if snapshot(path).kind == "absent" else paths).append(path)
        except CouldNotLook as doubt:
            doubts.append(f"{home.name_of(path)}: {doubt}")
    return DatabaseList(tuple(paths), tuple(doubts), tuple(missing))


def _places(home: Home, doubts: list[str]) -> Iterator[Path]:
    try:
        yield from home.databases()
    except CouldNotLook as doubt:
        doubts.append(f"kanban/boards: {doubt}")


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(path: Path) -> str | None:
    """Return what is at a path instead of a file, e.g. a folder; symlinks are followed."""
    try:
        st = os.stat(path)
    except OSError as error:
        return "a symlink that leads back to itself" if error.errno == errno.ELOOP else None
    what = _KINDS.get(stat.S_IFMT(st.st_mode))
    return f"a symlink to {what}" if what and os.path.islink(path) else what


def time_share(database_list: DatabaseList, small_bytes: int, seconds: float) -> float:
    """Return how many seconds one database may take, because large ones share the time."""
    large = 0
    for path in database_list.paths:
        try:
            large += os.stat(path).st_size > small_bytes
        except OSError:
            continue
    return seconds / max(1, large)


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


def compare_schema(
    name: str,
    schema: Callable[[], Schema],
    release: Callable[[], tuple[int, ...] | None],
) -> Structure:
    """Compare the schema of a home's database with the expected one."""
    kind = atlas.kind_of(name)
    if kind is None:
        return Structure(plan=None, newer=False)
    found = schema()
    if atlas.is_from_newer_release(kind, found):
        return Structure(plan=None, newer=True)
    installed = release()
    plan = atlas.expected_blueprint(kind, installed, found)
    if plan is None:
        return Structure(plan=None, newer=False)
    missing = tuple(schema_differences.find_missing(found, plan))
    changed = tuple(schema_differences.find_changed(found, plan))
    beyond = atlas.is_newer_than_atlas(kind, installed)
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
