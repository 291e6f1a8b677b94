"""A database at rest that somebody begins to work on, and one in use that /proc does not show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import whole_backup
from hermes_doctor.backup.vault.manifest import BackupSource
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.sqlite.exclusive import in_use
from tests.helpers import support
from tests.helpers.database_writer import ROWS, Once, Writer, back_up, half_done, versions, writing
from tests.helpers.warm_server import ROOT


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a database at rest, whose writer was killed: the log lies beside it."""
    support.put(tmp_path / "home" / "config.yaml", support.CONFIG)
    with writing(tmp_path / "home" / "state.db") as writer:
        writer.write(1)
        writer.checkpoint("TRUNCATE")
        writer.write(2)
    return tmp_path / "home"


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process shows, as when it runs in another container."""
    monkeypatch.setattr(gateway_processes, "processes_with_open", lambda paths: {})


# -- at rest -------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("copied", ["state.db", "state.db-wal"])
def test_somebody_comes_and_goes_meanwhile(home: Path, tmp_path: Path, copied: str) -> None:
    """A process that works on it between the copies and ends: they are made again."""

    def work() -> None:
        with writing(home / "state.db") as writer:
            writer.write(3)
            writer.checkpoint("TRUNCATE")

    meanwhile = Once(half_done(home, copied), work)

    made = back_up(home, meanwhile)

    assert meanwhile.happened
    assert versions(made, "state.db", tmp_path / "out") == [(3, ROWS)]


@pytest.mark.sampled
@pytest.mark.parametrize("copied", ["state.db", "state.db-wal"])
@pytest.mark.usefixtures("unseen")
def test_somebody_comes_and_stays(home: Path, tmp_path: Path, copied: str) -> None:
    """A process that begins to work on it and stays: it is taken through SQLite."""
    came: list[Writer] = []

    def work() -> None:
        came.append(Writer(home / "state.db", "WAL"))
        came[0].write(3)
        came[0].checkpoint("TRUNCATE")
        came[0].write(4)

    try:
        made = back_up(home, Once(half_done(home, copied), work))
    finally:
        for writer in came:
            writer.end()

    entry = made.entry("state.db")
    assert entry is not None
    assert (entry.method, entry.integrity) == ("sqlite", "ok")
    assert made.entry("state.db-wal") is None
    assert versions(made, "state.db", tmp_path / "out") == [(4, ROWS)]


def test_nobody_comes(home: Path, tmp_path: Path) -> None:
    """Left alone it is copied byte for byte, log and all."""
    made = back_up(home)

    for name in ("state.db", "state.db-wal"):
        entry = made.entry(name)
        assert entry is not None
        assert entry.method == "bytes"
        assert made.copy_of(entry).read_bytes() == (home / name).read_bytes()
    assert versions(made, "state.db", tmp_path / "out") == [(2, ROWS)]


# -- at rest, in the middle of a change ----------------------------------------------------


def _killed_half_way(database: Path) -> None:
    """Another writer has begun to bring a change into the file."""
    with writing(database, "DELETE") as other:
        other.tell("PRAGMA cache_size=5", "BEGIN", "UPDATE entries SET version = 2")
    assert database.with_name(database.name + "-journal").stat().st_size


def test_a_change_half_way_in_a_database_that_somebody_has_open(tmp_path: Path) -> None:
    """Only the journal tells what was there before: it belongs to the copy."""
    home = tmp_path / "home"
    support.put(home / "config.yaml", support.CONFIG)
    with writing(home / "kanban.db", "DELETE") as idle:
        idle.write(1)
        _killed_half_way(home / "kanban.db")

        made = back_up(home)

    assert versions(made, "kanban.db", tmp_path / "out") == [(1, ROWS)]


def test_a_change_half_way_since_the_files_were_listed(tmp_path: Path) -> None:
    """What lies beside a database counts when it is copied, not when it was found."""
    home = tmp_path / "home"
    support.put(home / "config.yaml", support.CONFIG)
    with writing(home / "kanban.db", "DELETE") as first:
        first.write(1)
    sources = whole_backup.list_sources(Home(home))
    _killed_half_way(home / "kanban.db")

    made = Vault(Home(home)).create(sources, reason="a test", hermes=None, whole=True)

    assert versions(made, "kanban.db", tmp_path / "out") == [(1, ROWS)]


def test_a_log_since_the_files_were_listed(home: Path, tmp_path: Path) -> None:
    """The same of a log that holds what was committed."""
    for end in ("-wal", "-shm"):
        (home / f"state.db{end}").unlink()
    sources = whole_backup.list_sources(Home(home))
    with writing(home / "state.db") as writer:
        writer.write(3)

    made = Vault(Home(home)).create(sources, reason="a test", hermes=None, whole=True)

    assert versions(made, "state.db", tmp_path / "out") == [(3, ROWS)]


# -- in use, unseen ------------------------------------------------------------------------


@pytest.mark.usefixtures("unseen")
def test_its_locks_tell(home: Path) -> None:
    """A database that somebody has locked is in use, whether a process shows or not."""
    with writing(home / "state.db") as writer:
        writer.tell("SELECT count(*) FROM entries")

        sources = {source.path.name: source for source in whole_backup.list_sources(Home(home))}

    assert sources["state.db"].live
    assert "state.db-wal" not in sources, "the copy through SQLite has what is in it"
    assert not any(source.live for source in whole_backup.list_sources(Home(home)))


@pytest.mark.usefixtures("unseen")
def test_a_lock_is_seen_while_it_is_copied(home: Path, tmp_path: Path) -> None:
    """Nobody showed when the files were listed; the locks are looked at again after the copy."""
    names = ("state.db", "state.db-wal", "state.db-shm")
    sources = [
        BackupSource(name, str(home / name), snapshot(home / name), patient=True) for name in names
    ]
    with writing(home / "state.db") as writer:
        writer.tell("SELECT count(*) FROM entries")

        made = Vault(Home(home)).create(sources, reason="a test", hermes=None)

    assert [(entry.path, entry.method) for entry in made.entries] == [("state.db", "sqlite")]
    assert versions(made, "state.db", tmp_path / "out") == [(2, ROWS)]


def test_in_another_container(home: Path, tmp_path: Path) -> None:
    """The same for real: the command cannot see the processes of the outside."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    able = os.geteuid() == 0 and shutil.which("unshare") is not None
    if not able or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("a container of its own needs root")
    command = [*apart, sys.executable, "-m", "hermes_doctor", "backup", "create"]
    with writing(home / "state.db") as writer:
        writer.write(3)

        done = subprocess.run(
            [*command, "--home", str(home)], cwd=ROOT, capture_output=True, text=True
        )

        assert done.returncode == 0, done.stderr
        store = Vault(Home(home))
        [made] = [store.load(id) for id in store.ids()]
    entry = made.entry("state.db")
    assert entry is not None
    assert (entry.method, entry.integrity) == ("sqlite", "ok")
    assert versions(made, "state.db", tmp_path / "out") == [(3, ROWS)]


# -- locks ---------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database without a log."""
    return support.database(tmp_path / "one.db", "CREATE TABLE entries (id, version, filler)")


def test_what_counts_as_in_use(database: Path) -> None:
    """A connection with a log always, one without while it reads or writes; and nothing else."""
    assert not in_use(database)
    with writing(database, "DELETE") as writer:
        assert not in_use(database)
        writer.tell("BEGIN", "SELECT count(*) FROM entries")
        assert in_use(database)
        writer.tell("COMMIT")
        assert not in_use(database)
        writer.tell("BEGIN IMMEDIATE")
        assert in_use(database)
        writer.tell("ROLLBACK")
    with writing(database, "WAL") as writer:
        writer.tell("SELECT count(*) FROM entries")
        assert in_use(database)
    assert not in_use(database), "its process is gone"


@pytest.mark.parametrize("kind", ["absent", "folder", "fifo", "symlink", "text"])
def test_what_is_no_database(tmp_path: Path, kind: str) -> None:
    """Whatever lies there, the question has an answer at once."""
    path = tmp_path / "odd.db"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "symlink":
        path.symlink_to(path)
    elif kind == "text":
        path.write_text("text")

    assert in_use(path) is False
