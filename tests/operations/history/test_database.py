"""The file of the history: private, migrated, left alone if newer, set aside if damaged."""

from __future__ import annotations

import ast
import os
import sqlite3
from pathlib import Path

import pytest

import hermes_doctor
from hermes_doctor.core.model import Trouble
from hermes_doctor.operations.history import database, layout
from hermes_doctor.operations.history.database import Damaged, transaction
from hermes_doctor.operations.history.layout import APPLICATION, VERSION, NewerHistory, from_text

ENGINE = Path(hermes_doctor.__file__).parent


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A new history without rows."""
    path = tmp_path / "state" / "history.db"
    with transaction(path):
        pass
    return path


def aside(path: Path) -> list[str]:
    """The names beside a history."""
    return sorted(one.name for one in path.parent.iterdir() if one != path)


def test_only_one_module_imports_sqlite_utils() -> None:
    """The others read with Python's own sqlite3, which loads faster; types do not count."""
    importing = set()
    for path in [one for one in ENGINE.rglob("*.py") if "sqlite_utils" in one.read_text()]:
        tree = ast.parse(path.read_text())
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "sqlite_utils" for name in names):
                importing.add(path.relative_to(ENGINE).as_posix())
    assert importing == {"operations/history/database.py"}


def test_private_and_alone(file: Path) -> None:
    """Only its owner may read it, and no other file stays beside it."""
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert aside(file) == []


def test_the_tables(file: Path) -> None:
    """They are marked with our id and version, and known to sqlite-utils as migrated."""
    db = sqlite3.connect(file)
    names = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    pragmas = [db.execute(f"PRAGMA {n}").fetchone()[0] for n in ("application_id", "user_version")]
    db.close()

    assert names == {"homes", "episodes", "hours", "marks", "_sqlite_migrations"}
    assert pragmas == [APPLICATION, VERSION]


def test_a_failure_writes_nothing(file: Path) -> None:
    """A transaction that raises leaves the file as it was."""
    before = file.read_bytes()
    with pytest.raises(Trouble, match="stop"), transaction(file) as db:
        db.table("hours").insert({"home": 1, "hour": "x", "working": 1, "limited": 0, "silent": 0})
        raise Trouble("stop")

    assert file.read_bytes() == before and aside(file) == []


def test_a_newer_history_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a byte of it changes."""
    monkeypatch.setattr(layout, "VERSION", 0)
    before = file.read_bytes()
    with pytest.raises(NewerHistory, match="newer hermes-doctor"), transaction(file):
        pytest.fail("it was opened")

    assert file.read_bytes() == before


@pytest.mark.parametrize("kind", ["symlink", "dangling", "folder", "fifo"])
def test_not_a_regular_file(kind: str, tmp_path: Path) -> None:
    """A link is not followed, and nothing else in its place is touched."""
    path, target = tmp_path / "history.db", tmp_path / "target"
    if kind == "symlink":
        target.write_bytes(b"precious")
    if kind in ("symlink", "dangling"):
        path.symlink_to(target)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(Trouble, match="not a regular file"), transaction(path):
        pytest.fail("it was opened")

    assert target.exists() == (kind == "symlink")
    assert kind != "symlink" or target.read_bytes() == b"precious"


def damage(file: Path, kind: str) -> None:
    """Damage a history in one of many ways."""
    data = file.read_bytes()
    if kind == "no database":
        file.write_bytes(b"hello " * 100)
    elif kind == "torn":
        file.write_bytes(data[: len(data) // 2])
    elif kind == "zeros":
        file.write_bytes(data[:4096] + bytes(len(data) - 4096))
    else:
        db = sqlite3.connect(file)
        db.executescript(
            {
                "another program's": "PRAGMA application_id = 1",
                "without a table": "DROP TABLE hours",
                "other columns": "ALTER TABLE homes RENAME COLUMN path TO place",
            }[kind]
        )
        db.close()


KINDS = ["no database", "torn", "zeros", "another program's", "without a table", "other columns"]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_recognized(kind: str, file: Path) -> None:
    """Whatever is wrong with it is one kind of error, which names the file that it was."""
    damage(file, kind)
    with pytest.raises(Damaged) as caught, transaction(file, verify=True) as db:
        assert list(db.table("hours").rows) == []
        assert [row["path"] for row in db.table("homes").rows] == []
        db.execute("SELECT path FROM homes")

    assert caught.value.inode == file.stat().st_ino and str(caught.value)


def test_set_aside(file: Path) -> None:
    """With its journal, which would otherwise be played back into the next history."""
    journal = file.with_name("history.db-journal")
    journal.write_bytes(b"old")
    made = database.set_aside(file, file.stat().st_ino)

    assert made is not None and not file.exists() and not journal.exists()
    assert aside(file) == [made.name, f"{made.name}-journal"]
    assert database.set_aside(file, 1) is None, "it is gone"
    file.write_bytes(b"")
    assert database.set_aside(file, 1) is None, "another process has started a new one"


def test_few_are_kept(file: Path) -> None:
    """The oldest of the damaged files are removed."""
    for _ in range(6):
        file.write_bytes(b"x")
        database.set_aside(file, file.stat().st_ino)

    assert len(aside(file)) == database.KEPT


def test_a_write_ahead_log_is_ended(file: Path) -> None:
    """If somebody switched it on, the next writer switches it off: readers shall leave no trace."""
    db = sqlite3.connect(file)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    with transaction(file):
        pass

    assert file.read_bytes()[18:20] == b"\1\1" and aside(file) == []


def test_a_folder_that_may_not_be_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process holds the lock for longer than we wait: one line, and nothing is lost."""
    monkeypatch.setattr(database, "WAIT", 0.1)
    other = sqlite3.connect(file)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Trouble, match="locked"), transaction(file):
        pytest.fail("it was written")
    other.close()
    database.vacuum(file)
    with transaction(file, verify=True):
        pass


def test_an_older_history_gets_new_columns(file: Path) -> None:
    """Version 1 did not know with which options a problem was found; its rows stay."""
    db = sqlite3.connect(file)
    db.executescript(
        "ALTER TABLE episodes DROP COLUMN options; ALTER TABLE homes DROP COLUMN due;"
        "PRAGMA user_version = 1;"
        "DELETE FROM _sqlite_migrations WHERE name = '2';"
        "INSERT INTO homes (path, identity, first_seen, last_seen) VALUES ('/x', 'b1:2', 'a', 'b')"
    )
    db.close()
    with transaction(file, verify=True) as found:
        assert "options" in found.table("episodes").columns_dict
        assert [row["path"] for row in found.table("homes").rows] == ["/x"]


def test_a_bug_is_no_damage(file: Path) -> None:
    """Only what is stored can be damaged: another error stays what it is."""
    with pytest.raises(AttributeError), transaction(file):
        raise AttributeError
    with pytest.raises(Damaged, match="impossible values"), transaction(file):
        from_text("yesterday")
