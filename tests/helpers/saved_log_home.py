"""A home whose deleted write-ahead log was saved into the vault before its process was killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import support
from tests.helpers.real.gateways import end

HOLDER = """
import json, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("SELECT count(*) FROM sqlite_master").fetchall()
print("open", flush=True)
for sql in json.loads(sys.stdin.readline()):
    db.execute(sql)
print("written", flush=True)
time.sleep(600)
"""


def message(number: int, session: str, time: float = 0) -> str:
    """Return SQL that adds a message."""
    return (
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES "
        f"('{session}', 'user', 'saved {number}', {time or 5000.5 + number})"
    )


def session(name: str, title: str = "") -> str:
    """Return SQL that adds a session."""
    titled = f"'{title}'" if title else "NULL"
    return (
        "INSERT INTO sessions (id, source, started_at, message_count, title) "
        f"VALUES ('{name}', 'cli', 5000, 3, {titled})"
    )


@contextmanager
def holding(path: Path, *written: str) -> Iterator[None]:
    """Run a process that writes rows into a deleted write-ahead log, until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"open\n"
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink()
        process.stdin.write(json.dumps(written).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"written\n"
        yield
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        end(process)


def save(home: Path, *options: str) -> str:
    """Save the deleted write-ahead log, and return the backup."""
    args = ("--apply", "--yes", "--json", "--home", str(home), *options)
    done = support.doctor("fix", "DB-DELETED-WAL", *args)
    [run] = done.json["repair"]["runs"]
    [saved] = run["saved"]
    return str(saved)


def lose(path: Path, *written: str, vault: Path | None = None) -> str:
    """Save a write-ahead log with these rows, kill its process, and return the backup."""
    with holding(path, *written):
        return save(path.parent, *(("--vault", str(vault)) if vault else ()))
