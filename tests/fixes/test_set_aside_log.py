"""set-aside-log: a log or journal of another life of the file goes into the vault."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.helpers import crash_server, damage, fix_cycle, support
from tests.helpers.fix_contract import Planted
from tests.scenarios.test_foreign_log import damaged_log


def stale(home: Path) -> Path:
    """An older copy under the log of a newer life."""
    path = fix_cycle.history(home / "state.db", 600)
    older = shutil.copy(path, home / "older")
    damage.execute(path, "DELETE FROM messages WHERE id > 100", "VACUUM")
    damage.with_log(path)
    shutil.move(older, path)
    return path


def test_a_stale_log(home: Path) -> None:
    """The database is as it was without the log, whose rows are in the vault."""
    path = stale(home)
    alone = path.read_bytes()

    cured = fix_cycle.cure(home, "DB-WAL-STALE", "set-aside-log")

    assert path.read_bytes() == alone
    assert not Path(f"{path}-wal").exists()
    assert not Path(f"{path}-shm").exists()
    cured.undo()


def test_the_log_of_a_longer_database(home: Path) -> None:
    """Nothing is lost, the file keeps its bytes, and the log is kept under a name of its own."""
    path = damage.foreign_log(fix_cycle.history(home / "state.db", 600))
    alone, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    plan = support.doctor("fix", "DB-WAL-STALE", "--home", home).out
    assert "Only in it: 40 messages and 1 session" in " ".join(plan.split())

    cured = fix_cycle.cure(home, "DB-WAL-STALE", "set-aside-log")

    assert path.read_bytes() == alone
    [aside] = home.glob("state.db-wal*")
    assert aside.name.startswith("state.db-wal.aside-")
    assert aside.read_bytes() == log
    assert not Path(f"{path}-shm").exists()
    said = " ".join(cured.notes)
    assert "The database file was not changed" in said
    assert aside.name in said
    assert damage.sound(path)
    cured.undo()


@pytest.mark.sampled
@pytest.mark.parametrize("which", damage.VACUUMED)
def test_one_of_the_lives_was_vacuumed(home: Path, which: str) -> None:
    """The file keeps its bytes, and so all of its rows, also with --yes."""
    path = damage.vacuumed_life(fix_cycle.history(home / "state.db", 600), which)
    alone, sick = path.read_bytes(), support.contents(home)

    done = support.doctor("fix", "--apply", "--yes", "--home", home)

    assert done.code == 0, done.out
    assert "lost" not in done.out
    assert path.read_bytes() == alone
    assert not Path(f"{path}-wal").exists()
    assert damage.sound(path)
    assert {code for code in support.check(home).codes if "DB" in code} <= {"DB-WAL-ROWS"}
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert {name: data for name, data in support.contents(home).items() if name in sick} == sick


NEW = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', ?, 3e4)"


def written_since(home: Path, how: str = "closed") -> tuple[Path, Path, str]:
    """A history whose foreign log was set aside, and that Hermes has written to since."""
    path = damage.foreign_log(fix_cycle.history(home / "state.db"), before=200, after=8)
    assert fix_cycle.apply(home, "DB-WAL-STALE").code == 0
    [aside] = home.glob("state.db-wal.aside-*")
    run = crash_server.journals(home)[-1]["id"]
    left: dict[Path, bytes] = {}
    with damage.opened(path) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        for number in range(50):
            db.execute(NEW, (f"new {number}",))
        if how == "killed":
            left = {one: one.read_bytes() for one in home.glob("state.db*") if one != aside}
    for one, data in left.items():
        one.write_bytes(data)
    return path, aside, run


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("command", ["undo", "restore"])
def test_the_database_was_written_to_since(home: Path, command: str, how: str) -> None:
    """The foreign log does not go back over new rows: it is refused, with a way to its rows."""
    _, aside, run = written_since(home, how)
    before = support.contents(home)
    words = ("undo", run) if command == "undo" else ("backup", "restore", run)

    done = support.doctor(*words, "--yes", "--home", home)

    said = " ".join((done.out + done.err).split())
    assert done.code == 2, said
    assert "Nothing was changed" in said and aside.name in said, said
    assert support.contents(home) == before
    assert "DB-WAL-ROWS" in support.check(home).codes


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["closed", "killed"])
def test_undo_by_force_saves_the_database(home: Path, how: str) -> None:
    """The log goes back over new rows; the undo of that brings them back, also once it did harm."""
    path, _, run = written_since(home, how)
    before = support.contents(home)

    forced = support.doctor("undo", run, "--force", "--yes", "--home", home)
    assert forced.code == 0, forced.out + forced.err
    second = crash_server.journals(home)[-1]["id"]
    with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error):
        db.execute(NEW, ("into the mixed file",))
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    back = support.doctor("undo", second, "--force", "--yes", "--home", home)

    assert back.code == 0, back.out + back.err
    now = support.contents(home)
    assert {name: now.get(name) for name in before} == before
    assert sum(text.startswith("new ") for text in _contents(path)) == 50
    assert damage.sound(path)


def test_undo_saves_the_database_that_is_the_same(home: Path) -> None:
    """Nothing was written since: the log goes back, and the database is in the vault as well."""
    path = damage.foreign_log(fix_cycle.history(home / "state.db"), before=200, after=8)
    alone = path.read_bytes()
    assert fix_cycle.apply(home, "DB-WAL-STALE").code == 0

    done = support.doctor("undo", "--yes", "--home", home)

    assert done.code == 0, done.out + done.err
    assert path.read_bytes() == alone
    undo = crash_server.journals(home)[-1]["id"]
    assert (home / "backups" / "doctor" / undo / "files" / "state.db").read_bytes() == alone


def test_a_receipt_of_an_earlier_version(home: Path) -> None:
    """It does not say what the database was: then it counts as changed."""
    damage.foreign_log(fix_cycle.history(home / "state.db"), before=200, after=8)
    assert fix_cycle.apply(home, "DB-WAL-STALE").code == 0
    [receipt] = home.glob("backups/doctor/runs/*/run.json")
    document = json.loads(receipt.read_text())
    for record in document["paths"]:
        del record["database"]
    receipt.write_text(json.dumps(document))

    done = support.doctor("undo", "--yes", "--home", home)

    assert done.code == 2
    assert "state.db has changed since" in " ".join(done.err.split())
    assert not (home / "state.db-wal").exists()


def _contents(path: Path) -> list[str]:
    with damage.opened(path) as db:
        return [str(text) for (text,) in db.execute("SELECT content FROM messages")]


def test_damaged_rows_in_its_own_log(home: Path) -> None:
    """No repair may lose rows that the sound file has; those of the log can be added."""
    path = damaged_log(fix_cycle.history(home / "state.db", 600), "messages")
    alone = path.read_bytes()

    fix_cycle.cure(home, "DB-WAL-STALE", "set-aside-log")

    assert path.read_bytes() == alone
    before = set(fix_cycle.messages(path))
    [aside] = home.glob("state.db-wal.aside-*")
    added = fix_cycle.apply(home, "DB-WAL-ROWS")
    assert added.code == 0, added.out
    assert before < set(fix_cycle.messages(path))
    assert damage.sound(path)
    assert not aside.exists()


def test_yes_does_not_add_rows(home: Path) -> None:
    """--yes alone does not choose to add the rows of the log."""
    path = damage.foreign_log(fix_cycle.history(home / "state.db", 600))
    alone = path.read_bytes()

    done = support.doctor("fix", "--apply", "--yes", "--home", home)

    assert path.read_bytes() == alone
    assert list(home.glob("state.db-wal.aside-*"))
    assert "fix DB-WAL-ROWS --apply" in done.out


def test_another_database(home: Path) -> None:
    """Rows of a board are never added again: its log only goes into the vault."""
    path = damage.foreign_log(fix_cycle.history(home / "kanban.db", 600))
    alone = path.read_bytes()

    cured = fix_cycle.cure(home, "DB-WAL-STALE", "set-aside-log", "kanban.db")

    assert path.read_bytes() == alone
    assert [file.name for file in home.glob("kanban.db*")] == ["kanban.db"]
    cured.undo()


def test_a_foreign_journal(home: Path) -> None:
    """It would take rows away at the next start."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    beside = Path(shutil.copy(path, home / "beside.db"))
    with damage.opened(beside) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA cache_size=5")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE messages SET role = 'x' WHERE id < 200")
        shutil.copy(f"{beside}-journal", f"{path}-journal")
        db.execute("ROLLBACK")
    beside.unlink()

    cured = fix_cycle.cure(home, "DB-JOURNAL", "set-aside-log")

    assert fix_cycle.messages(path) == kept
    assert not Path(f"{path}-journal").exists()
    cured.undo()


def test_a_log_beside_the_journal_stays(home: Path) -> None:
    """Only what was proven to be foreign moves: the log holds rows that are nowhere else."""
    path = damage.with_log(fix_cycle.history(home / "state.db"), index=False)
    log = Path(f"{path}-wal").read_bytes()
    other = damage.cut_off_transaction(damage.history(home / "other.db"), damage.MANY)
    shutil.move(f"{other}-journal", f"{path}-journal")
    other.unlink()

    cured = fix_cycle.cure(home, "DB-JOURNAL", "set-aside-log")

    assert Path(f"{path}-wal").read_bytes() == log
    assert not Path(f"{path}-journal").exists()
    cured.undo()


def test_it_asks_first(home: Path) -> None:
    """A log may hold the newest rows, so somebody has to say yes."""
    stale(home)
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--home", home)

    assert done.code == 1
    assert "asks first" in done.out
    assert support.contents(home) == sick


def test_a_log_beside_rollback_mode(home: Path) -> None:
    """The database keeps its newer rows."""
    path = damage.with_log(fix_cycle.history(home / "state.db", 600), index=False)
    log = Path(shutil.copy(f"{path}-wal", home / "old-log"))
    with damage.opened(path) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        for n in range(20):
            damage.add(db, 50_000 + n)
    wanted = fix_cycle.messages(path)
    shutil.move(log, f"{path}-wal")

    cured = fix_cycle.cure(home, "DB-WAL-STALE", "set-aside-log")

    assert fix_cycle.messages(path) == wanted
    assert not Path(f"{path}-wal").exists()
    cured.undo()


PLANTED = Planted("DB-WAL-STALE", stale)
