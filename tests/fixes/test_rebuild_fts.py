"""rebuild-fts: every message is found again, and not one of them changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import curing, damage
from tests.damage import SEARCH, Fault


@pytest.mark.parametrize("fault", SEARCH, ids=damage.called)
def test_cures(home: Path, fault: Fault) -> None:
    """Damaged pages, a lost record, a lost table behind it, or rows that it does not know."""
    path = curing.history(home / "state.db")
    kept = curing.messages(path)
    fault(path)

    cured = curing.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert curing.messages(path) == kept
    for table in ("messages_fts", "messages_fts_trigram"):
        assert f"{table} was made anew from {len(kept)} rows." in cured.notes
    assert curing.found_by_search(path, "message") == len(kept)
    damage.execute(
        path,
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "VALUES ('s1', 'user', 'quite another word', 1)",
    )
    assert curing.found_by_search(path, "another") == 1


def test_undoes(home: Path) -> None:
    """The damaged search is back, byte for byte."""
    damage.search_structure(curing.history(home / "state.db"))

    curing.cure(home, "DB-FTS-CORRUPT", "rebuild-fts").undo()


@pytest.mark.parametrize("version", ["0.13.0", "0.16.0"])
def test_older_releases(home: Path, version: str) -> None:
    """A file of an older release keeps its own declarations and its version."""
    path = curing.history(home / "state.db", version=version)
    declared = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'trigger') ORDER BY 1"
    before = curing.rows(path, declared)
    damage.search_zeroed(path)

    curing.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert curing.rows(path, declared) == before


@pytest.mark.parametrize("fault", SEARCH, ids=damage.called)
def test_a_newer_release(home: Path, fault: Fault) -> None:
    """A newer Hermes' search is made anew as the file declares it; nothing else changes."""
    path = curing.history(home / "state.db")
    damage.execute(
        path,
        "UPDATE schema_version SET version = 99",
        "ALTER TABLE messages ADD COLUMN of_tomorrow TEXT DEFAULT 'x'",
    )
    declared = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    before, kept = curing.rows(path, declared), curing.rows(path, "SELECT * FROM messages")
    fault(path)

    cured = curing.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert curing.rows(path, declared) == before
    assert curing.rows(path, "SELECT * FROM messages") == kept
    assert curing.found_by_search(path, "message") == len(kept)
    cured.undo()
