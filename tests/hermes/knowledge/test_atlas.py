"""The atlas: complete, consistent, and chosen from with care."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.core.home import DATABASES
from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.operations.learning.lessons import schema_uses
from hermes_doctor.sqlite import completion, schema, schema_differences
from hermes_doctor.sqlite.blueprint import Blueprint
from tools import add_release, releases

SINCE = {
    "projects.db": "0.18.0",
    "verification_evidence.db": "0.18.0",
    "cron/executions.db": "0.19.0",
    "gateway/discord_message_recovery.db": "0.19.0",
}
"""The databases that did not come with the first release."""
KNOWN = tuple(add_release.known())
EVERY = [(database, version) for database in atlas.DATABASES for version in KNOWN]


def plan_of(database: str, version: str) -> Blueprint:
    """The blueprint that must be there."""
    plan = atlas.blueprint(database, version)
    assert plan, f"{version} has a {database}"
    return plan


def test_databases() -> None:
    """Every database of a home is in the atlas, but for the one that no lesson can make."""
    assert set(atlas.DATABASES) == set(DATABASES) - {"retaindb_queue.db"}
    assert tuple(schema_uses.USES) == atlas.DATABASES


@pytest.mark.parametrize("database", atlas.DATABASES)
def test_releases(database: str) -> None:
    """Every known release, from the one on that brought the database."""
    first = KNOWN.index(SINCE.get(database, KNOWN[0]))

    assert {*releases.ALL} <= {*KNOWN}
    assert atlas.releases(database) == KNOWN[first:]
    assert all(atlas.blueprint(database, version) is None for version in KNOWN[:first])


@pytest.mark.parametrize(("database", "version"), EVERY)
def test_blueprint(database: str, version: str, tmp_path: Path) -> None:
    """A database made by it lacks nothing, and each of its parts says what its loss does."""
    plan = atlas.blueprint(database, version)
    if plan is None:
        assert version not in atlas.releases(database)
        return

    with contextlib.closing(completion.create(tmp_path / "a.db", plan)) as db, db:
        for table in plan.tables.values():
            if table.created_on_demand:
                db.execute(table.sql)

    found = schema.read(tmp_path / "a.db")
    assert schema_differences.find_missing(found, plan)[:1] in ([], [_lazy_index(plan)])
    assert found.version == plan.version
    assert not atlas.is_from_newer_release(database, found)
    for name, table in plan.tables.items():
        declared = [(c.name, c.type, c.notnull, c.default, c.key) for c in table.columns]
        there = found.tables[name].values()
        assert [(c.name, c.type, c.notnull, c.default, c.key) for c in there] == declared
        assert table.orders[0] == tuple(column.name for column in table.columns)
        assert all(sorted(order) == sorted(table.orders[0]) for order in table.orders)
        assert {column.if_missing for column in table.columns} <= {"healed", "silent", "crash"}
    parts = {*plan.tables, *plan.virtual, *plan.views, *plan.indexes, *plan.triggers}
    assert plan.if_missing.keys() == parts
    assert set(plan.if_missing.values()) <= {"healed", "silent", "crash"}
    assert plan.table_of.keys() == {*plan.indexes, *plan.triggers}


def _lazy_index(plan: Blueprint) -> schema_differences.MissingPart | None:
    """The first index of a table that is made only when needed: the test made it without."""
    for name in plan.indexes:
        if plan.tables[plan.table_of[name]].created_on_demand:
            return schema_differences.MissingPart(
                "index", plan.table_of[name], name, plan.if_missing[name]
            )
    return None


def test_known_facts() -> None:
    """Some of what was found out by hand, as a check on the lesson."""
    state = plan_of("state.db", "0.19.0")
    assert state.version == 22
    assert {table.name for table in state.tables.values() if table.created_on_demand} == {
        "telegram_dm_topic_mode",
        "telegram_dm_topic_bindings",
        "delivery_obligations",
    }
    fates = {c.name: c.if_missing for c in state.tables["messages"].columns}
    assert (fates["role"], fates["content"], fates["session_id"]) == ("crash", "healed", "crash")
    assert len(state.tables["messages"].orders) == 5
    assert {len(plan_of("state.db", v).tables["sessions"].orders) for v in releases.ALL[:5]} == {1}
    for version in releases.ALL:
        healed = plan_of("state.db", version).if_missing["messages_fts_insert"] == "healed"
        assert healed == (version >= "0.16"), "older releases never make a trigger anew"


def test_boards_are_kanban() -> None:
    """A board beside the default one is judged as it is; a stranger's file is not judged."""
    assert atlas.kind_of("kanban/boards/team/kanban.db") == "kanban.db"
    assert atlas.blueprint("kanban/boards/team/kanban.db", "0.19.0") == plan_of(
        "kanban.db", "0.19.0"
    )
    assert atlas.kind_of("retaindb_queue.db") is None
    assert atlas.blueprint("retaindb_queue.db", "0.19.0") is None


def made(path: Path, database: str, version: str, *more: str) -> schema.Schema:
    """The schema of a fresh database of a release after some statements."""
    with contextlib.closing(completion.create(path, plan_of(database, version))) as db, db:
        for statement in more:
            db.execute(statement)
    return schema.read(path)


def test_expected_of_a_known_release(tmp_path: Path) -> None:
    """The installed release decides, whoever made the file."""
    found = made(tmp_path / "a.db", "state.db", "0.13.0")

    assert atlas.expected_blueprint("state.db", (0, 19, 0), found) == plan_of("state.db", "0.19.0")
    assert atlas.expected_blueprint("state.db", (0, 13, 0), found) == plan_of("state.db", "0.13.0")
    assert atlas.expected_blueprint("projects.db", (0, 13, 0), found) is None
    assert atlas.expected_blueprint("other.db", (0, 13, 0), found) is None


def test_expected_between_releases(tmp_path: Path) -> None:
    """The release before it, with the fate of columns unknown."""
    found = made(tmp_path / "a.db", "kanban.db", "0.13.0")

    plan = atlas.expected_blueprint("kanban.db", (0, 15, 7), found)

    assert plan
    assert plan.release == "0.15.2"
    assert {c.if_missing for t in plan.tables.values() for c in t.columns} == {"unknown"}
    assert plan.if_missing == plan_of("kanban.db", "0.15.2").if_missing


def test_expected_beyond_the_atlas(tmp_path: Path) -> None:
    """The newest known release, and what that heals a newer one is believed to heal."""
    found = made(tmp_path / "a.db", "kanban.db", "0.13.0")

    assert atlas.expected_blueprint("kanban.db", (1, 0), found) == atlas.newest_blueprint(
        "kanban.db"
    )
    assert atlas.is_newer_than_atlas("kanban.db", (1, 0))
    assert not atlas.is_newer_than_atlas("kanban.db", (0, 19, 0))
    assert not atlas.is_newer_than_atlas("kanban.db", None)
    assert atlas.expected_blueprint("kanban.db", (0, 12), found) is None


@pytest.mark.parametrize("version", releases.ALL)
def test_expected_without_an_installation(tmp_path: Path, version: str) -> None:
    """The file tells which release worked on it last, also when its text is like nobody's."""
    same = tmp_path / "same.db"
    found = made(same, "state.db", version)
    added = made(tmp_path / "added.db", "state.db", version, "ALTER TABLE messages ADD own TEXT")

    for one in (found, added):
        plan = atlas.expected_blueprint("state.db", None, one)
        assert plan
        assert plan.tables.keys() == plan_of("state.db", version).tables.keys()
        assert schema_differences.find_missing(one, plan) == []


@pytest.mark.parametrize(
    ("statement", "newer"),
    [
        ("UPDATE schema_version SET version = 99", True),
        ("UPDATE schema_version SET version = 'x'", False),
        ("DELETE FROM schema_version", False),
        ("PRAGMA application_id = 1", False),
        ("PRAGMA user_version = 1", False),
        ("CREATE TABLE notes (a)", False),
    ],
)
def test_newer(tmp_path: Path, statement: str, newer: bool) -> None:
    """A schema version beyond the known ones; where there is one, no other mark counts."""
    found = made(tmp_path / "a.db", "state.db", "0.19.0", statement)

    assert atlas.is_from_newer_release("state.db", found) is newer
    assert not atlas.is_from_newer_release("retaindb_queue.db", found)


@pytest.mark.parametrize(
    ("statement", "newer"),
    [
        ("PRAGMA application_id = 1", True),
        ("PRAGMA user_version = 1", True),
        (f"PRAGMA user_version = {1 << 29}", False),
    ],
)
def test_newer_without_a_version(tmp_path: Path, statement: str, newer: bool) -> None:
    """A mark that no known release sets, unless it is one that no release could set."""
    found = made(tmp_path / "a.db", "kanban.db", "0.19.0", statement)

    assert atlas.is_from_newer_release("kanban.db", found) is newer


def test_a_damaged_version_does_not_hide_the_schema(tmp_path: Path) -> None:
    """The page of schema_version is zeroed: the rest can still be judged."""
    path = tmp_path / "a.db"
    made(path, "state.db", "0.19.0")
    with contextlib.closing(sqlite3.connect(path)) as db:
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'schema_version'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\0" * 4096)

    found = schema.read(path)

    assert found.version is None
    assert schema_differences.find_missing(found, plan_of("state.db", "0.19.0")) == []
