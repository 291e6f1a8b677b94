"""Creates a Hermes home with real faults for the demo; Hermes need not be installed."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from hermes_doctor.core.home import EXAMPLE
from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.sqlite import completion

CONFIG = """\
# The demo's configuration
model:
  provider: openrouter
  default: nousresearch/hermes-4-70b
  context_length: 131072
gateway:
  timezone: Asia/Shanghai
fallback_providers:
  - provider: nous
    model: hermes-4-405b
"""
ENV = """\
TELEGRAM_BOT_TOKEN=1234567890:AAThisIsTheTokenOfADemoAndNotReal-1
TELEGRAM_ALLOWED_USERS=10000001
OPENROUTER_API_KEY=sk-or-v1-this-is-the-key-of-a-demo-and-not-real-0000000000000000000
"""
CODES = frozenset({"CFG-YAML", "DB-NOTADB", "ENV-BOM", "KANBAN-SCHEMA", "PERM-SECRETS"})
"""The codes of the faults that the demo makes."""
MESSAGES = ("Are you there?", "Why is nobody answering?", "昨天还好好的")


def make(home: Path) -> list[str]:
    """Fill an empty folder; return a sentence for each fault."""
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    home.chmod(0o755)
    (home / "logs").mkdir()
    _write(home / EXAMPLE, b"This home was made by `hermes-doctor demo`. You can delete it.\n")
    _write(home / "config.yaml.bak", CONFIG.encode())
    broken = CONFIG.replace("  default:", "\tdefault:").replace("131072", "262144")
    _write(home / "config.yaml", broken.encode())
    _write(home / ".env", b"\xef\xbb\xbf" + ENV.encode(), mode=0o644)
    _write(home / "auth.json", b'{"providers": {}, "credential_pool": {}}\n', mode=0o644)
    _history(home / "state.db")
    _board(home / "kanban.db")
    yesterday = time.time() - 86_400
    os.utime(home / "config.yaml.bak", (yesterday, yesterday))
    return [
        "config.yaml was edited with a tab in it; config.yaml.bak is from yesterday",
        ".env was saved by an editor that puts a byte order mark in front",
        ".env and auth.json can be read by every user of the machine",
        "the first 16 bytes of state.db were overwritten",
        "kanban.db comes from a restore and lacks a column",
    ]


def _write(path: Path, data: bytes, mode: int = 0o600) -> None:
    path.write_bytes(data)
    path.chmod(mode)


def _history(path: Path) -> None:
    plan = atlas.newest_blueprint("state.db")
    with contextlib.closing(completion.create(path, plan)) as db, db:
        db.execute("INSERT INTO sessions (id, source, started_at) VALUES ('demo', 'telegram', 1)")
        db.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " VALUES ('demo', 'user', ?, 1)",
            [(text,) for text in MESSAGES],
        )
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.write(b"\0" * 16)


def _board(path: Path) -> None:
    plan = atlas.newest_blueprint("kanban.db")
    with contextlib.closing(completion.create(path, plan)) as db, db:
        db.execute("DROP INDEX idx_tasks_session_id")
        db.execute("ALTER TABLE tasks DROP COLUMN session_id")
        db.execute(
            "INSERT INTO tasks (id, title, status, created_at)"
            " VALUES ('t1', 'Water the plants', 'todo', 1794700706)"
        )
    path.chmod(0o600)
