"""Schemas of real releases: whole ones raise nothing, lost parts come back and Hermes works."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.operations.learning.isolation import DoesNotStart
from hermes_doctor.operations.learning.lessons import schema_changes
from hermes_doctor.sqlite import blueprint
from tests.conftest import RELEASES, need_release, once
from tests.helpers import support
from tests.helpers.real.release_homes import ROWS, MakeHome, Patient, cure, lose, undo
from tools import lessons, releases

pytestmark = pytest.mark.real
Full = Callable[[str], Patient]
MESSAGES = [f"message number {n}" for n in range(40)]
CODES = ("KANBAN-SCHEMA", "DB-SCHEMA", "DB-NEWER")
OTHERS = [name for name in atlas.DATABASES if name != "state.db"]

WRITES = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.append_message("one", "user", "a walrus sings")
history.get_messages_as_conversation("one")
history.list_sessions_rich(limit=5)
print(len(history.search_messages("walrus")), len(history.search_messages("message")) > 0)
history.close()
"""
"""Adds a message and searches for it and for the older ones."""
FIND = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
print(len(history.search_messages("walrus")))
history.close()
"""


@pytest.fixture(params=RELEASES)
def patient(request: pytest.FixtureRequest, hermes_home: MakeHome) -> Patient:
    """A healthy home of each of the three releases."""
    version: str = request.param
    return Patient(version, hermes_home(version))


@pytest.fixture
def full(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Full:
    """Homes with every database that a release can make, used by it; made once a session."""

    def make(version: str) -> Patient:
        def visit(folder: Path) -> None:
            lessons.empty(folder / "fresh")
            lessons.visit(version, folder)

        need_release(version)
        shared = once(tmp_path_factory, f"full-{version}", visit)
        return Patient(version, support.copy_home(shared / "fresh", tmp_path / "homes" / "fresh"))

    return make


def complaints(patient: Patient) -> list[str]:
    """The codes that speak of a schema; the look itself must have worked."""
    done = patient.check()
    [look] = [one for one in done.json["checks"] if one["id"] == "database-schema"]
    assert look["status"] in ("ok", "problem"), look
    return [code for code in done.codes if code in CODES]


@pytest.mark.parametrize("version", releases.ALL)
def test_whole(version: str, full: Full) -> None:
    """Every database of every release, lazily made tables included, lacks nothing."""
    patient = full(version)
    assert {name for name in atlas.DATABASES if atlas.blueprint(name, version)} == {
        name for name in atlas.DATABASES if (patient.home / name).exists()
    }

    assert complaints(patient) == []


@pytest.mark.parametrize("path", [("0.13.0", "0.19.0"), ("0.13.0", "0.16.0", "0.18.1", "0.19.0")])
def test_upgraded(path: tuple[str, ...], full: Full, tmp_path: Path) -> None:
    """Before an upgraded Hermes starts, what is missing is a warning; afterwards nothing is."""
    patient = full(path[0])
    before = Patient(path[-1], patient.home).check()
    assert {f["severity"] for f in before.json["findings"] if f["code"] in CODES} == {"warning"}
    for version in path[1:]:
        need_release(version)
        lessons.visit(version, tmp_path / "homes")

    assert complaints(Patient(path[-1], patient.home)) == []


@pytest.mark.wide
def test_an_older_hermes_again(full: Full) -> None:
    """After a downgrade the file has more than the release asks for, which is no fault."""
    patient = full("0.19.0")
    need_release("0.16.0")

    assert complaints(Patient("0.16.0", patient.home)) == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    "column",
    [("messages", "role"), ("messages", "timestamp"), ("sessions", "started_at")],
    ids=".".join,
)
def test_column_of_the_history(patient: Patient, column: tuple[str, str]) -> None:
    """Hermes dies on the history; with the column back it reads, writes and finds everything."""
    assert complaints(patient) == []
    lose(patient.home / "state.db", column)
    sick = support.contents(patient.home)

    found = patient.finding("DB-SCHEMA")
    assert (found["severity"], found["subject"]) == ("error", "state.db")
    assert ".".join(column) in found["evidence"][0]["what"]
    with pytest.raises(RuntimeError, match=r"sqlite3\.OperationalError"):
        patient.ask(WRITES)

    cure(patient, "DB-SCHEMA")
    assert patient.ask(WRITES).split() == ["1", "True"]
    assert patient.ask(ROWS).splitlines() == MESSAGES

    undo(patient, sick)


@pytest.mark.sampled
@pytest.mark.parametrize("version", ["0.13.0", "0.18.0", "0.19.0"])
@pytest.mark.parametrize("database", OTHERS)
def test_column_of_every_other_database(
    database: str, version: str, full: Full, tmp_path: Path
) -> None:
    """The first column that the release dies without and that can be made up for."""
    plan = atlas.blueprint(database, version)
    if plan is None:
        pytest.skip(f"{version} has no {database}")
    columns = [
        (table.name, column.name)
        for table in plan.tables.values()
        for column in table.columns
        if column.if_missing == "crash" and blueprint.value_for_old_rows(table, column) is not None
        if not column.key
    ]
    patient = full(version)
    lose(patient.home / database, columns[0])
    sick = support.contents(patient.home)
    code = "KANBAN-SCHEMA" if database == "kanban.db" else "DB-SCHEMA"

    assert patient.finding(code)["severity"] == "error"
    shutil.copytree(patient.home, tmp_path / "tried" / "home")
    with pytest.raises(DoesNotStart):
        lessons.visit(version, tmp_path / "tried")

    cure(patient, code)
    shutil.copytree(patient.home, tmp_path / "worked" / "home")
    lessons.visit(version, tmp_path / "worked")

    undo(patient, sick)


def test_trigger(patient: Patient) -> None:
    """0.13.0 never creates it again: searches miss messages. Later releases do; so does the fix."""
    with contextlib.closing(sqlite3.connect(patient.home / "state.db")) as db, db:
        db.execute("DROP TRIGGER messages_fts_insert")
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " VALUES ('one', 'user', 'a walrus sings', 1)"
        )
    sick = support.contents(patient.home)

    found = patient.finding("DB-SCHEMA")
    assert found["evidence"][0]["what"] == "missing trigger: messages_fts_insert"
    if patient.version == "0.13.0":
        assert (found["severity"], patient.ask(FIND).split()) == ("error", ["0"])
    else:
        assert (found["severity"], patient.ask(FIND).split()) == ("info", ["1"])
    cure(patient, "DB-SCHEMA")
    assert patient.ask(WRITES).split() == ["2", "True"]
    undo(patient, sick)


def test_columns_of_both_kinds(patient: Patient) -> None:
    """One that Hermes never adds and one that it adds itself are added together."""
    lose(patient.home / "state.db", ("messages", "role"), ("sessions", "end_reason"))
    sick = support.contents(patient.home)

    cure(patient, "DB-SCHEMA")

    assert patient.ask(WRITES).split() == ["1", "True"]
    undo(patient, sick)


BOARD = """
import os
from pathlib import Path
from hermes_cli import kanban_db
board = kanban_db.connect(Path(os.environ["HERMES_HOME"]) / "kanban.db")
kanban_db.create_task(board, title="one more", body="its text")
print(len(kanban_db.list_tasks(board)))
board.close()
"""


def test_a_lost_default(patient: Patient) -> None:
    """Every release dies of it at the next task, and none puts it right."""
    with contextlib.closing(sqlite3.connect(patient.home / "kanban.db")) as db:
        schema_changes.redeclare(db, "tasks", "consecutive_failures", schema_changes.BARE)
    sick = support.contents(patient.home)
    found = patient.finding("KANBAN-SCHEMA")
    assert (found["severity"], found["fix"]["id"]) == ("error", "complete-schema")
    with pytest.raises(RuntimeError, match="NOT NULL constraint failed"):
        patient.ask(BOARD)

    cure(patient, "KANBAN-SCHEMA")

    assert patient.ask(BOARD) == "4\n"
    undo(patient, sick)


def test_a_trigger_that_does_nothing(patient: Patient) -> None:
    """No release notices: what it writes is not found. With the trigger as declared it is."""
    with contextlib.closing(sqlite3.connect(patient.home / "state.db")) as db, db:
        db.execute("DROP TRIGGER messages_fts_insert")
        db.execute(
            "CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN SELECT 1; END"
        )
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " VALUES ('one', 'user', 'a walrus sings', 1)"
        )
    sick = support.contents(patient.home)
    found = patient.finding("DB-SCHEMA")
    assert (found["severity"], found["fix"]["id"]) == ("error", "complete-schema")
    assert patient.ask(FIND).split() == ["0"]

    cure(patient, "DB-SCHEMA")

    assert patient.ask(WRITES).split() == ["2", "True"]
    undo(patient, sick)


def test_index(patient: Patient) -> None:
    """Every release creates a lost index again: a note, and the fix can add it, too."""
    with contextlib.closing(sqlite3.connect(patient.home / "state.db")) as db, db:
        db.execute("DROP INDEX idx_messages_session")
    sick = support.contents(patient.home)

    found = patient.finding("DB-SCHEMA")

    assert (found["severity"], found["fix"]["id"]) == ("info", "complete-schema")
    assert patient.check().code == 0
    cure(patient, "DB-SCHEMA")
    undo(patient, sick)


def test_newer(patient: Patient) -> None:
    """A schema version beyond the atlas: told of, and whatever it lacks is left alone."""
    with contextlib.closing(sqlite3.connect(patient.home / "state.db")) as db, db:
        db.execute("UPDATE schema_version SET version = 999")
    lose(patient.home / "state.db", ("messages", "role"))
    sick = support.contents(patient.home)

    assert complaints(patient) == ["DB-NEWER"]
    assert patient.finding("DB-NEWER")["severity"] == "warning"  # it was downgraded
    assert patient.doctor("fix", "--apply", "--yes").code == 0
    assert support.contents(patient.home) == sick
