"""complete-schema: the parts as declared, and every row as it was."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.operations.learning.lessons import schema_changes
from hermes_doctor.sqlite import blueprint, completion, schema, schema_differences
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.schema_differences import ChangedPart, MissingPart
from tests.helpers import support
from tests.helpers.fix_contract import Planted

KANBAN = support.plan("kanban.db")
STATE = support.plan("state.db")


def addable(plan: Blueprint) -> list[tuple[str, str]]:
    """The columns that can be given back to a table with rows."""
    return [
        (table.name, column.name)
        for table in plan.tables.values()
        for column in table.columns
        if len(table.columns) > 1 and blueprint.value_for_old_rows(table, column) is not None
    ]


def facts(path: Path, plan: Blueprint) -> dict[str, Any]:
    """All that is declared: columns by name, links, indexes and triggers."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return {
            table: (
                {row[1]: row[2:] for row in db.execute(f"PRAGMA table_xinfo({table})")},
                sorted(row[2:] for row in db.execute(f"PRAGMA foreign_key_list({table})")),
                sorted(row[1] for row in db.execute(f"PRAGMA index_list({table})")),
                db.execute(
                    "SELECT name, sql FROM sqlite_master WHERE type='trigger' AND tbl_name=?"
                    " ORDER BY name",
                    (table,),
                ).fetchall(),
            )
            for table in plan.tables
        }


def rows(path: Path, plan: Blueprint, *without: tuple[str, str]) -> dict[str, list[Any]]:
    """Every row of every table, some columns left out."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return {
            name: db.execute(
                "SELECT "
                + ", ".join(c.name for c in table.columns if (name, c.name) not in without)
                + f" FROM {name} ORDER BY rowid"
            ).fetchall()
            for name, table in plan.tables.items()
        }


def sound(path: Path) -> None:
    """SQLite has nothing to say against it."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def made(path: Path, plan: Blueprint) -> Path:
    """A database with every table, lazy ones too, and a row in each."""
    with contextlib.closing(completion.create(path, plan)) as db:
        for name, table in plan.tables.items():
            if table.created_on_demand:
                db.execute(table.sql)
                for index, sql in plan.indexes.items():
                    if plan.table_of[index] == name:
                        db.execute(sql)
        if "executions" in plan.tables:  # it checks what it is given
            db.execute(
                "INSERT INTO executions (id, job_id, source, process_id, pid, status, claimed_at)"
                " VALUES ('e', 'j', 'cron', 'p', 1, 'claimed', '1')"
            )
        schema_changes.fill(db)
    return path


def lacking(path: Path, plan: Blueprint) -> list[MissingPart]:
    """What the database lacks now."""
    return schema_differences.find_missing(schema.read(path), plan)


def lose(path: Path, *columns: tuple[str, str]) -> None:
    """Take columns away."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table, column in columns:
            schema_changes.take_away(db, table, column)


# -- through the command -------------------------------------------------------------------


def test_cures_and_undoes(home: Path) -> None:
    """The column is as declared, the row is there, twice equals once, undo gives the bytes back."""
    whole = facts(home / "kanban.db", KANBAN)
    lose(home / "kanban.db", ("tasks", "session_id"))
    sick = support.contents(home)

    done = support.doctor("fix", "KANBAN-SCHEMA", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert facts(home / "kanban.db", KANBAN) == whole
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db:
        assert db.execute("SELECT id, title, session_id FROM tasks").fetchall() == [
            ("t1", "a task", None)
        ]
    sound(home / "kanban.db")
    cured = support.contents(home)
    again = support.doctor("fix", "--apply", "--json", "--home", home)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_history(home: Path) -> None:
    """A column of the messages that needs its table rebuilt: every message and the search stay."""
    path = home / "state.db"
    whole, before = facts(path, STATE), rows_of_history(path)
    lose(path, ("messages", "role"), ("sessions", "started_at"))
    sick = support.contents(home)

    done = support.doctor("fix", "DB-SCHEMA", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert facts(path, STATE) == whole
    assert rows_of_history(path) == before
    sound(path)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def rows_of_history(path: Path) -> list[Any]:
    """Messages with their numbers, and what a search finds."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [
            db.execute("SELECT id, session_id, content FROM messages").fetchall(),
            db.execute("SELECT rowid FROM messages_fts('m7 OR m49')").fetchall(),
            db.execute("SELECT seq FROM sqlite_sequence WHERE name='messages'").fetchall(),
        ]


def test_boards(home: Path) -> None:
    """Two boards are cured in one run and undone in one."""
    board = support.board(
        home / "kanban" / "boards" / "team" / "kanban.db", (("tasks", "session_id"),)
    )
    lose(home / "kanban.db", ("tasks", "session_id"))
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes, len(done.json["repair"]["runs"])) == (0, [], 1)
    assert "session_id" in schema.read(board).tables["tasks"]
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_a_view_that_does_not_hold(home: Path) -> None:
    """A view of something that is gone neither stops the repair nor is lost by it."""
    lose(home / "kanban.db", ("tasks", "title"))
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db, db:
        db.execute("CREATE VIEW broken AS SELECT x FROM nowhere")

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db:
        assert db.execute("SELECT name FROM sqlite_master WHERE type='view'").fetchall()


# -- part by part --------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("database", atlas.DATABASES)
def test_every_column(database: str, tmp_path: Path) -> None:
    """Each column that can be added comes back exactly as declared; all other values stay."""
    plan = support.plan(database)
    whole = made(tmp_path / "whole.db", plan)
    for table, column in addable(plan):
        path = tmp_path / f"{table}-{column}.db"
        path.write_bytes(whole.read_bytes())
        lose(path, (table, column))
        missing = lacking(path, plan)
        assert MissingPart("column", table, column, missing[0].if_missing) in missing

        completion.complete(path, plan, missing)

        assert lacking(path, plan) == []
        assert facts(path, plan) == facts(whole, plan)
        assert rows(path, plan, (table, column)) == rows(whole, plan, (table, column))
        sound(path)
        path.unlink()


@pytest.mark.sampled
@pytest.mark.parametrize("database", ["state.db", "kanban.db"])
@pytest.mark.parametrize("version", ["0.13.0", "0.16.0", "0.19.0"])
def test_all_columns_at_once(database: str, version: str, tmp_path: Path) -> None:
    """Everything that can be lost is lost, and all of it comes back."""
    plan = atlas.blueprint(database, version)
    assert plan
    whole = made(tmp_path / "whole.db", plan)
    path = made(tmp_path / "a.db", plan)
    columns = [one for one in addable(plan) if not _key(plan, *one)]
    for table in plan.tables.values():  # SQLite keeps at least one column
        if all((table.name, column.name) in columns for column in table.columns):
            columns.remove((table.name, table.columns[0].name))
    lose(path, *columns)

    completion.complete(path, plan, lacking(path, plan))

    assert lacking(path, plan) == []
    assert facts(path, plan) == facts(whole, plan)
    sound(path)


def _key(plan: Blueprint, table: str, name: str) -> bool:
    column = plan.tables[table].column(name)
    return column is not None and column.key > 0


def test_a_rebuild_keeps_the_rest(tmp_path: Path) -> None:
    """Unknown columns, triggers, indexes, links, and the number that the next row gets."""
    path = made(tmp_path / "a.db", STATE)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE messages ADD COLUMN own TEXT NOT NULL DEFAULT 'mine'")
        db.execute("CREATE INDEX own_index ON messages (own)")
        db.execute("CREATE TRIGGER own_trigger AFTER DELETE ON messages BEGIN SELECT 1; END")
        db.execute("UPDATE sqlite_sequence SET seq = 900 WHERE name = 'messages'")
        db.execute("UPDATE messages SET content = char(0) || 'json:[]', own = 'kept'")
    before = facts(path, STATE)
    lose(path, ("messages", "role"))

    completion.complete(path, STATE, lacking(path, STATE))

    assert facts(path, STATE) == before
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        assert db.execute("SELECT own, content FROM messages").fetchall() == [("kept", "\0json:[]")]
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " SELECT id, 'user', 'walrus', 1 FROM sessions"
        )
        assert db.execute("SELECT max(id) FROM messages").fetchone() == (901,)
        assert db.execute("SELECT rowid FROM messages_fts('walrus')").fetchall() == [(901,)]
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(
                "INSERT INTO messages (session_id, role, timestamp) VALUES ('none', 'user', 1)"
            )


def test_the_next_number_of_an_empty_table(tmp_path: Path) -> None:
    """A table whose rows are all deleted still does not give their numbers out again."""
    path = support.history(tmp_path / "state.db")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM messages")
    lose(path, ("messages", "role"))

    completion.complete(path, STATE, lacking(path, STATE))

    with contextlib.closing(sqlite3.connect(path)) as db, db:
        support.say(db, "next")
        assert db.execute("SELECT id FROM messages").fetchall() == [(51,)]


def test_numbered_key(tmp_path: Path) -> None:
    """The key by which SQLite numbers the rows comes back with the numbers."""
    path = tmp_path / "state.db"
    support.history(path)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM messages WHERE id < 5")
    before = rows_of_history(path)
    lose(path, ("messages", "id"))

    completion.complete(path, STATE, lacking(path, STATE))

    assert rows_of_history(path)[:2] == before[:2]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "column", [("sessions", "id"), ("messages", "session_id"), ("state_meta", "key")]
)
def test_what_cannot_be_made_up(home: Path, column: tuple[str, str]) -> None:
    """A key or a link to another table is told of, not offered; and never made up."""
    lose(home / "state.db", column)
    sick = support.contents(home)
    found = support.finding(support.check(home), "DB-SCHEMA")
    assert (found["severity"], found["fix"]) == ("error", None)
    assert "cannot be created again" in found["next"]

    with pytest.raises(CannotFix):
        completion.complete(home / "state.db", STATE, lacking(home / "state.db", STATE))

    assert {name: sick[name] for name in sick} == support.contents(home)


def test_duplicates_under_a_lost_index(home: Path) -> None:
    """Titles that a unique index would refuse do not stop the column from coming back."""
    path = home / "state.db"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP INDEX idx_sessions_title_unique")
        for name in ("a", "b"):
            db.execute(
                "INSERT INTO sessions (id, source, started_at, title) VALUES (?, 'cli', 1, 'same')",
                (name,),
            )
    lose(path, ("sessions", "source"))
    wanted = [one for one in lacking(path, STATE) if one.kind == "column"]

    completion.complete(path, STATE, wanted)

    assert [str(one) for one in lacking(path, STATE)] == ["idx_sessions_title_unique"]


def test_text_that_is_left_only_in_the_index(tmp_path: Path) -> None:
    """Where the messages lost their text, the copy in the full-text table is not touched."""
    path = support.history(tmp_path / "state.db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        before = db.execute("SELECT * FROM messages_fts_content").fetchall()
    lose(path, ("messages", "content"))

    completion.complete(path, STATE, lacking(path, STATE))

    assert lacking(path, STATE) == []
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT * FROM messages_fts_content").fetchall() == before


def test_a_column_that_is_left_to_hermes(tmp_path: Path) -> None:
    """Triggers that need it are left to Hermes as well."""
    path = support.history(tmp_path / "state.db")
    lose(path, ("messages", "content"), ("messages", "role"))
    wanted = [one for one in lacking(path, STATE) if one.if_missing != "healed"]
    assert [str(one) for one in wanted] == ["messages.role"]

    completion.complete(path, STATE, wanted)

    assert [str(one) for one in lacking(path, STATE)] == ["messages.content"]


@pytest.mark.parametrize("part", ["tasks", "task_events"])
def test_table(part: str, tmp_path: Path) -> None:
    """A table comes back empty, with its indexes."""
    path = made(tmp_path / "a.db", KANBAN)
    whole = facts(path, KANBAN)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"DROP TABLE {part}")

    completion.complete(path, KANBAN, lacking(path, KANBAN))

    assert facts(path, KANBAN) == whole


# -- full text -----------------------------------------------------------------------------

OLD = atlas.blueprint("state.db", "0.13.0")
SEARCH = "SELECT rowid FROM {table}('walrus') ORDER BY rowid"


@pytest.mark.parametrize("trigger", sorted(OLD.triggers) if OLD else [])
def test_trigger(trigger: str, tmp_path: Path) -> None:
    """A trigger that 0.13.0 never makes anew, and with it what was not indexed meanwhile."""
    assert OLD
    path = support.history(tmp_path / "state.db", "0.13.0")
    whole = facts(path, OLD)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"DROP TRIGGER {trigger}")
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " VALUES ('s1', 'user', 'a walrus', 2)"
        )
        db.execute("UPDATE messages SET content = 'walrus of old' WHERE id = 3")
        db.execute("DELETE FROM messages WHERE id = 4")
    [missing] = lacking(path, OLD)
    assert missing == MissingPart("trigger", "messages", trigger, "silent")

    completion.complete(path, OLD, [missing])

    assert facts(path, OLD) == whole
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table in OLD.virtual:
            if trigger.rpartition("_")[0] == table:
                assert db.execute(SEARCH.format(table=table)).fetchall() == [(3,), (51,)]
                assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (50,)
                db.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")


def test_full_text_table_of_another_tables_content(tmp_path: Path) -> None:
    """The memory's index keeps no text of its own; it is rebuilt from the facts."""
    plan = support.plan("memory_store.db")
    path = tmp_path / "memory_store.db"
    with contextlib.closing(completion.create(path, plan)) as db, db:
        db.execute("INSERT INTO facts (content) VALUES ('a walrus sings')")
        db.execute("DROP TABLE facts_fts")
    [missing] = lacking(path, plan)
    assert missing == MissingPart("full-text table", "facts_fts", "facts_fts", "crash")

    completion.complete(path, plan, [missing])

    with contextlib.closing(sqlite3.connect(path)) as db, db:
        assert db.execute(SEARCH.format(table="facts_fts")).fetchall() == [(1,)]
        db.execute("UPDATE facts SET content = 'a walrus' WHERE fact_id = 1")
    assert lacking(path, plan) == []


def test_texts_of_a_lost_column(tmp_path: Path) -> None:
    """The search index has the last copy of them and keeps it; new rows are indexed, too."""
    path = support.history(tmp_path / "state.db")
    lose(path, ("messages", "content"))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        known = db.execute("SELECT c0 FROM messages_fts_content ORDER BY id").fetchall()
        db.execute(
            "INSERT INTO messages (session_id, role, tool_name, timestamp)"
            " VALUES ('s1', 'tool', 'walrus', 2)"
        )
        db.execute("DELETE FROM messages WHERE id = 4")

    completion.complete(path, STATE, lacking(path, STATE))

    assert lacking(path, STATE) == []
    del known[3]
    with contextlib.closing(sqlite3.connect(path)) as db:
        kept = db.execute("SELECT c0 FROM messages_fts_content ORDER BY id").fetchall()
        assert kept[:-1] == known and len(known) == 49
        for table in STATE.virtual:
            assert db.execute(SEARCH.format(table=table)).fetchall() == [(51,)]


@pytest.mark.parametrize("rebuilt", [False, True], ids=["appended", "rebuilt"])
def test_values_under_a_former_name(tmp_path: Path, rebuilt: bool) -> None:
    """Boards from before 0.13 keep two values: Hermes copies them only when it adds the column."""
    path = made(tmp_path / "kanban.db", KANBAN)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE tasks ADD COLUMN spawn_failures INTEGER")
        db.execute("ALTER TABLE tasks ADD COLUMN last_spawn_error TEXT")
        db.execute("UPDATE tasks SET spawn_failures = 3, last_spawn_error = 'no such profile'")
    names = ["consecutive_failures", "last_failure_error"] + ["title"] * rebuilt  # NOT NULL
    lose(path, *(("tasks", name) for name in names))

    completion.complete(path, KANBAN, lacking(path, KANBAN))

    with contextlib.closing(sqlite3.connect(path)) as db:
        sql = "SELECT consecutive_failures, last_failure_error, spawn_failures FROM tasks"
        assert db.execute(sql).fetchall() == [(3, "no such profile", 3)]
    assert lacking(path, KANBAN) == []


# -- what is there and otherwise -----------------------------------------------------------


def differing(path: Path, plan: Blueprint) -> list[ChangedPart]:
    """What the database declares otherwise now."""
    return schema_differences.find_changed(schema.read(path), plan)


def declare(path: Path, table: str, column: str, way: str) -> None:
    """Declare a column without its default, or a table without its key."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        schema_changes.redeclare(db, table, column, way)


def replace_part(path: Path, kind: str, name: str, sql: str) -> None:
    """Put another index or trigger in the place of one."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"DROP {kind} {name}")
        db.execute(sql)


@pytest.mark.sampled
@pytest.mark.parametrize("database", atlas.DATABASES)
def test_every_default_and_every_key(database: str, tmp_path: Path) -> None:
    """Each is told of when it is lost, and comes back as declared; no row changes."""
    plan = support.plan(database)
    whole = made(tmp_path / "whole.db", plan)
    assert differing(whole, plan) == []
    ways = [
        (table.name, column.name, way)
        for table in plan.tables.values()
        for column in table.columns
        if column.default is not None
        for way in (schema_changes.BARE, schema_changes.LOOSE)[: 1 + column.notnull]
    ]
    keyed = [t.name for t in plan.tables.values() if any(column.key for column in t.columns)]
    for table, column, way in [*ways, *((name, "", schema_changes.UNKEYED) for name in keyed)]:
        path = tmp_path / "a.db"
        path.write_bytes(whole.read_bytes())
        declare(path, table, column, way)
        [found] = [one for one in differing(path, plan) if one.name in (column, table)]
        assert found.table == table
        if column:
            known = plan.tables[table].column(column)
            assert known and found.effect == known.if_changed.get(way, "harmless")

        completion.complete(path, plan, [], [found])

        assert differing(path, plan) == []
        assert facts(path, plan) == facts(whole, plan)
        assert rows(path, plan) == rows(whole, plan)
        sound(path)
        path.unlink()


def test_a_lost_default(home: Path) -> None:
    """Rows that were written meanwhile without a value get it; undo gives the bytes back."""
    path = home / "state.db"
    whole = facts(path, STATE)
    declare(path, "messages", "compacted", schema_changes.LOOSE)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        support.say(db, "one", "two")
    before = rows_of_history(path)
    sick = support.contents(home)
    found = support.finding(support.check(home), "DB-SCHEMA")
    assert found["severity"] == "warning"
    assert found["title"] == "state.db has 1 part defined wrongly"
    assert found["evidence"][0]["what"] == ("messages.compacted has no default and may be NULL")

    done = support.doctor("fix", "DB-SCHEMA", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    [item] = done.json["repair"]["runs"][0]["items"]
    assert "Rows of messages that got the declared compacted: 2." in item["notes"]
    assert facts(path, STATE) == whole
    assert rows_of_history(path) == before
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


TITLES = "idx_sessions_title_unique"
PLAIN = f"CREATE INDEX {TITLES} ON sessions(title) WHERE title IS NOT NULL"


def test_an_index_that_is_not_unique(tmp_path: Path) -> None:
    """It is unique again; where rows are in its way nothing is changed, in one line."""
    path = support.history(tmp_path / "state.db")
    replace_part(path, "INDEX", TITLES, PLAIN)
    [found] = differing(path, STATE)
    assert (found.what, found.effect) == (f"{TITLES} is not unique", "silent")

    completion.complete(path, STATE, [], [found])

    assert not differing(path, STATE)
    assert not lacking(path, STATE)
    replace_part(path, "INDEX", TITLES, PLAIN)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for name in ("a", "b"):
            db.execute(
                "INSERT INTO sessions (id, source, started_at, title) VALUES (?, 'cli', 1, 'same')",
                (name,),
            )
    before = path.read_bytes()
    with pytest.raises(CannotFix, match="rows that exist twice"):
        completion.complete(path, STATE, [], [found])
    assert path.read_bytes() == before


def test_an_index_that_refuses_rows(tmp_path: Path) -> None:
    """One that became unique, or is unique over less, keeps Hermes from writing."""
    path = support.history(tmp_path / "state.db")
    name = "idx_messages_session"
    replace_part(path, "INDEX", name, f"CREATE UNIQUE INDEX {name} ON messages(id, session_id)")

    [found] = differing(path, STATE)

    assert found.effect == "crash"
    completion.complete(path, STATE, [], [found])
    assert differing(path, STATE) == []


@pytest.mark.parametrize("trigger", sorted(STATE.triggers))
def test_a_trigger_that_does_something_else(trigger: str, tmp_path: Path) -> None:
    """It does again what the release declares, and what it missed is indexed."""
    path = support.history(tmp_path / "state.db")
    event = trigger.rpartition("_")[2]
    replace_part(
        path,
        "TRIGGER",
        trigger,
        f"CREATE TRIGGER {trigger} AFTER {event} ON messages BEGIN SELECT 1; END",
    )
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        support.say(db, "a walrus")
        db.execute("UPDATE messages SET content = 'walrus of old' WHERE id = 3")
        db.execute("DELETE FROM messages WHERE id = 4")
    [found] = differing(path, STATE)
    assert (found.kind, found.effect) == ("trigger", "silent")

    completion.complete(path, STATE, [], [found])

    assert not differing(path, STATE)
    assert not lacking(path, STATE)
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table in STATE.virtual:
            assert db.execute(SEARCH.format(table=table)).fetchall() == [(3,), (51,)]
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (50,)


def test_a_lost_number(tmp_path: Path) -> None:
    """Messages that were written without a number get one, and a search finds them by it."""
    path = support.history(tmp_path / "state.db")
    declare(path, "messages", "", schema_changes.UNKEYED)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        support.say(db, "a walrus")
    found = differing(path, STATE)
    assert [str(one) for one in found] == ["the key of messages"]

    completion.complete(path, STATE, [], found)

    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT id FROM messages WHERE content='a walrus'").fetchall() == [(51,)]
        assert db.execute(SEARCH.format(table="messages_fts")).fetchall() == [(51,)]
        assert db.execute("SELECT count(*) FROM messages_fts").fetchone() == (51,)
    sound(path)


SPELLINGS = {
    "sessions": [("message_count INTEGER DEFAULT 0", "message_count integer default (0)")],
    "messages": [("compacted INTEGER NOT NULL DEFAULT 0", "'compacted' INT not null DEFAULT '0'")],
    "idx_messages_session": [("CREATE INDEX", "create  index"), ("(session_id", '( "session_id"')],
}


def test_another_spelling(tmp_path: Path) -> None:
    """Case, spaces, quotes and types that SQLite takes for the same are no difference."""
    path = support.history(tmp_path / "state.db")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema=ON")
        for name, pairs in SPELLINGS.items():
            for old, new in pairs:
                sql = "SELECT sql FROM sqlite_master WHERE name = ?"
                assert old in db.execute(sql, (name,)).fetchone()[0], name
                db.execute(
                    "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?",
                    (old, new, name),
                )

    assert differing(path, STATE) == []


def test_harmless_differences_are_information(home: Path) -> None:
    """A column that may be NULL and one of another type: told, and nothing to fix."""
    with contextlib.closing(sqlite3.connect(home / "state.db", isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema=ON")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(replace(sql, 'role TEXT NOT NULL', "
            "'role TEXT'), 'token_count INTEGER', 'token_count TEXT') WHERE name = 'messages'"
        )

    found = support.finding(support.check(home), "DB-SCHEMA")

    assert (found["severity"], found["fix"]) == ("info", None)
    assert [one["what"] for one in found["evidence"]] == [
        "messages.role may be NULL",
        "messages.token_count has another type",
    ]


def test_a_value_that_must_be_there(home: Path) -> None:
    """A NOT NULL that no release declares refuses what Hermes writes: taken away."""
    path = home / "state.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE messages SET tool_name = ''")
        db.execute("PRAGMA writable_schema=ON")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'tool_name TEXT', "
            "'tool_name TEXT NOT NULL') WHERE name = 'messages'"
        )
    found = support.finding(support.check(home), "DB-SCHEMA")
    assert (found["severity"], found["fix"]["id"]) == ("error", "complete-schema")

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        support.say(db, "written again")


def planted(home: Path) -> None:
    """A board of a release without this column."""
    (home / "kanban.db").unlink()
    support.board(home / "kanban.db", without=(("tasks", "session_id"),))


PLANTED = Planted("KANBAN-SCHEMA", planted)
