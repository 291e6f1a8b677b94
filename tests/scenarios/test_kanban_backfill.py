"""KANBAN-SCHEMA: a column that Hermes adds and fills by itself is left to it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.model import Severity
from hermes_doctor.plugins import load
from hermes_doctor.repair.plan import plan
from tests.checks.test_database_schema import COLUMNS, NEWEST, World, board, look

ALL_HEALED = [(table, name) for table, name, facts in COLUMNS if facts.if_missing == "healed"]
HEALED, UNHEALED = ("tasks", "session_id"), ("tasks", "title")


@pytest.mark.parametrize(("running", "severity"), [(False, Severity.INFO), (True, Severity.ERROR)])
def test_no_fix_is_offered(home: Path, running: bool, severity: Severity) -> None:
    """Added by us it would stay empty: Hermes fills only what it adds itself, at a start."""
    board(home, *ALL_HEALED)

    _, [finding] = look(home, NEWEST, running=running)

    assert finding.severity is severity
    assert finding.fix is None
    assert finding.data["missing"] == ()
    for table, column in ALL_HEALED:
        assert f"{table}.{column}" in finding.evidence[0].what


@pytest.mark.parametrize(("table", "column"), ALL_HEALED)
def test_each_of_them(home: Path, table: str, column: str) -> None:
    """The same for every single one, under a gateway that would fail on it."""
    board(home, (table, column))

    _, [finding] = look(home, NEWEST, running=True)

    assert (finding.severity, finding.fix) == (Severity.ERROR, None)


@pytest.mark.parametrize("running", [False, True])
def test_only_the_other_is_added(home: Path, running: bool) -> None:
    """Beside one that Hermes never adds, the fix adds that one and leaves the rest to Hermes."""
    path = board(home, HEALED, UNHEALED)
    _, [finding] = look(home, NEWEST, running=running)
    world = World(Home(home))
    world.version, world.running = NEWEST, False

    [planned] = plan(world, load.load(), [finding])

    assert [(m.table, m.name) for m in finding.data["missing"]] == [UNHEALED]
    assert planned.ready
    sentence = planned.steps[0].sentence()
    assert ".".join(UNHEALED) in sentence
    assert ".".join(HEALED) not in sentence
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = [row[1] for row in db.execute(f"PRAGMA table_info({HEALED[0]})")]
    assert HEALED[1] not in names
