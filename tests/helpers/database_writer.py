"""Run SQL statements on a database in a separate process, one at a time.

SQLite's locks belong to a process: a connection in the test's own process would protect nothing,
and closing the file anywhere in it would release them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.backup.vault import whole_backup
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home

LOOP = """
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=1.0)
for line in sys.stdin:
    try:
        said = [db.execute(one).fetchall() for one in json.loads(line)][-1]
    except sqlite3.Error as error:
        said = str(error)
    print(json.dumps(said), flush=True)
"""
ROWS = 1000
TABLE = "CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, version, filler)"


class Writer:
    """The process, killed at the end of its context as in a crash."""

    def __init__(self, path: Path, mode: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.tell(f"PRAGMA journal_mode={mode}", "PRAGMA wal_autocheckpoint=0", TABLE)

    def tell(self, *statements: str) -> Any:
        """Execute these statements, and return the result of the last one."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(statements) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def write(self, version: int, rows: int = ROWS) -> None:
        """Replace every row in one transaction, so that rows of two versions never coexist."""
        some = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
        every = (
            f"INSERT OR REPLACE INTO entries {some} SELECT i, {version}, randomblob(3500) FROM n"
        )
        assert self.tell(every) == []

    def checkpoint(self, how: str = "PASSIVE") -> None:
        """Move the write-ahead log into the file."""
        assert self.tell(f"PRAGMA wal_checkpoint({how})")[0][0] == 0

    def end(self) -> None:
        """Kill it, leaving its files as after a crash."""
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def writing(path: Path, mode: str = "WAL") -> Iterator[Writer]:
    """Run a process that has the database open."""
    writer = Writer(path, mode)
    try:
        yield writer
    finally:
        writer.end()


class Once:
    """Run a function once, at the first progress call at which its condition is true."""

    def __init__(self, due: Callable[[], bool], act: Callable[[], object]) -> None:
        self.due = due
        self.act = act
        self.happened = False

    def __call__(self, _: int) -> None:
        if not self.happened and self.due():
            self.happened = True
            self.act()


def half_done(home: Path, name: str) -> Callable[[], bool]:
    """Return a condition that is true once the copy of a file into the vault has started."""
    return lambda: any(home.glob(f"backups/doctor/*.partial/files/{name}"))


def back_up(home: Path, progress: Callable[[int], None] | None = None) -> Backup:
    """Run `backup create` in this process, so that a test can act during it."""
    where = Home(home)
    store = Vault(where)
    omitted = whole_backup.OmittedPaths()
    sources = whole_backup.list_sources(where, store.root, omitted=omitted)
    return store.create(
        sources,
        reason="a test",
        hermes=None,
        whole=True,
        missing=omitted.missing,
        progress=progress,
    )


def versions(backup: Backup, name: str, work: Path) -> list[tuple[int, int]]:
    """Return the versions of the rows in a backup, each with its count."""
    files = backup.folder / "files"
    work.mkdir()
    for suffix in ("", "-wal", "-journal"):
        if (files / (name + suffix)).exists():
            shutil.copy(files / (name + suffix), work / (name + suffix))
    with contextlib.closing(sqlite3.connect(work / name)) as db:
        assert db.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
        return db.execute("SELECT version, count(*) FROM entries GROUP BY version").fetchall()
