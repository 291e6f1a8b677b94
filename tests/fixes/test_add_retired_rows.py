"""add-retired-rows: the messages of a write-ahead log that Hermes set aside."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning.missing_messages import add_retired_rows
from hermes_doctor.sqlite.reader import UNFINISHED, InProcess, QueryResult
from tests.fixes.test_add_unsaved_turns import ALL, SAVED, codes, unknown_release
from tests.helpers import damage, fix_cycle
from tests.helpers.fix_contract import Planted
from tests.helpers.one_check import ask
from tests.helpers.retired_log_home import FOLDER, retire
from tests.helpers.saved_log_home import message, session

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")


@pytest.fixture
def path(home: Path) -> Path:
    """A sound history."""
    return fix_cycle.history(home / "state.db")


def test_its_messages_are_added(home: Path, path: Path) -> None:
    """With their sessions; no row changes, and a second time does nothing."""
    rows = [message(n, "s1") for n in range(12)]
    retire(path, *rows, session("new"), message(70, "new"))
    before = fix_cycle.rows(path, ALL)

    cured = fix_cycle.cure(home, "DB-DELETED-WAL", "add-retired-rows", FOLDER)

    assert fix_cycle.rows(path, ALL)[: len(before)] == before
    assert [text for (text,) in fix_cycle.rows(path, SAVED)] == [
        *(f"saved {n}" for n in range(12)),
        "saved 70",
    ]
    assert fix_cycle.found_by_search(path, "saved") == 13
    assert damage.sound(path)
    told = f"13 messages and 1 session of {FOLDER} were added"
    assert any(note.startswith(told) for note in cured.notes)
    cured.undo()
    assert codes(home) == {("DB-DELETED-WAL", "add-retired-rows")}


def test_all_are_in_the_database(home: Path, path: Path) -> None:
    """Then there is nothing to report."""
    rows = [message(n, "s1") for n in range(3)]
    retire(path, *rows)
    damage.execute(path, *rows)
    assert codes(home) == set()


def test_the_conversation_continued(home: Path, path: Path) -> None:
    """Its messages cannot be added in their place, which is said."""
    retire(path, *[message(n, "s1") for n in range(3)])
    damage.execute(path, message(900, "s1"))
    assert codes(home) == {("DB-DELETED-WAL", "")}


@pytest.mark.sampled
@pytest.mark.parametrize("fault", ["no image", "another database", "damaged"])
def test_not_to_be_trusted(home: Path, path: Path, fault: str) -> None:
    """Without a sound copy of the same database it is not offered."""
    place = retire(path, *[message(n, "s1") for n in range(60)], image=fault != "no image")
    if fault == "another database":
        shutil.copyfile(fix_cycle.history(home.parent / "other.db", 40), place / "state.db")
    elif fault == "damaged":
        damage.zero(place / "state.db", *range(3, 30))
    assert codes(home) == {("DB-DELETED-WAL", "")}


def test_an_unknown_release(home: Path, path: Path) -> None:
    """The triggers of the database itself fill its search index."""
    unknown_release(home, path)
    retire(path, *[message(n, "s1") for n in range(3)])
    fix_cycle.cure(home, "DB-DELETED-WAL", "add-retired-rows", FOLDER)
    assert fix_cycle.found_by_search(path, "saved") == 3
    assert damage.sound(path)


def test_a_large_copy(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick check says that it takes too long; `--deep` and the repair take their time."""
    retire(path, *[message(n, "s1") for n in range(3)])
    whole = InProcess.ask

    def slow(self: InProcess, sql: str, seconds: float | None = None, *more: Any) -> Any:
        if "quick_check(1)" in sql and seconds is not None:
            return QueryResult([], UNFINISHED)
        return whole(self, sql, seconds, *more)

    monkeypatch.setattr(InProcess, "ask", slow)

    [found] = ask("unsaved-turns", home)[1]

    assert found.fix is None
    assert found.evidence[-1].what.endswith("takes longer than 2 s; use --deep")
    [found] = ask("unsaved-turns", home, deep=True)[1]
    assert found.fix == "add-retired-rows"
    with contextlib.closing(Probes(Home(home))) as probes:
        assert "add 3 messages" in add_retired_rows(probes, FOLDER).sentence()


PLANTED = Planted(
    "DB-DELETED-WAL", lambda home: retire(fix_cycle.history(home / "state.db"), message(1, "s1"))
)
