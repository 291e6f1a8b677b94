"""rewrite-header: the first hundred bytes, from what the rest of the file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle
from tests.helpers.fix_contract import Planted

FIELDS = {
    "page size": (16, b"\x12\x34"),
    "format": (18, b"\x09\x09"),
    "reserved bytes": (20, b"\xf0"),
    "fractions": (21, b"\x01\x02\x03"),
    "encoding": (56, b"\x00\x00\x00\x09"),
    "schema format": (44, b"\x00\x00\x00\x63"),
    "all of it": (0, b"\xa5" * 100),
    "zeros": (0, bytes(100)),
}


@pytest.mark.sampled
@pytest.mark.parametrize("field", FIELDS)
def test_cures(home: Path, field: str) -> None:
    """Every row is there, and the database is one again."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.write(path, FIELDS[field][1], FIELDS[field][0])

    cured = fix_cycle.cure(home, "DB-NOTADB", "rewrite-header")

    assert fix_cycle.messages(path) == kept
    assert fix_cycle.found_by_search(path, "message") == len(kept)
    assert cured.notes == ["The header was written again."]


def test_undoes(home: Path) -> None:
    """The damaged header is back."""
    path = fix_cycle.history(home / "state.db")
    damage.write(path, bytes(100), 0)

    fix_cycle.cure(home, "DB-NOTADB", "rewrite-header").undo()


def test_the_list_of_free_pages(home: Path) -> None:
    """A list that leads out of the file is given up; the pages are given back."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.freelist_lost(path)

    cured = fix_cycle.cure(home, "DB-MALFORMED", "rewrite-header")

    assert fix_cycle.messages(path) == kept
    cured.undo()


def test_more_than_the_header(home: Path) -> None:
    """Where a page with rows is damaged too, the header is not enough and rows come next."""
    path = fix_cycle.history(home / "state.db")
    [(count,)] = fix_cycle.rows(path, "SELECT count(*) FROM messages")
    damage.zero(path, damage.leaves(path, "messages")[1])
    damage.write(path, bytes(100), 0)

    cured = fix_cycle.cure(home, "DB-NOTADB", "rewrite-header", then="salvage-rows")

    assert cured.before == [
        "No repair worked (rebuilding its header: SQLite cannot open it with any header). "
        "The next fix is salvage-rows."
    ]
    [told] = [note for note in cured.notes if note.startswith("messages: ")]
    assert f"of {count} rows" in told
    cured.undo()


def test_unknown_and_more_than_the_header(home: Path) -> None:
    """A file that is no database of Hermes' is not taken for one."""
    path = home / "state.db"
    fix_cycle.history(path)
    damage.execute(path, "UPDATE schema_version SET version = 99")
    damage.write(path, b"\x12\x34", 16)

    cured = fix_cycle.cure(home, "DB-NOTADB", "rewrite-header")

    assert fix_cycle.rows(path, "SELECT version FROM schema_version") == [(99,)]
    cured.undo()


def planted(home: Path) -> None:
    """A page size that no database has."""
    at, wrong = FIELDS["page size"]
    damage.write(fix_cycle.history(home / "state.db"), wrong, at)


PLANTED = Planted("DB-NOTADB", planted)
