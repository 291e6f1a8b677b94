"""Create a small home with a release's own code, under that release's interpreter.

Imports nothing from this project. The first argument selects the part:

    home       settings, sessions with tool results, a board, the status file of a gateway
    interrupt  start `optimize_fts_storage` on an older state.db and stop it half-way
    resume     let it finish, and print FTS5's verdict about both indexes
    write      add, change and delete messages as a gateway does, and print the same
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

MESSAGES = 60
CHUNK = 20
"""Rows that one step of the rebuild indexes; Hermes' own 500 would need a large file."""
INDEXES = ("messages_fts", "messages_fts_trigram")


def main(part: str) -> None:
    """Run one part on HERMES_HOME."""
    home = Path(os.environ["HERMES_HOME"])
    parts = {"home": make, "interrupt": interrupt, "resume": resume, "write": write}
    parts[part](home)


def make(home: Path) -> None:
    """Create a home as setup and a few conversations leave it."""
    (home / "logs").mkdir()
    (home / "config.yaml").write_text(
        "model:\n  default: acme/test-model\n  provider: openrouter\n", encoding="utf-8"
    )
    (home / ".env").write_text("OPENROUTER_API_KEY=not-a-key\n", encoding="utf-8")
    (home / ".env").chmod(0o600)
    talk(home)
    from hermes_cli import kanban_db  # type: ignore[import-not-found]

    board = kanban_db.connect(home / "kanban.db")
    for n in range(3):
        kanban_db.create_task(board, title=f"task number {n}", body="its text")
    board.close()
    settings()
    status()


def talk(home: Path) -> None:
    """Write sessions in which every third message is the result of a tool."""
    history = opened(home)
    history.create_session("one", "cli", model="test-model")
    history.create_session("two", "cron", model="test-model")
    for n in range(MESSAGES):
        session, text = ("two" if n % 5 == 4 else "one"), f"message number {n} about apples"
        if n % 3 == 0:
            history.append_message(session, "user", text)
        elif n % 3 == 1:
            call = {"id": f"c{n}", "function": {"name": "read_file", "arguments": "{}"}}
            history.append_message(session, "assistant", text, tool_calls=[call])
        else:
            more = {"tool_name": "read_file", "tool_call_id": f"c{n - 1}"}
            history.append_message(session, "tool", text, **more)
    history.close()


def settings() -> None:
    """Let the release migrate config.yaml to its own version."""
    from hermes_cli import config

    config.migrate_config(interactive=False, quiet=True)


def status() -> None:
    """Write the status file as a gateway leaves it after an orderly stop."""
    sys.argv = ["/opt/hermes/.venv/bin/hermes", "gateway", "run"]
    from gateway import status as gateway_status  # type: ignore[import-not-found]

    gateway_status.write_runtime_status(gateway_state="running")
    gateway_status.write_runtime_status(gateway_state="stopped", exit_reason="stopped by a signal")


def interrupt(home: Path) -> None:
    """Stop the rebuild of the search indexes as Ctrl-C does, after its first step."""
    history = opened(home)

    def stop(progress: dict[str, Any]) -> None:
        if progress["indexed"]:
            raise KeyboardInterrupt

    try:
        history.optimize_fts_storage(progress_cb=stop)
    except KeyboardInterrupt:
        history.close()
        return
    raise SystemExit("the rebuild came to its end before it could be interrupted")


def resume(home: Path) -> None:
    """Finish the rebuild, as the same command does when it is run again."""
    history = opened(home)
    done = history.optimize_fts_storage()
    history.close()
    print(json.dumps({"done": done.get("ok"), **indexes(home)}))


def write(home: Path) -> None:
    """Write through the release's triggers."""
    history = opened(home)
    history.append_message("one", "user", "a pineapple after the repair")
    history.append_message("one", "tool", "a pineapple from a tool", tool_name="read_file")
    history.close()
    print(json.dumps({"done": True, **indexes(home)}))


def opened(home: Path) -> Any:
    """Open state.db with the release's own class."""
    from hermes_state import SessionDB  # type: ignore[import-not-found]

    SessionDB._FTS_REBUILD_CHUNK_ROWS = CHUNK
    SessionDB._FTS_REBUILD_MIN_PAUSE = 0.0
    return SessionDB(home / "state.db")


def indexes(home: Path) -> dict[str, Any]:
    """Return SQLite's verdict on the file and on each index, and the row counts of searches."""
    import contextlib
    import sqlite3

    said: dict[str, Any] = {}
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db:
        said["file"] = db.execute("PRAGMA integrity_check").fetchone()[0]
        for name in INDEXES:
            try:
                # With rank 1 FTS5 also compares the index with the rows that it indexes.
                db.execute(f"INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)")
                found = f"SELECT count(*) FROM {name} WHERE {name} MATCH 'apple'"
                word = found.replace("apple", "apples") if name == "messages_fts" else found
                said[name] = db.execute(word).fetchone()[0]
            except sqlite3.DatabaseError as error:
                said[name] = str(error)
        left = "SELECT key FROM state_meta WHERE key LIKE 'fts_rebuild%' ORDER BY key"
        said["left"] = [row[0] for row in db.execute(left)]
        db.rollback()
    return said


if __name__ == "__main__":
    main(sys.argv[1])
