"""Return the schema of each database in each known Hermes release (the atlas)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from hermes_doctor.hermes.knowledge.releases import caches, load_knowledge
from hermes_doctor.sqlite.blueprint import Blueprint, Column, TableBlueprint

if TYPE_CHECKING:
    from hermes_doctor.sqlite.schema import Schema

DATABASES = (
    "state.db",
    "kanban.db",
    "response_store.db",
    "projects.db",
    "verification_evidence.db",
    "cron/executions.db",
    "gateway/discord_message_recovery.db",
    "memory_store.db",
)
"""The databases that the atlas knows, as they are named in a home."""

MOST_VERSIONS = 10_000
"""The highest plausible schema version; a larger number is damage."""
Release = tuple[int, ...]


def kind_of(database: str) -> str | None:
    """Return the atlas entry for a database of a home; every kanban board is a `kanban.db`."""
    if database.startswith("kanban/boards/") and database.endswith("/kanban.db"):
        return "kanban.db"
    return database if database in DATABASES else None


def releases(database: str) -> tuple[str, ...]:
    """Return the known releases that have this database, oldest first."""
    return tuple(_data(database)["releases"])


def newest(database: str) -> str:
    """Return the newest known release that has this database."""
    return releases(database)[-1]


@cache
def blueprint(database: str, release: str) -> Blueprint | None:
    """Return the schema of a database in a release; None if that release does not have it."""
    kind = kind_of(database)
    if kind is None or release not in releases(kind):
        return None
    return blueprint_from(_data(kind), kind, release)


def blueprint_from(data: Mapping[str, Any], kind: str, release: str) -> Blueprint:
    """Return the schema of a release from the content of a file."""
    parts = {
        group: dict(_of_release(data.get(group, {}), release))
        for group in ("tables", "virtual", "views", "indexes", "triggers")
    }
    owned = {**parts["indexes"], **parts["triggers"]}
    return Blueprint(
        database=kind,
        release=release,
        tables={name: _table(name, form) for name, form in parts["tables"].items()},
        virtual={name: form["sql"] for name, form in parts["virtual"].items()},
        indexes={name: form["sql"] for name, form in parts["indexes"].items()},
        triggers={name: form["sql"] for name, form in parts["triggers"].items()},
        version=data["releases"][release],
        table_of={name: form["table"] for name, form in owned.items()},
        if_missing={
            name: form["if_missing"] for group in parts.values() for name, form in group.items()
        },
        if_changed={name: form["if_changed"] for name, form in owned.items()},
        views={name: form["sql"] for name, form in parts["views"].items()},
        earlier={
            name: tuple(form["earlier"])
            for group in ("virtual", "triggers")
            for name, form in parts[group].items()
            if "earlier" in form
        },
    )


caches.append(blueprint.cache_clear)


def newest_blueprint(database: str) -> Blueprint:
    """Return the schema of a database in the newest known release; LookupError if unknown."""
    found = blueprint(database, newest(database))
    if found is None:
        raise LookupError(f"the atlas does not know {database}")
    return found


def expected_blueprint(
    database: str, installed: Release | None, schema: Schema
) -> Blueprint | None:
    """Return the schema that a database is compared with.

    It is the schema of the installed release if that is known. For a release between two known ones
    it is that of the earlier one. If no release is installed, it is that of the last release that
    worked on the file, judging by its columns. In the last two cases it is unknown whether Hermes
    would add a missing column. A release newer than the atlas is assumed to repair what the newest
    known one repairs.
    """
    kind = kind_of(database)
    if kind is None:
        return None
    known = {_numbers(release): release for release in releases(kind)}
    last = _level(kind, schema) if installed is None else installed
    below = [release for release in known if release <= last]
    if not below:
        return None
    best = blueprint(kind, known[max(below)])
    best = best.fitted(schema.virtual) if best else None
    certain = installed in known or is_newer_than_atlas(kind, installed)
    return best if certain or best is None else _uncertain(kind, best, schema.version)


def blueprint_at_or_below(database: str, installed: Release | None) -> Blueprint | None:
    """Return the schema of the newest known release that is not newer than the installed one."""
    kind = kind_of(database)
    known = (
        [r for r in releases(kind) if installed is None or _numbers(r) <= installed] if kind else []
    )
    return blueprint(kind, known[-1]) if kind and known else None


def richest_blueprint(database: str, installed: Release | None, schema: Schema) -> Blueprint | None:
    """Return the schema of the installed release, or of a newer one that worked on the file.

    No release removes anything from a schema, so the newer one fits all data in the file.
    """
    kind = kind_of(database)
    if kind is None:
        return None
    level = _level(kind, schema)
    best = blueprint_at_or_below(kind, max(level, installed) if installed else level)
    return best.fitted(schema.virtual) if best else None


def is_newer_than_atlas(database: str, installed: Release | None) -> bool:
    """Whether an installed Hermes is newer than the atlas."""
    kind = kind_of(database)
    return kind is not None and installed is not None and installed > _numbers(newest(kind))


def is_from_newer_release(database: str, schema: Schema) -> bool:
    """Whether a database was written by a Hermes that is newer than the atlas.

    A schema version in the database decides. In databases without one, SQLite's `user_version` and
    `application_id` decide, which no known release sets; a `user_version` that is too large is
    taken for a flipped bit.
    """
    kind = kind_of(database)
    if kind is None:
        return False
    versions = [version for version in _data(kind)["releases"].values() if version is not None]
    if versions and schema.version is not None:
        return bool(schema.version > max(versions))
    return 0 < schema.user_version <= MOST_VERSIONS or schema.application_id != 0


def _data(database: str) -> dict[str, Any]:
    return load_knowledge(f"schemas/{PurePosixPath(database).stem}")


def _of_release(group: Mapping[str, Any], release: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parts of one kind (tables, indexes, ...) in the form of this release."""
    for name, forms in group.items():
        for form in forms:
            if release in form["releases"]:
                yield name, form


def _table(name: str, form: Mapping[str, Any]) -> TableBlueprint:
    columns = tuple(Column(*facts) for facts in form["columns"])
    declared = tuple(column.name for column in columns)
    others = [tuple(declared[place] for place in order) for order in form["orders"]]
    lazy, unkeyed = form.get("lazy", False), form["if_unkeyed"]
    late = tuple(form.get("late", ()))
    return TableBlueprint(name, form["sql"], columns, (declared, *others), lazy, unkeyed, late)


def _uncertain(kind: str, known: Blueprint, version: int | None) -> Blueprint:
    """Set `if_missing` of columns to unknown; everything else every release creates again.

    If the database has a schema version, and every release with that version adds a column itself,
    that is known.
    """
    data = _data(kind)
    fits = {name for name, made in data["releases"].items() if version and made == version}
    fates: dict[tuple[str, str], set[str]] = {}
    for table, forms in data["tables"].items():
        here = [form for form in forms if fits & {*form["releases"]}]
        for column in (Column(*facts) for form in here for facts in form["columns"]):
            fates.setdefault((table, column.name), set()).add(column.if_missing)
    tables = {
        name: table._replace(
            columns=tuple(
                one
                if fates.get((name, one.name)) == {"healed"}
                else one._replace(if_missing="unknown")
                for one in table.columns
            )
        )
        for name, table in known.tables.items()
    }
    return known._replace(tables=tables)


def _level(database: str, schema: Schema) -> Release:
    """Return the newest release whose new columns the database has: at least that one used it."""
    levels = [_numbers(releases(database)[0])]
    for table, forms in _data(database)["tables"].items():
        sql = schema.declarations.get(table)
        exact = [form["releases"][0] for form in forms if form["sql"] == sql]
        if sql and exact:
            levels.append(_numbers(exact[0]))
        elif sql:
            since: dict[str, str] = {}
            for form in forms:  # oldest first
                for facts in form["columns"]:
                    since.setdefault(facts[0], form["releases"][0])
            there = schema.tables.get(table, {})
            levels += [_numbers(release) for column, release in since.items() if column in there]
    return max(levels)


def _numbers(release: str) -> Release:
    return tuple(int(part) for part in release.split("."))
