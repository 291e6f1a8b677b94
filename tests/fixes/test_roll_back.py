"""roll-back: half a transaction is taken back, as SQLite itself would."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle
from tests.helpers.fix_contract import Planted

ROWS = "SELECT id, title, system_prompt FROM sessions"


@pytest.mark.sampled
@pytest.mark.parametrize("change", [damage.MANY, damage.QUIET], ids=["damaged", "sound"])
@pytest.mark.parametrize("old", [False, True], ids=["fresh", "old"])
def test_cures_and_undoes(home: Path, old: bool, change: str) -> None:
    """Every row is as it was before the transaction began, however old the journal looks."""
    path = fix_cycle.history(home / "state.db", 600)
    damage.execute(path, damage.LONG)
    kept = fix_cycle.messages(path), fix_cycle.rows(path, ROWS)
    damage.cut_off_transaction(path, change)
    if old:
        os.utime(f"{path}-journal", (1_700_000_000, 1_700_000_000))

    cured = fix_cycle.cure(home, "DB-JOURNAL", "roll-back")

    assert (fix_cycle.messages(path), fix_cycle.rows(path, ROWS)) == kept
    assert not Path(f"{path}-journal").exists()
    cured.undo()


def test_damaged_before(home: Path) -> None:
    """A page that was damaged before the transaction too: then the rows are saved, which asks."""
    path = fix_cycle.history(home / "state.db", 600)
    kept = fix_cycle.messages(path)
    damage.execute(path, damage.LONG)
    damage.rows_zeroed(path)
    damage.cut_off_transaction(path, damage.QUIET)

    cured = fix_cycle.cure(home, "DB-JOURNAL", "roll-back", then="salvage-rows")

    found = fix_cycle.messages(path)
    assert {row[0] for row in found} <= {row[0] for row in kept}
    assert len(set(found) & set(kept)) >= 0.6 * len(kept)
    assert not fix_cycle.rows(path, "SELECT 1 FROM sessions WHERE system_prompt LIKE '%f%'")
    cured.undo()


def planted(home: Path) -> None:
    """A transaction that was cut off."""
    path = fix_cycle.history(home / "state.db", 600)
    damage.execute(path, damage.LONG)
    damage.cut_off_transaction(path, damage.MANY)


PLANTED = Planted("DB-JOURNAL", planted)
