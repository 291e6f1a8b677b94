"""Report from inside a release its database schemas and which parts it cannot work without.

    python -I schema_lesson.py learn            prints the schema of every database, and for each
                                                part what the release does if it is missing
    python -I schema_lesson.py visit FOLDER     uses every database of every home in the folder;
                                                in the one called `fresh` it creates them all

`learn` reads from standard input the statements that create each database as older releases left
it, and also prints what these files are like after this release has used them. Runs under the release's own interpreter and imports nothing from this project.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Use = Callable[[Path], None]


def state(home: Path) -> None:
    """Create and search a session, and use the other features that write to state.db."""
    SessionDB = importlib.import_module("hermes_state").SessionDB
    db = SessionDB(home / "state.db")
    try:
        session = f"lesson {os.urandom(4).hex()}"  # a new one each time, so that it adds rows
        db.create_session(session, "telegram", model="m", model_config={"a": 1})
        db.append_message(session, "user", "the first words")
        db.append_message(session, "assistant", "an answer", tool_calls=[{"id": "1"}])
        db.set_session_title(session, session)
        db.update_token_counts(session, input_tokens=1, output_tokens=1, model="m")
        assert db.get_messages(session)
        db.get_messages_as_conversation(session)
        db.search_messages("words")
        db.list_sessions_rich(limit=5)
        if hasattr(db, "save_gateway_routing_entry"):
            db.save_gateway_routing_entry("key", "{}")
            db.load_gateway_routing_entries()
        if hasattr(db, "try_acquire_compression_lock"):
            db.try_acquire_compression_lock(session, "me")
            db.release_compression_lock(session, "me")
        db.set_meta("k", "v")
        db.get_meta("k")
        db.enable_telegram_topic_mode(chat_id="1", user_id="2")
        db.bind_telegram_topic(
            chat_id="1", thread_id="3", user_id="2", session_key="k", session_id=session
        )
        db.is_telegram_topic_mode_enabled(chat_id="1", user_id="2")
        assert db.get_telegram_topic_binding(chat_id="1", thread_id="3")
        db.end_session(session, "done")
    finally:
        db.close()
    ledger = optional("gateway.delivery_ledger")
    if ledger:  # it swallows its errors: only the row proves success
        ledger.record_obligation(
            obligation_id="o",
            session_key="k",
            platform="p",
            chat_id="c",
            thread_id=None,
            content="x",
        )
        ledger.mark_attempting("o")
        ledger.mark_failed("o", "e")
        with contextlib.closing(sqlite3.connect(home / "state.db")) as look:
            assert look.execute("SELECT count(*) FROM delivery_obligations").fetchone()[0]
    delegation = optional("tools.async_delegation")
    if hasattr(delegation, "_persist_dispatch"):
        delegation._persist_dispatch({"delegation_id": "d", "dispatched_at": 1.0})
        assert delegation.get_durable_delegation("d")


def kanban(home: Path) -> None:
    """Create a task with a comment and an attachment; claim, finish, list and read it."""
    board = importlib.import_module("hermes_cli.kanban_db")
    getattr(board, "_INITIALIZED_PATHS", set()).clear()
    db = board.connect(home / "kanban.db")
    try:
        task = board.create_task(db, title="a task", body="its text", assignee="me")
        other = board.create_task(db, title="another", parents=[task])
        board.add_comment(db, task, "me", "a comment")
        board.list_tasks(db)
        board.get_task(db, task)
        board.list_comments(db, task)
        board.list_events(db, other)
        board.claim_task(db, task)
        board.complete_task(db, task, result="done")
        board.list_runs(db, task)
        board.add_notify_sub(db, task_id=task, platform="telegram", chat_id="1")
        board.list_notify_subs(db, task)
        board.advance_notify_cursor(
            db, task_id=task, platform="telegram", chat_id="1", new_cursor=1
        )
        if hasattr(board, "add_attachment"):
            board.add_attachment(db, task, filename="a", stored_path="/a", size=1)
            board.list_attachments(db, task)
    finally:
        db.close()


def response_store(home: Path) -> None:
    """Store and read a response, and name it in a conversation."""
    server = importlib.import_module("gateway.platforms.api_server")
    store = server.ResponseStore(db_path=str(home / "response_store.db"))
    try:
        store.put("r1", {"a": 1})
        assert store.get("r1") == {"a": 1}
        store.set_conversation("c", "r1")
        store.get_conversation("c")
    finally:
        store.close()


def projects(home: Path) -> None:
    """Create a project with a folder, activate it, and add a discovered repository."""
    module = importlib.import_module("hermes_cli.projects_db")
    db = module.connect(home / "projects.db")
    try:
        folder = home / f"project {os.urandom(4).hex()}"  # a folder belongs to one project only
        folder.mkdir()
        made = module.create_project(db, name="one", folders=[str(folder)])
        one = made if isinstance(made, str) else made.id
        module.list_projects(db)
        module.get_project(db, one)
        module.record_discovered_repos(db, [{"path": str(home), "name": "x"}])
        module.list_discovered_repos(db)
        module.set_active(db, one)
        module.get_active_id(db)
    finally:
        db.close()


def verification(home: Path) -> None:
    """Record a test and an edit of a workspace, and query it."""
    (home / "package.json").write_text('{"name": "x", "scripts": {"test": "true"}}')
    module = importlib.import_module("agent.verification_evidence")
    module._connect().close()
    module.record_terminal_result(command="npm test", cwd=home, session_id="s", exit_code=0)
    module.mark_workspace_edited(session_id="s", cwd=home, paths=["x.py"])
    module.verification_status(session_id="s", cwd=home)


def executions(home: Path) -> None:
    """Create, run and finish an execution."""
    module: Any = importlib.import_module("cron.executions")
    module.EXECUTIONS_FILE = home / "cron" / "executions.db"
    one = module.create_execution("job", source="cron")
    module.mark_execution_running(one["id"])
    module.finish_execution(one["id"], success=True)
    module.list_executions()
    module.latest_execution("job")


def discord(home: Path) -> None:
    """Open the ledger like its adapter, which swallows errors and returns the default."""
    module = importlib.import_module("plugins.platforms.discord.recovery")
    assert module.DiscordRecoveryStore(home).call(lambda _: "opened") == "opened"


def memory(home: Path) -> None:
    """Add, find, change and rate a fact."""
    module = importlib.import_module("plugins.memory.holographic.store")
    store = module.MemoryStore(home / "memory_store.db")
    try:
        fact = store.add_fact("the sky over Old Town is blue", category="general")
        store.search_facts("sky")
        store.update_fact(fact, tags="x")
        store.record_feedback(fact, True)
        store.list_facts()
    finally:
        store.close()


USES: dict[str, Use] = {
    "state.db": state,
    "kanban.db": kanban,
    "response_store.db": response_store,
    "projects.db": projects,
    "verification_evidence.db": verification,
    "cron/executions.db": executions,
    "gateway/discord_message_recovery.db": discord,
    "memory_store.db": memory,
}
KINDS = ("tables", "virtual", "views", "indexes", "triggers")


def start_state(home: Path) -> None:
    """Create what a start alone creates; the rest is created when it is first needed."""
    importlib.import_module("hermes_state").SessionDB(home / "state.db").close()


def optional(name: str) -> Any:
    """Import a module that not every release has; None if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def learn(root: Path, older: dict[str, list[list[str]]]) -> dict[str, Any]:
    """Describe every database that this release can create."""
    answers: dict[str, Any] = {}
    for name, use in USES.items():
        home = fresh(root / "made")
        try:
            use(home)
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        with contextlib.closing(sqlite3.connect(home / name)) as db:
            fill(db)
            answer = schema(db)
        if name == "state.db":
            start_state(fresh(root / "started"))
            with contextlib.closing(sqlite3.connect(root / "started" / name)) as db:
                at_once = schema(db)["tables"]
            for table, known in answer["tables"].items():
                known["lazy"] = table not in at_once
        answer["layouts"] = [
            layout for made in older.get(name, ()) for layout in upgraded(root, name, use, made)
        ]
        trial = Trial(home, root, name, use)
        for kind in KINDS:
            for part, known in answer[kind].items():
                known["if_missing"] = trial.without(kind, part)
        for table, known in answer["tables"].items():
            columns = known["columns"]
            for column in columns:
                column["if_missing"] = (
                    trial.without_column(table, column["name"])
                    if len(columns) > 1
                    else known["if_missing"]  # without its only column there is no table
                )
                if changed := trial.with_other_column(table, column):
                    column["if_changed"] = changed
            known["if_unkeyed"] = trial.without_key(table, columns)
        for kind in ("indexes", "triggers"):
            for part, known in answer[kind].items():
                known["if_changed"] = trial.with_other(kind, part, known["sql"])
        answers[name] = answer
    return answers


def upgraded(root: Path, name: str, use: Use, made: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the declarations of a file of an older release after this one has used it."""
    home = fresh(Path(tempfile.mkdtemp(dir=root)))
    with contextlib.closing(sqlite3.connect(home / name)) as db, db:
        for sql in made:
            db.execute(sql)
        fill(db)  # a release may treat a search index without rows differently
    try:
        use(home)
    except Exception as error:  # noqa: BLE001 (it may refuse a file that is too old)
        print(f"{name}: {error}", file=sys.stderr)
        return
    with contextlib.closing(sqlite3.connect(home / name)) as db:
        found = schema(db)
    yield {
        "tables": {
            table: [column["name"] for column in known["columns"]]
            for table, known in found["tables"].items()
        },
        **{
            kind: {part: known["sql"] for part, known in found[kind].items()}
            for kind in ("virtual", "views", "triggers")
        },
    }


def visit(folder: Path) -> None:
    """Use the databases of each home; those in it afterwards were opened by this release."""
    for home in sorted(folder.iterdir()):
        os.environ["HERMES_HOME"] = str(home)
        for name, use in USES.items():
            if home.name == "fresh" or (home / name).exists():
                with contextlib.suppress(ImportError):
                    use(home)


def fresh(home: Path) -> Path:
    """Create an empty home, and set HERMES_HOME to it."""
    shutil.rmtree(home, ignore_errors=True)
    (home / "cron").mkdir(parents=True)
    (home / "gateway").mkdir()
    os.environ["HERMES_HOME"] = str(home)
    return home


def fill(db: sqlite3.Connection) -> None:
    """Insert a row into each empty table, since a table with rows accepts fewer new columns."""
    for table, known in schema(db)["tables"].items():
        if db.execute(f'SELECT 1 FROM "{table}"').fetchone() is None:
            marks = ", ".join("?" * len(known["columns"]))
            values = ["1" if column["type"] == "TEXT" else 1 for column in known["columns"]]
            db.execute(f'INSERT INTO "{table}" VALUES ({marks})', values)
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # only the main file is copied for the trials


def schema(db: sqlite3.Connection) -> dict[str, Any]:
    """Return tables with their columns, full-text tables, views, indexes, triggers, version."""
    master = db.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    virtual = {name: {"sql": sql} for _, name, _, sql in master if "VIRTUAL" in sql[:20].upper()}
    tables: dict[str, Any] = {
        name: {"sql": sql, "columns": columns(db, name)}
        for kind, name, _, sql in master
        if kind == "table" and not any(name == v or name.startswith(f"{v}_") for v in virtual)
    }
    version = None
    if "schema_version" in tables:
        (version,) = db.execute("SELECT max(version) FROM schema_version").fetchone()
    return {
        "version": version,
        "tables": tables,
        "virtual": virtual,
        "views": {name: {"sql": sql} for kind, name, _, sql in master if kind == "view"},
        "indexes": {n: {"table": t, "sql": s} for kind, n, t, s in master if kind == "index"},
        "triggers": {n: {"table": t, "sql": s} for kind, n, t, s in master if kind == "trigger"},
    }


def columns(db: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    """Return the columns of a table in their order."""
    rows = db.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    return [
        {"name": r[1], "type": r[2], "notnull": bool(r[3]), "default": r[4], "key": r[5]}
        for r in rows
    ]


class Trial:
    """Remove or change one part of a database, and let the release use the rest."""

    def __init__(self, made: Path, root: Path, name: str, use: Use) -> None:
        self.made, self.root, self.name, self.use = made, root, name, use

    def without(self, kind: str, part: str) -> str:
        """Return the effect of removing this table, full-text table, view, index or trigger."""
        word = {
            **{"tables": "TABLE", "virtual": "TABLE", "views": "VIEW"},
            **{"indexes": "INDEX", "triggers": "TRIGGER"},
        }

        def drop(db: sqlite3.Connection) -> None:
            db.execute("PRAGMA foreign_keys=OFF")
            db.execute(f'DROP {word[kind]} "{part}"')

        return self._verdict(drop, lambda db: part in schema(db)[kind])

    def without_column(self, table: str, column: str) -> str:
        """Return the effect of removing this column; healed means that its key is back too."""

        def key(db: sqlite3.Connection) -> object:
            return {known["name"]: known["key"] for known in columns(db, table)}.get(column)

        with contextlib.closing(sqlite3.connect(self.made / self.name)) as db:
            before = key(db)
        return self._verdict(lambda db: take_away(db, table, column), lambda db: key(db) == before)

    def with_other_column(self, table: str, column: dict[str, Any]) -> dict[str, str]:
        """Return the effect of removing a column's default, unless that is harmless."""
        name = column["name"]
        if column["default"] is None:
            return {}

        def same(db: sqlite3.Connection) -> bool:
            wanted = [column[fact] for fact in ("type", "notnull", "default", "key")]
            found = {one["name"]: one for one in columns(db, table)}[name]
            return [found[fact] for fact in ("type", "notnull", "default", "key")] == wanted

        def unfilled(db: sqlite3.Connection) -> bool:
            sql = f'SELECT 1 FROM "{table}" WHERE "{name}" IS NULL'
            return db.execute(sql).fetchone() is not None

        verdicts = {
            way: self._verdict(
                partial(redeclare, table=table, column=name, way=way), same, unfilled
            )
            for way in ([BARE, LOOSE] if column["notnull"] else [BARE])
        }
        return {way: verdict for way, verdict in verdicts.items() if verdict != "harmless"}

    def without_key(self, table: str, every: list[dict[str, Any]]) -> str:
        """Return the effect of a missing primary key: duplicate rows, or rows with a NULL key."""
        keys = [f'"{one["name"]}"' for one in every if one["key"]]
        if not keys:
            return "harmless"

        def keyed(db: sqlite3.Connection) -> bool:
            return any(one["key"] for one in columns(db, table))

        def doubled(db: sqlite3.Connection) -> bool:
            fields = ", ".join(keys)
            unnamed = " OR ".join(f"{key} IS NULL" for key in keys)
            twice = f'SELECT 1 FROM "{table}" GROUP BY {fields} HAVING count(*) > 1 OR {unnamed}'
            return db.execute(twice).fetchone() is not None

        return self._verdict(lambda db: redeclare(db, table, "", UNKEYED), keyed, doubled)

    def with_other(self, kind: str, part: str, sql: str) -> str:
        """Return the effect of a unique index made non-unique, or of a trigger made empty."""
        if kind == "indexes" and "UNIQUE" not in sql[:20].upper():
            return "harmless"
        other = re.sub(r"\bUNIQUE\s+", "", sql, count=1, flags=re.IGNORECASE)
        if kind == "triggers":
            other = re.sub(r"\bBEGIN\b.*", "BEGIN SELECT 1; END", sql, flags=re.DOTALL)
        word = {"indexes": "INDEX", "triggers": "TRIGGER"}[kind]

        def harm(db: sqlite3.Connection) -> None:
            db.execute(f'DROP {word} "{part}"')
            db.execute(other)

        return self._verdict(harm, lambda db: schema(db)[kind][part]["sql"] != other)

    def _verdict(
        self,
        harm: Callable[[sqlite3.Connection], None],
        back: Callable[[sqlite3.Connection], bool],
        seen: Callable[[sqlite3.Connection], bool] | None = None,
    ) -> str:
        """Return healed, crash or silent; with `seen` also harmless, if no row shows the change."""
        home = fresh(Path(tempfile.mkdtemp(dir=self.root)))  # releases remember their home
        path = home / self.name
        shutil.copyfile(self.made / self.name, path)
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            harm(db)
        try:
            self.use(home)
        except Exception:  # noqa: BLE001 (any failure is a crash)
            return "crash"
        with contextlib.closing(sqlite3.connect(path)) as db:
            if back(db):
                return "healed"
            return "silent" if seen is None or seen(db) else "harmless"


def take_away(db: sqlite3.Connection, table: str, column: str) -> None:
    """Remove a column with the indexes and triggers that need it."""
    db.isolation_level = None
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("PRAGMA legacy_alter_table=ON")  # a view may need the table
    others = db.execute(
        "SELECT type, name, sql FROM sqlite_master"
        " WHERE tbl_name=? AND type IN ('index', 'trigger') AND sql IS NOT NULL",
        (table,),
    ).fetchall()
    for kind, name, _ in others:
        db.execute(f'DROP {kind} "{name}"')
    try:
        db.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
    except sqlite3.OperationalError:  # a key, or part of another constraint
        rebuild_without(db, table, column)
    for _, _, sql in others:
        if not re.search(rf"\b{re.escape(column)}\b", sql):
            db.execute(sql)


def rebuild_without(db: sqlite3.Connection, table: str, column: str) -> None:
    """Rebuild a table without one column, keeping its other keys."""
    (sql,) = db.execute(
        "SELECT sql FROM sqlite_master WHERE type='table' AND name=?", (table,)
    ).fetchone()
    every = columns(db, table)
    kept = [one for one in every if one["name"] != column]
    alone = sum(bool(one["key"]) for one in every) == 1
    parts = []
    for one in kept:
        part = f'"{one["name"]}" {one["type"]}'
        if one["key"] and alone:
            part += " PRIMARY KEY" + (" AUTOINCREMENT" if "AUTOINCREMENT" in sql.upper() else "")
        elif one["notnull"]:
            part += " NOT NULL"
        parts.append(part + (f" DEFAULT {one['default']}" if one["default"] is not None else ""))
    keys = [f'"{one["name"]}"' for one in sorted(kept, key=lambda one: one["key"]) if one["key"]]
    if keys and not alone:
        parts.append(f"PRIMARY KEY ({', '.join(keys)})")
    names = ", ".join(f'"{one["name"]}"' for one in kept)
    db.execute(f"CREATE TABLE lesson ({', '.join(parts)})")
    db.execute(f'INSERT INTO lesson (rowid, {names}) SELECT rowid, {names} FROM "{table}"')
    db.execute(f'DROP TABLE "{table}"')
    db.execute(f'ALTER TABLE lesson RENAME TO "{table}"')


BARE, LOOSE, UNKEYED = "bare", "loose", "unkeyed"
"""A column without its default, or also without NOT NULL; a table without its primary key."""
_DEFAULT = r"\s+DEFAULT\s+(?:\([^()]*\)|'(?:[^']|'')*'|[^\s,]+)"
_KEY = r"\s*\bPRIMARY\s+KEY\b(?:\s+AUTOINCREMENT\b)?"


def redeclare(db: sqlite3.Connection, table: str, column: str, way: str) -> None:
    """Rebuild a table with one declaration changed, keeping its rows."""
    db.isolation_level = None
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("PRAGMA legacy_alter_table=ON")
    (sql,) = db.execute(
        "SELECT sql FROM sqlite_master WHERE type='table' AND name=?", (table,)
    ).fetchone()
    others = db.execute(
        "SELECT sql FROM sqlite_master"
        " WHERE tbl_name=? AND type IN ('index', 'trigger') AND sql IS NOT NULL",
        (table,),
    ).fetchall()
    names = [f'"{one["name"]}"' for one in columns(db, table)]
    db.execute(f"CREATE TABLE lesson {declared_otherwise(sql, column, way)}")
    db.execute(f'INSERT INTO lesson ({", ".join(names)}) SELECT {", ".join(names)} FROM "{table}"')
    db.execute(f'DROP TABLE "{table}"')
    db.execute(f'ALTER TABLE lesson RENAME TO "{table}"')
    for (other,) in others:
        db.execute(other)


def declared_otherwise(sql: str, column: str, way: str) -> str:
    """Return the columns and constraints of a CREATE TABLE with one declaration changed."""
    sql = re.sub(r"--[^\n]*", "", sql)
    start, end = sql.index("("), sql.rindex(")")
    parts = []
    for part in re.findall(
        r"(?:[^,()']|'(?:[^']|'')*'|\((?:[^()]|\([^()]*\))*\))+", sql[start + 1 : end]
    ):
        part = part.strip()
        if way == UNKEYED:
            part = (
                "" if part.upper().startswith("PRIMARY KEY") else re.sub(_KEY, "", part, flags=re.I)
            )
        elif part.split()[0].strip('"`[]') == column:
            if way in (BARE, LOOSE):
                part = re.sub(_DEFAULT, "", part, flags=re.IGNORECASE)
            if way == LOOSE:
                part = re.sub(r"\s+NOT\s+NULL", "", part, flags=re.IGNORECASE)
        parts += [part] if part else []
    return f"({', '.join(parts)}){sql[end + 1 :]}"


def hurry() -> None:
    """Let nothing wait for the disk: the files of the trials are thrown away."""
    connect = sqlite3.connect

    def quick(*args: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **options)
        with contextlib.suppress(sqlite3.Error):
            db.execute("PRAGMA synchronous=OFF")
        return db

    sqlite3.connect = quick
    os.fsync = os.fdatasync = lambda fd: None
    # Both load settings and plugins again for every new home.
    state, board = optional("hermes_state"), optional("hermes_cli.kanban_db")
    if hasattr(state, "resolve_journal_mode"):
        mode = state.resolve_journal_mode()
        state.resolve_journal_mode = lambda *_, **__: mode
    if hasattr(board, "_fire_kanban_lifecycle_hook"):
        board._fire_kanban_lifecycle_hook = lambda *_, **__: None


def main() -> None:
    """Learn, or visit the homes of a folder."""
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "visit":
        visit(Path(sys.argv[2]))
        return
    root = Path(tempfile.mkdtemp())
    hurry()
    try:
        print(json.dumps(learn(root, json.load(sys.stdin) or {})))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
