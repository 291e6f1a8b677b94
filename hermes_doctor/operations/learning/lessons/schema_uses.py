"""Let a release use each of its databases, as its features do.

Runs under the release's own interpreter, as a part of schema_lesson.py.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sqlite3
from collections.abc import Callable
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
