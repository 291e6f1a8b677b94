"""set-aside-copies: the pile goes into the vault, its newest part stays, and undo works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_contract import Planted

NAMES = {
    "state.db": [f"state.db.malformed-backup-2026010{n}_000000" for n in range(4)],
    "kanban.db": [f"kanban.db.corrupt.{n:016x}.bak" for n in range(4)],
}


def pile(home: Path, database: str) -> list[Path]:
    """Copies of a damaged database, the last one the newest, some with a log."""
    made = []
    for number, name in enumerate(NAMES[database]):
        for path in (home / name, home / f"{name}-wal"):
            support.put(path, os.urandom(9000))
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
            made.append(path)
    return made


@pytest.mark.sampled
@pytest.mark.parametrize("database", NAMES)
def test_cures_and_undoes(home: Path, database: str) -> None:
    """All but the newest are gone from the home and lie in the vault, byte for byte."""
    every = pile(home, database)
    before = {path.name: path.read_bytes() for path in every}
    sick = support.contents(home)

    done = support.doctor("fix", "DB-BACKUP-CLUTTER", "--apply", "--yes", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert [path.name for path in every if path.exists()] == [path.name for path in every[-2:]]
    [run] = done.json["repair"]["runs"]
    vault = Path(run["backup"]) / "files"
    assert {path.name: (vault / path.name).read_bytes() for path in every[:-2]} == {
        name: before[name] for name in list(before)[:-2]
    }
    again = fix_cycle.apply(home, "DB-BACKUP-CLUTTER")
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_it_asks_first(home: Path) -> None:
    """They are moved, and the space is free only when the vault is pruned: somebody says yes."""
    pile(home, "state.db")
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--home", home)

    assert done.code == 0  # it is a mere information, and may wait
    assert "asks first" in done.out
    assert support.contents(home) == sick


def test_not_while_the_database_is_damaged(home: Path) -> None:
    """They may hold rows that it has lost, and saving rows looks for them where they lie."""
    damage.rows_zeroed(damage.history(home / "state.db"))
    pile(home, "state.db")

    found = support.finding(support.check(home), "DB-BACKUP-CLUTTER")

    assert found["fix"] is None
    assert found["caused_by"] == "DB-MALFORMED"


def test_a_single_large_copy(home: Path) -> None:
    """One copy is no pile, however large."""
    path = support.put(home / NAMES["state.db"][0], b"x")
    os.truncate(path, 2 << 30)

    assert "DB-BACKUP-CLUTTER" not in support.check(home).codes


PLANTED = Planted("DB-BACKUP-CLUTTER", lambda home: pile(home, "state.db"))
