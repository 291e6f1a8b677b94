"""Create homes of a Hermes that does not exist yet, with nothing wrong but much unknown."""

from __future__ import annotations

import json
from pathlib import Path

from tests.helpers import damage, recorded_homes, support

VERSION = "0.99.0"
CONFIG = """\
_config_version: 99
model: {provider: tomorrow-ai, default: tomorrow-model, reach: far}
providers: {tomorrow-ai: {kind: new}}
fallback_model: [{provider: other-ai, model: x}]
session_reset: {mode: tide}
telepathy: {enabled: true, depth: 3, allow_from: [1]}
platforms:
  hologram: {enabled: true, extra: {beam: wide}}
agent: {environment_hint: x, thoughts: 7}
auxiliary: {dreams: {provider: tomorrow-ai}}
approvals: {mode: trusting}
toolsets: [tomorrow]
terminal: {cwd: /nowhere, backend: cloud}
"""
ENV = """\
TOMORROW_API_KEY=abc
HOLOGRAM_TOKEN=12
HOLOGRAM_PORT=beam
TELEGRAM_BOT_TOKEN=9
TELEGRAM_ALLOWED_USERS=everyone
QQ_APP_ID=x
OPENROUTER_API_KEY=1
API_SERVER_ENABLED=perhaps
WEBHOOK_ENABLED=true
WEBHOOK_PORT=x
"""
STORES = {
    "cron/jobs.json": {"jobs": {"a": {"at": "noon"}}, "form": 9},
    "auth.json": {"version": 9, "vault": {"x": 1}, "providers": [1]},
    "sessions/sessions.json": {"a": {"chat": {"platform": "hologram"}}},
    "gateway_state.json": {"gateway_state": "resting", "updated_at": 5, "platforms": [1]},
    "channel_directory.json": {"platforms": [1, 2], "form": 9},
    "pairing/telegram-approved.json": [1],
    "pairing/telegram-pending.json": {"x": 3},
}


def home(path: Path) -> Path:
    """Create an intact home in which every part has an unknown format."""
    support.healthy(path)
    recorded_homes.installed(path, VERSION)
    support.put(path / "config.yaml", CONFIG)
    support.put(path / ".env", ENV)
    for name, values in STORES.items():
        support.put(path / name, json.dumps(values))
    for name, make in (("state.db", history), ("kanban.db", board), ("response_store.db", cached)):
        (path / name).unlink(missing_ok=True)
        support.remembered(path / name, make)
    return path


def history(path: Path) -> None:
    """Create a state.db with another schema, rows of unknown meaning and its own search index."""
    damage.history(path, 200)
    damage.execute(
        path,
        "UPDATE schema_version SET version = 99",
        "ALTER TABLE messages ADD COLUMN later TEXT",
        "CREATE TABLE tomorrow (id INTEGER PRIMARY KEY, what TEXT NOT NULL)",
        "INSERT INTO tomorrow (what) VALUES ('something')",
        "DROP TRIGGER messages_fts_insert",
        "DROP INDEX idx_sessions_source",
        "UPDATE messages SET tool_calls = 'not json' WHERE id = 4",
        "DROP INDEX idx_sessions_title_unique",
        "UPDATE sessions SET title = 'the same' WHERE id IN ('s1', 's2')",
    )


def cached(path: Path) -> None:
    """Create a response_store.db with one more column."""
    support.made("response_store.db", path).close()
    damage.execute(path, "ALTER TABLE responses ADD COLUMN later TEXT")


def board(path: Path) -> None:
    """Create a kanban.db with a missing and an extra column, and a task in an unknown state."""
    support.board(path, (("tasks", "session_id"),))
    damage.execute(
        path,
        "PRAGMA user_version = 77",
        "ALTER TABLE tasks ADD COLUMN later TEXT",
        "UPDATE tasks SET status = 'dreaming'",
    )
