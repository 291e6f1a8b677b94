"""compact-database: no row is lost, and the space is given back."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import damage, fix_cycle
from tests.helpers.fix_contract import Planted

LARGE = 68 * 1024**2


def test_gives_the_space_back(home: Path) -> None:
    """A history that a large deletion left mostly empty."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(
        path,
        "CREATE TABLE ballast (data BLOB)",
        f"INSERT INTO ballast VALUES (zeroblob({LARGE}))",
        "DROP TABLE ballast",
    )
    kept = fix_cycle.messages(path)
    assert path.stat().st_size > LARGE

    cured = fix_cycle.cure(home, "DB-BLOAT", "compact-database")

    assert path.stat().st_size < 4 * 1024**2
    assert fix_cycle.messages(path) == kept
    assert fix_cycle.found_by_search(path, "message") == len(kept)
    assert cured.notes == ["68 MB of unused pages were removed."]
    cured.undo()


def planted(home: Path) -> None:
    """A history that a large deletion left mostly empty."""
    damage.execute(
        fix_cycle.history(home / "state.db"),
        "CREATE TABLE ballast (data BLOB)",
        f"INSERT INTO ballast VALUES (zeroblob({LARGE}))",
        "DROP TABLE ballast",
    )


PLANTED = Planted("DB-BLOAT", planted)
