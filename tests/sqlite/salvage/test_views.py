"""A salvage beside a foreign log: what the file has is never called lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hermes_doctor.hermes.knowledge import atlas
from hermes_doctor.sqlite.salvage.account import SalvageResult
from hermes_doctor.sqlite.salvage.run import salvage
from tests.helpers import damage, fix_cycle
from tests.helpers.one_check import codes
from tests.scenarios.test_foreign_log import damaged_log


def salvaged(path: Path, target: Path) -> SalvageResult:
    plan = atlas.blueprint_at_or_below("state.db", None)
    assert plan is not None
    return salvage(path, target, plan)


def messages(path: Path) -> list[tuple[object, ...]]:
    return fix_cycle.rows(path, "SELECT id, session_id, content FROM messages ORDER BY id")


def test_the_rows_of_the_file_and_no_others(home: Path, tmp_path: Path) -> None:
    """The counters fit, the pages do not: no row is lost, and no old one is mixed in."""
    path = damage.history(home / "state.db")
    wanted = messages(path)
    damage.foreign_log(path)

    account = salvaged(path, tmp_path / "new.db")

    found = account.table("messages")
    assert found is not None
    assert (found.lost, found.saved) == (0, len(wanted))
    assert messages(tmp_path / "new.db") == wanted
    assert any("log does not belong to this file" in note for note in account.notes)


@pytest.mark.sampled
@pytest.mark.parametrize("which", damage.VACUUMED)
def test_one_of_the_lives_was_vacuumed(home: Path, tmp_path: Path, which: str) -> None:
    """Even if a salvage is run on such a pair, the rows of the sound file are all there."""
    path = damage.vacuumed_life(damage.history(home / "state.db"), which)
    alone = Path(shutil.copy(path, tmp_path / "alone.db"))

    account = salvaged(path, tmp_path / "new.db")

    assert messages(tmp_path / "new.db") == messages(alone)
    assert any("log does not belong to this file" in note for note in account.notes)


def test_rows_are_damaged_in_its_own_log(home: Path, tmp_path: Path) -> None:
    """The log is not called foreign, and still no row of the sound file is lost."""
    path = damaged_log(damage.history(home / "state.db"), "messages")
    alone = Path(shutil.copy(path, tmp_path / "alone.db"))

    account = salvaged(path, tmp_path / "new.db")

    assert set(messages(alone)) <= set(messages(tmp_path / "new.db"))
    assert any("not together with its write-ahead log" in note for note in account.notes)


def test_an_index_is_damaged_as_well(home: Path) -> None:
    """Neither the file nor the pair is sound: its log is not accused, and no row is lost."""
    path = damage.history(home / "state.db")
    wanted = messages(path)
    with damage.opened(path) as db:
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'idx_messages_session'"
        ).fetchone()
    damage.foreign_log(path)
    damage.zero(path, root)
    assert "DB-WAL-STALE" not in codes(home, deep=True)
    [code] = codes(home, deep=True)

    done = fix_cycle.apply(home, code)

    assert done.code == 0, done.out
    *_, run = done.json["repair"]["runs"]
    [item] = run["items"]
    assert not [note for note in item["notes"] if note.startswith("messages:") and "lost" in note]
    assert set(wanted) <= set(messages(path))
