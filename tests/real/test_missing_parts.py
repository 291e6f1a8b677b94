"""Missing parts of a schema: what the fix adds is what Hermes would have added itself.

Each part that a release adds when it starts is taken away. One copy of the database is completed by
the release alone. Another is completed by the fix, and opened by the release afterwards. Both must
then have the same structure and the same rows, and the release must be able to work with them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.operations.learning.lessons import schema_changes
from hermes_doctor.sqlite import blueprint, completion, schema, schema_differences
from hermes_doctor.sqlite.blueprint import Blueprint
from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.real import controlled_gateways
from tests.helpers.real.gateways import until
from tests.helpers.real.release_homes import MakeHome, lose
from tools import real_home

pytestmark = pytest.mark.real
FAMILIES = ("0.13.0", "0.15.0", "0.16.0", "0.17.0", "0.18.0", "0.18.1", "0.19.0")
"""One release for each different code that opens databases."""

OPEN = {
    "kanban.db": """
from hermes_cli import kanban_db
def use(path):
    board = kanban_db.connect(path)
    board.close()
def work(path):
    board = kanban_db.connect(path)
    made = kanban_db.create_task(board, title="one more", body="its text", assignee="writer")
    kanban_db.add_comment(board, made, author="op", body="a word")
    names = kanban_db.list_tasks.__kwdefaults__ or {}
    if "session_id" in names:
        kanban_db.list_tasks(board, session_id="s1")
    kanban_db.claim_task(board, made)
    kanban_db.complete_task(board, made, result="done")
    print(len(kanban_db.list_tasks(board)))
    board.close()
""",
    "state.db": """
from hermes_state import SessionDB
def use(path):
    history = SessionDB(path)
    history.close()
def work(path):
    history = SessionDB(path)
    history.create_session("two", "cli", model="test-model")
    history.append_message("two", "user", "a walrus sings")
    history.append_message("two", "assistant", "it does", tool_name="ear")
    history.update_token_counts("two", input_tokens=3, output_tokens=4)
    history.set_session_title("two", "about a walrus")
    history.list_sessions_rich(limit=5)
    history.get_messages_as_conversation("one")
    history.end_session("two", "done")
    assert len(history.search_messages("walrus")) == 1
    print(len(history.get_messages("one")))
    history.close()
""",
}
"""How a release opens a database, and how it works with it."""
EACH = """
import json, os, sys, traceback
from pathlib import Path
said = {}
for word, name in json.loads((Path(os.environ["HERMES_HOME"]) / "asked.json").read_text()):
    try:
        {"use": use, "work": work}[word](Path(name))
    except Exception:
        said[name] = traceback.format_exc()[-400:]
print("\\n" + json.dumps(said))
"""


def healed(plan: Blueprint) -> Iterator[tuple[str, str, str]]:
    """Every part that the release adds itself and that the fix can add: kind, table and name."""
    for table in plan.tables.values():
        for column in table.columns:
            value = blueprint.value_for_old_rows(table, column)
            if column.if_missing == "healed" and value is not None and len(table.columns) > 1:
                yield "column", table.name, column.name
        if plan.if_missing[table.name] == "healed" and not table.created_on_demand:
            yield "table", table.name, table.name
    for kind, names in (("index", plan.indexes), ("trigger", plan.triggers)):
        for name in names:
            if plan.if_missing[name] == "healed":
                yield kind, plan.table_of[name], name


def take_away(path: Path, kind: str, table: str, name: str) -> bool:
    """Take a part away; False if the database does not have it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        sql = "SELECT 1 FROM sqlite_master WHERE name = ?"
        if db.execute(sql, (table if kind == "column" else name,)).fetchone() is None:
            return False
        if kind == "column":
            schema_changes.take_away(db, table, name)
        else:
            db.execute("PRAGMA foreign_keys=OFF")
            db.execute(f"DROP {kind} {name}")
    return True


def state_of(path: Path) -> dict[str, Any]:
    """The columns, keys, indexes, triggers and rows of a database, whatever their order is."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        names = db.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
            " AND name NOT LIKE 'messages_fts%\\_%' ESCAPE '\\'"
        ).fetchall()
        found: dict[str, Any] = {}
        for kind, name, sql in names:
            if kind != "table":
                found[name] = " ".join(sql.replace("IF NOT EXISTS ", "").split())
                continue
            columns = {
                row["name"]: tuple(row)[2:] for row in db.execute(f"PRAGMA table_info({name})")
            }
            rows = [sorted(dict(row).items()) for row in db.execute(f"SELECT rowid, * FROM {name}")]
            found[name] = (columns, rows)
        return found


def ask(version: str, home: Path, database: str, asked: list[tuple[str, Path]]) -> dict[str, str]:
    """Let the release open or use each file; return its errors."""
    (home / "asked.json").write_text(json.dumps([(word, str(path)) for word, path in asked]))
    said = real_home.run(version, home, OPEN[database] + EACH)
    errors: dict[str, str] = json.loads(said.splitlines()[-1])
    return errors


def completed(spoiled: Path, plan: Blueprint) -> Path:
    """A copy of a database to which the fix has added what it lacks."""
    fixed = spoiled.parent / "fixed" / spoiled.name
    fixed.parent.mkdir()
    shutil.copy(spoiled, fixed)
    lacking = schema_differences.find_missing(schema.read(fixed), plan)
    assert lacking
    completion.complete(fixed, plan, lacking)
    assert schema_differences.find_missing(schema.read(fixed), plan) == []
    return fixed


def same(version: str, home: Path, spoiled: Path, fixed: Path) -> None:
    """After the release has opened both, they are the same, and it works with the fixed one."""
    asked = [("use", spoiled), ("use", fixed)]
    assert ask(version, home, spoiled.name, asked) == {}
    assert state_of(spoiled) == state_of(fixed)
    assert ask(version, home, spoiled.name, [("work", fixed)]) == {}


OLDER_BOARD = """
ALTER TABLE tasks ADD COLUMN spawn_failures INTEGER;
ALTER TABLE tasks ADD COLUMN last_spawn_error TEXT;
UPDATE tasks SET spawn_failures = 3, last_spawn_error = 'no such profile' WHERE rowid = 2;
UPDATE tasks SET status = 'running', started_at = 1700000000, claim_lock = 'here' WHERE rowid = 3;
"""
"""Give a board the names that columns had before 0.13, and a running task without a run."""


@pytest.mark.parametrize("version", FAMILIES)
def test_values_that_hermes_copies(version: str, hermes_home: MakeHome, tmp_path: Path) -> None:
    """Hermes copies two columns from their former names only if it adds them itself: so do we."""
    need_release(version)
    home = hermes_home(version)
    plan = atlas.blueprint("kanban.db", version)
    assert plan
    board = home / "kanban.db"
    with contextlib.closing(sqlite3.connect(board)) as db:
        db.executescript(OLDER_BOARD)
    for column in ("consecutive_failures", "last_failure_error", "current_run_id"):
        take_away(board, "column", "tasks", column)

    fixed = completed(board, plan)

    same(version, home, board, fixed)
    with contextlib.closing(sqlite3.connect(fixed)) as db:
        sql = "SELECT consecutive_failures, last_failure_error FROM tasks WHERE rowid < 3"
        assert db.execute(sql).fetchall() == [(0, None), (3, "no such profile")]
        runs = db.execute("SELECT status FROM task_runs WHERE claim_lock = 'here'").fetchall()
        assert runs == [("running",)]


@pytest.mark.parametrize("older", FAMILIES[:-1])
@pytest.mark.parametrize("database", OPEN)
def test_after_an_update(database: str, older: str, hermes_home: MakeHome) -> None:
    """A database of an older release, completed before the newest one starts for the first time."""
    need_release(older)
    home = hermes_home(older)
    plan = atlas.blueprint(database, FAMILIES[-1])
    assert plan
    plan = plan.fitted(schema.read(home / database).virtual)
    if not schema_differences.find_missing(schema.read(home / database), plan):
        pytest.skip(f"{older} has the same {database}")

    same(FAMILIES[-1], home, home / database, completed(home / database, plan))


@pytest.mark.parametrize("version", FAMILIES)
@pytest.mark.parametrize("database", OPEN)
def test_as_hermes_adds_it(
    database: str, version: str, hermes_home: MakeHome, tmp_path: Path
) -> None:
    """Every part that the release adds itself: by the fix it gets the same structure and rows."""
    need_release(version)
    plan = atlas.blueprint(database, version)
    assert plan
    home = hermes_home(version)
    pairs: dict[str, tuple[Path, Path]] = {}
    for kind, table, name in healed(plan):
        spoiled = tmp_path / "spoiled" / f"{table}.{name}" / database
        spoiled.parent.mkdir(parents=True)
        shutil.copy(home / database, spoiled)
        if take_away(spoiled, kind, table, name):
            pairs[f"{kind} {table}.{name}"] = spoiled, completed(spoiled, plan)
    assert len(pairs) >= 30

    asked = [("use", path) for pair in pairs.values() for path in pair]
    assert ask(version, home, database, asked) == {}
    different = {part for part, (one, other) in pairs.items() if state_of(one) != state_of(other)}
    assert different == better(database, version)
    assert ask(version, home, database, [("work", fixed) for _, fixed in pairs.values()]) == {}


def better(database: str, version: str) -> set[str]:
    """The parts where the fix keeps or adds more than the release does."""
    if database != "state.db":
        return set()
    if version < "0.16":
        return {"table messages.messages"}  # it never creates the triggers of the search again
    return {"column messages.content"}  # it empties the search index, the last copy of the text


QUICK_DISPATCHER = "\nkanban:\n  dispatch_interval_seconds: 1\n"


@pytest.mark.wide
def test_beside_a_running_gateway(hermes_home: MakeHome) -> None:
    """Messages and tasks fail, the plan says what is stopped, and afterwards both work again."""
    home = hermes_home("0.19.0")
    with (home / "config.yaml").open("a") as config:
        config.write(QUICK_DISPATCHER)
    errors = home / "logs" / "errors.log"
    with controlled_gateways.ward(home) as ward:
        first = ward.pid
        (home.parent / "write").touch()
        written = home.parent / "written"
        until(written.exists, "a message")
        until((home / "kanban.db.dispatch.lock").exists, "the dispatcher to open the board")
        lose(home / "kanban.db", ("tasks", "max_runtime_seconds"), ("tasks", "session_id"))
        lose(home / "state.db", ("messages", "observed"))
        until(lambda: errors.read_text().count("no such column") >= 3, "the dispatcher to fail")
        saved = written.read_text()

        looked = ward.check()
        shown = ward.doctor("fix")
        done = ward.fix("DB-SCHEMA", "KANBAN-SCHEMA")

        for code in ("DB-SCHEMA", "KANBAN-SCHEMA"):
            assert support.finding(looked, code)["severity"] == "error"
            assert support.finding(looked, code)["fix"]["id"] == "complete-schema"
        assert "kanban.db: add tasks.max_runtime_seconds and tasks.session_id" in shown.out
        assert "state.db: add messages.observed" in shown.out
        assert "restart the gateway in the background" in shown.out
        assert "Run `hermes-doctor fix`" not in shown.out
        assert (done.code, done.codes) == (0, []), done
        assert ward.pid != first
        lines = errors.read_text().count("no such column")
        until(lambda: written.read_text() != saved, "a message after the repair")
        kept = SEARCH_NEWEST.format(saved=int(saved) - 1)
        assert ward.ask(kept).strip() == "1"
        assert not {"DB-SCHEMA", "KANBAN-SCHEMA", "KANBAN-STUCK"} & {*ward.check().codes}
        assert errors.read_text().count("no such column") == lines
        again = ward.fix("DB-SCHEMA", "KANBAN-SCHEMA")
        assert (again.code, again.json["repair"]["runs"]) == (0, [])


SEARCH_NEWEST = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
messages = history.get_messages("one")
print(sum(one["content"] == "message number {saved}" for one in messages))
history.close()
"""
