"""Create a state.db with the search indexes of schema 30 (Hermes 0.22), as far as tests need it.

No release of that schema can be installed here: the declarations follow its published form. The
word index reads a view that cuts tool results, the trigram index one that joins sessions and
leaves out tools, scheduled jobs and subagents.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

from tests.helpers import damage, support

_DELEGATED = (
    "json_extract((CASE WHEN json_valid({0}model_config) THEN {0}model_config "
    "ELSE json_object() END), '$._delegate_from')"
)
_WANTED = "{0}source NOT IN ('cron', 'subagent') AND " + _DELEGATED + " IS NULL"
_CUT = (
    "CASE WHEN {0}role = 'tool' THEN substr(COALESCE({0}content, ''), 1, 8192) ELSE {0}content END"
)
_PENDING = (
    "(new.id > COALESCE((SELECT CAST(value AS INTEGER) FROM state_meta "
    "WHERE key = 'fts_rebuild_high_water'), -1) OR new.id <= COALESCE((SELECT "
    "CAST(value AS INTEGER) FROM state_meta WHERE key = 'fts_rebuild_progress'), -1))"
)
SEARCH = (
    f"CREATE VIEW messages_fts_src AS SELECT id, {_CUT.format('')} AS content, tool_name, "
    "tool_calls FROM messages",
    "CREATE VIRTUAL TABLE messages_fts USING fts5(content, tool_name, tool_calls, "
    "content='messages_fts_src', content_rowid='id')",
    f"CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages WHEN {_PENDING} BEGIN "
    "INSERT INTO messages_fts(rowid, content, tool_name, tool_calls) "
    f"VALUES (new.id, {_CUT.format('new.')}, new.tool_name, new.tool_calls); END",
    "CREATE VIEW messages_fts_trigram_src AS SELECT m.id, m.role, m.content, m.tool_name "
    "FROM messages AS m JOIN sessions AS s ON s.id = m.session_id "
    f"WHERE m.role <> 'tool' AND {_WANTED.format('s.')}",
    "CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, tool_name, "
    "content='messages_fts_trigram_src', content_rowid='id', tokenize='trigram')",
    "CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages WHEN new.role <> 'tool' "
    f"AND EXISTS (SELECT 1 FROM sessions WHERE id = new.session_id AND {_WANTED.format('')}) "
    f"AND {_PENDING} BEGIN INSERT INTO messages_fts_trigram(rowid, content, tool_name) "
    "VALUES (new.id, new.content, new.tool_name); END",
)
SESSIONS = {
    "talk": ("cli", "{}"),
    "plain": ("telegram", None),
    "odd": ("qq", "not json"),
    "job": ("cron", "{}"),
    "sub": ("subagent", "{}"),
    "child": ("cli", json.dumps({"_delegate_from": "talk"})),
}


def make(path: Path, messages: int = 120) -> Path:
    """Create a file with sessions of every kind."""
    path.unlink(missing_ok=True)
    support.made("state.db", path).close()
    with damage.opened(path) as db:
        for name in ("messages_fts", "messages_fts_trigram"):
            for event in ("insert", "delete", "update"):
                db.execute(f"DROP TRIGGER {name}_{event}")
            db.execute(f"DROP TABLE {name}")
        for statement in SEARCH:
            db.execute(statement)
        db.execute("ALTER TABLE messages ADD COLUMN display_identity BLOB")
        db.execute("UPDATE schema_version SET version = 30")
        db.execute("INSERT INTO state_meta (key, value) VALUES ('fts_storage_version', '3')")
        for name, (source, config) in SESSIONS.items():
            db.execute(
                "INSERT INTO sessions (id, source, model_config, started_at) VALUES (?, ?, ?, 1)",
                (name, source, config),
            )
        names = list(SESSIONS)
        for n in range(messages):
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, 1)",
                (
                    names[n % len(names)],
                    "tool" if n % 4 == 3 else "user",
                    f"message number {n} " * (900 if n % 20 == 19 else 2),
                ),
            )
    path.chmod(0o600)
    return path


def with_cjk(path: Path) -> Path:
    """Add the optional third index, whose tokenizer ordinary SQLite builds lack."""
    declared = (
        "CREATE VIRTUAL TABLE messages_fts_cjk USING fts5(content, tool_name, "
        "content='messages_fts_trigram_src', content_rowid='id', tokenize='trigram')"
    )
    with damage.opened(path) as db:
        db.execute(declared)
        db.execute("INSERT INTO messages_fts_cjk (messages_fts_cjk) VALUES ('rebuild')")
    damage.surgery(
        path,
        "UPDATE sqlite_master SET sql = replace(sql, 'tokenize=''trigram''', "
        "'tokenize=''cjk_bigram''') WHERE name = 'messages_fts_cjk'",
    )
    return path


def sound(path: Path) -> bool:
    """Return whether FTS5 finds both indexes consistent with the rows that they index."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        for name in ("messages_fts", "messages_fts_trigram"):
            try:
                db.execute(f"INSERT INTO {name}({name}, rank) VALUES ('integrity-check', 1)")
            except sqlite3.DatabaseError:
                return False
    return True
