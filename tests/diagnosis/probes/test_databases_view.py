"""Rows of a query: an error is never taken for "there are none"."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Status
from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.sqlite.reader import QueryResult
from tests.checks.test_database_stamp import stamp
from tests.checks.test_undelivered_answers import TABLE
from tests.helpers import damage, support
from tests.helpers.one_check import ask

CHECKS = ["kanban-runs", "search-rebuild", "database-stamp", "undelivered-answers"]


@pytest.fixture
def probes(home: Path) -> Iterator[Probes]:
    """The probes of a home with a history."""
    with contextlib.closing(Probes(Home(home))) as found:
        yield found


def test_rows(home: Path, probes: Probes) -> None:
    """Rows; none without the table; and an error otherwise."""
    path = home / "state.db"
    assert probes.databases.rows(path, "SELECT 1") == [[1]]
    assert probes.databases.rows(path, "SELECT x FROM missing", "missing") == []
    with pytest.raises(CouldNotLook, match=r"state\.db: SQLite cannot read it \(SQLITE_ERROR\)"):
        probes.databases.rows(path, "SELECT x FROM missing")


@pytest.mark.parametrize("error", ["SQLITE_CORRUPT", "SQLITE_INTERRUPT", "SQLITE_BUSY"])
@pytest.mark.parametrize("id", CHECKS)
def test_a_failed_query_is_not_a_healthy_database(
    home: Path, monkeypatch: pytest.MonkeyPatch, id: str, error: str
) -> None:
    """The check says that it could not look, and which file."""
    support.board(home / "kanban.db")
    stamp(home / "state.db")
    damage.execute(home / "state.db", TABLE)
    assert ask(id, home)[0].status is Status.OK
    monkeypatch.setattr(DatabasesView, "query", lambda *_: QueryResult([], error))

    result, findings = ask(id, home)

    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert (result.reason or "").startswith(("kanban.db: ", "state.db: "))


@pytest.mark.parametrize("id", CHECKS)
def test_an_unreadable_database(home: Path, monkeypatch: pytest.MonkeyPatch, id: str) -> None:
    """A reason why there is no answer is passed on."""
    support.board(home / "kanban.db")
    stamp(home / "state.db")
    damage.execute(home / "state.db", TABLE)

    def refuse(*_: object) -> QueryResult:
        raise CouldNotLook("state.db: could not read it")

    monkeypatch.setattr(DatabasesView, "query", refuse)

    assert ask(id, home)[0].status is Status.UNKNOWN


@pytest.mark.parametrize("id", CHECKS)
def test_a_fault_is_reported_once(home: Path, id: str) -> None:
    """Checks of rows are silent about a database whose first page is damaged."""
    for name in ("state.db", "kanban.db"):
        path = home / name
        if name == "kanban.db":
            support.board(path)
        damage.write(path, b"\0" * 16, 0)

    result, findings = ask(id, home)

    assert (result.status in (Status.OK, Status.SKIPPED), findings) == (True, [])
