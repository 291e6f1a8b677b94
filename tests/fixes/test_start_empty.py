"""start-empty: a new database where nothing of the old one can be read and no copy exists."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.core.system import disk
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.watch.consent import refusal
from hermes_doctor.repair.planning import database_repair
from hermes_doctor.repair.transaction.plan import PlannedItem
from hermes_doctor.sqlite.examine import first_page
from hermes_doctor.sqlite.examine.soundness import integrity_errors
from tests.checks.test_database_header import OTHERS
from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_contract import Planted
from tests.scenarios.test_steps import apply, item


def as_the_release_makes_it(path: Path, name: str) -> None:
    """Assert that a database is sound, empty, and has every table of the newest release."""
    plan = support.plan(name)
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
        assert integrity_errors(db) == []
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        main = {"state.db": "messages", "kanban.db": "tasks"}[name]
        assert db.execute(f"SELECT count(*) FROM {main}").fetchone() == (0,)
    assert path.read_bytes()[18:20] == b"\2\2", "a write-ahead log, as Hermes uses it"
    wanted = {one.name for one in plan.tables.values() if not one.created_on_demand}
    assert wanted <= tables


@pytest.mark.sampled(one_of=3)
@pytest.mark.parametrize("name", ["state.db", "kanban.db", "kanban/boards/team/kanban.db"])
@pytest.mark.parametrize("case", ["zeros", "zip", "text", "random"])
def test_another_file(home: Path, case: str, name: str) -> None:
    """The damaged file is kept, mode and owner stay, the loss is said, and undo restores it."""
    path = support.put(home / name, OTHERS[case][0], 0o640)

    cured = fix_cycle.cure(home, "DB-NOTADB", "start-empty", name)

    as_the_release_makes_it(path, path.name)
    assert path.stat().st_mode & 0o777 == 0o640
    lost = "All messages and sessions" if path.name == "state.db" else "All tasks"
    [note] = cured.notes
    assert note.startswith(f"{lost} are lost: nothing in the file can be read")
    assert note.endswith("The damaged file is kept in the backup.")
    cured.undo()


def test_a_database_of_unknown_structure(home: Path) -> None:
    """Hermes creates it again, so it is only removed; the loss is said, and undo restores it."""
    support.put(home / "retaindb_queue.db", OTHERS["text"][0])

    cured = fix_cycle.cure(home, "DB-NOTADB", "start-empty", "retaindb_queue.db")

    assert not (home / "retaindb_queue.db").exists()
    assert any("All data of retaindb_queue.db is lost" in note for note in cured.notes)
    assert support.check(home).codes == []
    cured.undo()


@pytest.mark.parametrize("how", ["no bytes", "gone"])
def test_an_empty_or_missing_file(home: Path, how: str) -> None:
    """The session files stay, and the plan names them."""
    support.put(home / "sessions" / "one.jsonl", "{}\n")
    path = home / "state.db"
    os.truncate(path, 0)
    if how == "gone":
        path.unlink()
    code = "DB-GONE" if how == "gone" else "DB-EMPTY"
    plan = " ".join(support.doctor("fix", code, "--home", home).out.split())
    assert "All messages and sessions are lost" in plan
    assert "1 session file in sessions/ is kept" in plan

    cured = fix_cycle.cure(home, code, "start-empty")

    as_the_release_makes_it(path, "state.db")
    assert support.check(home).codes == []
    cured.undo()
    assert path.exists() is (how == "no bytes")


def test_yes_alone_gives_up_nothing(home: Path) -> None:
    """`--yes` agrees to it only if the code is named, because the loss is total."""
    support.put(home / "state.db", OTHERS["text"][0])
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--yes", "--home", home)

    assert done.code == 1
    said = " ".join(done.out.split())
    assert f"name the code: hermes-doctor fix DB-NOTADB --apply --yes --home {home}" in said
    assert support.contents(home) == sick


def test_rows_that_no_salvage_understands(home: Path) -> None:
    """A database with rows is never given up, even if this tool cannot read them."""
    path = home / "state.db"
    path.unlink()
    with damage.opened(path) as db:
        db.execute("PRAGMA encoding='UTF-16le'")
        db.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)")
        for number in range(300):
            db.execute("INSERT INTO messages (content) VALUES (?)", (f"message {number} " * 20,))
    path.chmod(0o600)
    damage.zero(path, damage.kind_pages(path, 0x0D)[-2])
    sick = support.contents(home)

    done = fix_cycle.apply(home, "DB-MALFORMED")

    assert done.code == 1
    assert "Copy the file to a safe place, then restore a backup." in " ".join(done.out.split())
    assert support.contents(home) == sick


def test_looking_copies_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the repair itself tries to save rows: a check may not fill the temporary folder."""
    path = support.put(home / "state.db", OTHERS["text"][0])
    support.put(home / "state.db-wal", b"x" * 100)
    copied: list[object] = []
    monkeypatch.setattr(disk, "copy", lambda *files, **_: copied.append(files))

    steps = list(database_repair.start_empty(Probes(Home(home)), path))

    assert (len(steps), copied) == (1, [])


def test_rows_at_the_end_of_a_large_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page is read before a file is given up, also those that a check does not read."""
    monkeypatch.setattr(first_page, "_MOST_PAGES", 4)
    history = (home / "state.db").read_bytes()
    path = support.put(home / "state.db", b"\xff" * 4096 * 8 + history[4096:])
    sick = support.contents(home)
    [step] = database_repair.start_empty(Probes(Home(home)), path)

    done = apply(home, item(step))

    assert done.items[0].outcome == "refused"
    assert "may still have rows" in (done.items[0].reason or "")
    assert {**support.contents(home), **sick} == support.contents(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_in_the_home_of_another_user(home: Path) -> None:
    """The new database belongs to the owner of the home, and so does one that was missing."""
    support.put(home / "state.db", OTHERS["text"][0])
    (home / "kanban.db").unlink()
    support.put(home / "kanban/workspaces/t1/notes", "x")
    for path in (home, *home.rglob("*")):
        os.chown(path, 4242, 4242)

    for code in ("DB-NOTADB", "DB-GONE"):
        assert fix_cycle.apply(home, code).code == 0

    assert {(home / name).stat().st_uid for name in ("state.db", "kanban.db")} == {4242}


def test_a_watch_never_gives_up_data() -> None:
    """Whatever the operator agreed to beforehand."""
    fix = next(one for one in load.load().fixes if one.id == "start-empty")
    finding = Finding("DB-NOTADB", Severity.CRITICAL, "state.db cannot be opened", "state.db")

    said = refusal(PlannedItem(finding, fix, ()), frozenset({"DB-NOTADB", "start-empty"}))

    assert said == "start-empty loses data, so you have to decide"


PLANTED = Planted("DB-NOTADB", lambda home: support.put(home / "state.db", OTHERS["text"][0]))
