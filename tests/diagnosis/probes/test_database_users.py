"""Which open file is a database that was renamed, and which is another one."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes import database_users
from hermes_doctor.diagnosis.probes.database_users import LostFile
from tests.helpers import support
from tests.helpers.real.gateways import end

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")


@contextmanager
def opened(*paths: Path) -> Iterator[int]:
    """A process that has these files open."""
    code = "import sys; f = [open(n) for n in sys.argv[1:]]; print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        process.stdin.close()
        process.stdout.close()
        end(process)


def lost(home: Path, gateway: int) -> list[LostFile]:
    """The files that a gateway process uses although they are not at their paths."""
    paths = list(Home(home).databases())
    return database_users.lost_files(database_users.find(paths), paths, [gateway])


@pytest.mark.parametrize("name", ["kanban/boards/b/kanban.db", "kanban/boards/_old/b/kanban.db"])
def test_another_board(home: Path, name: str) -> None:
    """It is not the default board under another name: its tasks must not get into that one."""
    support.board(home / name)
    (home / "kanban.db").unlink()

    with opened(home / name) as gateway:
        assert lost(home, gateway) == []


@pytest.mark.parametrize("name", ["plugins/x/state.db", "state-of-a-plugin.db"])
def test_a_database_of_a_plugin(home: Path, name: str) -> None:
    """It has a similar name, but other tables."""
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home / name)) as db, db:
        db.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY)")
    (home / "state.db").unlink()

    with opened(home / name) as gateway:
        assert lost(home, gateway) == []


@pytest.mark.parametrize("name", ["state.db.txt", "old-state.db.md"])
def test_a_file_that_is_not_a_database(home: Path, name: str) -> None:
    """Whatever its name is."""
    support.put(home / name, "notes about state.db\n")
    (home / "state.db").unlink()

    with opened(home / name) as gateway:
        assert lost(home, gateway) == []


@pytest.mark.parametrize("then", ["kept", "deleted"])
@pytest.mark.parametrize("name", ["state.db.old", "old-state.db", "old/state.db"])
def test_a_renamed_history(home: Path, name: str, then: str) -> None:
    """It is found under any name, even if it was deleted after that."""
    (home / name).parent.mkdir(exist_ok=True)
    with opened(home / "state.db") as gateway:
        os.rename(home / "state.db", home / name)
        if then == "deleted":
            (home / name).unlink()

        [found] = lost(home, gateway)

    assert (found.database, found.path, found.cause) == (home / "state.db", home / name, "renamed")


def test_a_deleted_history_and_a_renamed_one(home: Path) -> None:
    """The deleted one is named, because nothing else has its data."""
    support.history(home / "state.db.old")
    with opened(home / "state.db.old", home / "state.db") as gateway:
        (home / "state.db").unlink()

        [found] = lost(home, gateway)

    assert found.cause == "deleted"
