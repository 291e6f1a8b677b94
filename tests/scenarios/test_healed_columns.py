"""KANBAN-SCHEMA, DB-SCHEMA: columns that Hermes would add itself are added on request, too."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.transaction.plan import PlannedItem, plan
from tests.checks.test_database_schema import COLUMNS, NEWEST, World, board, history, look
from tests.fixes.test_complete_schema import lose
from tests.helpers import support

ALL_HEALED = [(table, name) for table, name, facts in COLUMNS if facts.if_missing == "healed"]
HEALED, UNHEALED = ("tasks", "session_id"), ("tasks", "title")


def planned(home: Path, finding: Finding, version: str, *, running: bool) -> PlannedItem:
    """The plan for a finding."""
    world = World(Home(home))
    world.version, world.running = version, running
    [item] = plan(world, load.load(), [finding])
    return item


@pytest.mark.parametrize(
    ("running", "severity"), [(False, Severity.WARNING), (True, Severity.ERROR)]
)
def test_all_of_them(home: Path, running: bool, severity: Severity) -> None:
    """Stopped it is a warning, running an error; the fix adds the same in both cases."""
    board(home, *ALL_HEALED)

    _, [finding] = look(home, NEWEST, running=running)

    assert (finding.severity, finding.fix) == (severity, "complete-schema")
    assert [(one.table, one.name) for one in finding.data["missing"]] == ALL_HEALED
    assert finding.data["by_hermes"] == ()
    assert "Nothing to do" not in finding.detail
    for table, column in ALL_HEALED:
        assert f"{table}.{column}" in finding.evidence[0].what


@pytest.mark.parametrize(("table", "column"), ALL_HEALED)
def test_each_of_them(home: Path, table: str, column: str) -> None:
    """The same for every single one."""
    board(home, (table, column))

    _, [finding] = look(home, NEWEST)

    assert (finding.severity, finding.fix) == (Severity.WARNING, "complete-schema")
    item = planned(home, finding, NEWEST, running=False)
    assert item.ready and not item.asks
    assert item.steps[0].sentence() == f"kanban.db: add {table}.{column}"


@pytest.mark.parametrize("running", [False, True])
def test_with_one_that_hermes_never_adds(home: Path, running: bool) -> None:
    """Both are in one plan."""
    board(home, HEALED, UNHEALED)

    _, [finding] = look(home, NEWEST, running=running)

    sentence = planned(home, finding, NEWEST, running=False).steps[0].sentence()
    assert finding.severity is Severity.ERROR
    assert ".".join(UNHEALED) in sentence and ".".join(HEALED) in sentence


def test_a_stopped_home(home: Path) -> None:
    """`check` shows a warning and exits 0, `fix --apply` adds the column, undo restores it."""
    history(home, NEWEST, "ALTER TABLE sessions DROP COLUMN cost_status")
    sick = support.contents(home)
    looked = support.check(home)
    assert looked.code == 0
    assert support.finding(looked, "DB-SCHEMA")["fix"]["id"] == "complete-schema"

    done = support.doctor("fix", "DB-SCHEMA", "--apply", "--yes", "--home", home)

    assert done.code == 0, done
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db:
        assert "cost_status" in [row[1] for row in db.execute("PRAGMA table_info(sessions)")]
    assert "DB-SCHEMA" not in support.check(home).codes
    cured = support.contents(home)
    assert support.doctor("fix", "DB-SCHEMA", "--apply", "--yes", "--home", home).code == 0
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


# -- what the fix does not do --------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "way_out"), [(HEALED, True), (UNHEALED, False)], ids=["healed", "never"]
)
def test_a_gateway_that_must_not_be_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch, column: tuple[str, str], way_out: bool
) -> None:
    """The refusal names the obstacle, and a restart only where that is enough."""
    board(home, column)
    _, [finding] = look(home, NEWEST, running=True)
    monkeypatch.setenv("_HERMES_GATEWAY", "1")  # an agent runs it, inside the gateway

    item = planned(home, finding, NEWEST, running=True)

    assert not item.ready
    told = f"The gateway (process 4711) uses kanban.db and cannot be stopped. {control.INSIDE}"
    assert item.refusal and item.refusal.startswith(told)
    assert item.refusal.endswith("Hermes adds what is missing when it starts.") is way_out


@pytest.mark.parametrize("running", [False, True])
def test_a_key_that_only_hermes_adds(home: Path, running: bool) -> None:
    """A key column of later releases is left to Hermes: by a restart, if a gateway is running."""
    (home / "kanban.db").unlink()
    history(home, "0.20.5")
    lose(home / "state.db", ("gateway_routing", "scope"))

    _, [finding] = look(home, "0.20.5", running=running)

    assert (finding.data["missing"], finding.next) == ((), "")
    assert [str(one) for one in finding.data["by_hermes"]] == ["gateway_routing.scope"]
    assert finding.severity is (Severity.ERROR if running else Severity.WARNING)
    assert finding.fix == ("complete-schema" if running else None)


def test_titles_that_exist_twice(home: Path) -> None:
    """They prevent the unique index: the column is added without it, and that is enough."""
    history(
        home,
        NEWEST,
        "DROP INDEX idx_sessions_title_unique",
        "ALTER TABLE sessions DROP COLUMN cost_status",
        "INSERT INTO sessions (id, source, started_at, title) VALUES ('a', 'cli', 1, 'same')",
        "INSERT INTO sessions (id, source, started_at, title) VALUES ('b', 'cli', 1, 'same')",
    )
    (home / "kanban.db").unlink()
    _, [finding] = look(home, NEWEST)
    assert [one.name for one in finding.data["missing"]] == ["cost_status"]

    done = support.doctor("fix", "DB-SCHEMA", "--apply", "--yes", "--home", home)

    assert done.code == 0, done
    _, [left] = look(home, NEWEST)
    assert left.title == "state.db lacks the index idx_sessions_title_unique"
    assert (left.severity, left.fix) == (Severity.INFO, None)


def test_texts_that_only_the_search_index_has(home: Path) -> None:
    """An empty table in place of the lost one would empty the search index: not offered."""
    history(home, NEWEST, "DROP TABLE messages")
    (home / "kanban.db").unlink()

    _, [finding] = look(home, NEWEST)

    assert (finding.severity, finding.fix) == (Severity.ERROR, None)
    assert "last copy of 50 texts" in finding.detail
    assert finding.next.startswith("Restore the file from a backup")
