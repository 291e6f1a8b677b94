"""DB-FTS-UNFINISHED: a rebuild of the search index that Hermes goes on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import damage, one_check, schema30

ID = "search-rebuild"


def started(path: Path, high_water: object, progress: object) -> Path:
    """A file whose rebuild has come to `progress`; rows in between are not indexed."""
    schema30.make(path)
    for key, value in (("high_water", high_water), ("progress", progress)):
        if value is not None:
            insert = f"INSERT INTO state_meta VALUES ('fts_rebuild_{key}', '{value}')"
            damage.execute(path, insert)
    damage.execute(path, "INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
    damage.execute(
        path, "INSERT INTO messages_fts_trigram (messages_fts_trigram) VALUES ('delete-all')"
    )
    done = f"id <= {progress or 0} OR id > {high_water}"
    damage.execute(
        path,
        "INSERT INTO messages_fts (rowid, content, tool_name, tool_calls) "
        f"SELECT id, content, tool_name, tool_calls FROM messages_fts_src WHERE {done}",
        "INSERT INTO messages_fts_trigram (rowid, content, tool_name) "
        f"SELECT id, content, tool_name FROM messages_fts_trigram_src WHERE {done}",
    )
    return path


@pytest.mark.parametrize("progress", [0, 40, 100])
def test_found(home: Path, progress: int) -> None:
    """It is not continued and has no fix, and the index is not called damaged."""
    started(home / "state.db", 100, progress)

    _, [found] = one_check.ask(ID, home)

    assert (found.code, found.severity.value, found.fix) == (
        "DB-FTS-UNFINISHED",
        "warning",
        None,
    )
    assert found.evidence[0].what == f"{progress} of 100 messages are indexed"
    assert one_check.ask("database-pages", home)[1] == []


def test_without_progress(home: Path) -> None:
    """One of the two keys is missing: Hermes starts over, so nothing is compared."""
    started(home / "state.db", 100, None)

    _, [found] = one_check.ask(ID, home)

    assert found.evidence[0].what == "unknown how many of 100 messages are indexed"
    result, findings = one_check.ask("database-pages", home)
    assert findings == []
    assert "Hermes has not finished rebuilding it" in (result.reason or "")


def test_rows_missing_from_the_finished_part(home: Path) -> None:
    """What should be indexed already, and is not, is damage; then the note is left out."""
    path = started(home / "state.db", 100, 40)
    damage.execute(path, "DELETE FROM messages_fts_docsize WHERE id IN (3, 5)")

    assert one_check.ask(ID, home)[1] == []
    _, [found] = one_check.ask("database-pages", home)
    assert (found.code, found.severity.value) == ("DB-FTS-CORRUPT", "warning")


def test_rows_that_would_be_indexed_twice(home: Path) -> None:
    """Hermes would damage the index when it resumes."""
    path = started(home / "state.db", 100, 40)
    damage.execute(path, "INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')")

    _, [found] = one_check.ask("database-pages", home)

    assert (found.code, found.severity.value) == ("DB-FTS-CORRUPT", "error")
    what = "messages_fts: it already contains 60 rows that Hermes would index a second time"
    assert found.evidence[0].what == what


def test_healthy(home: Path) -> None:
    """Neither a home of a known release nor one without a rebuild shows it."""
    assert one_check.ask(ID, home)[1] == []
    schema30.make(home / "state.db")
    assert one_check.ask(ID, home)[1] == []


@pytest.mark.parametrize(("attempts", "title"), [(0, "switched off"), (41, "keeps Hermes from")])
def test_stale(home: Path, attempts: int, title: str) -> None:
    """Hermes switched the index off and waits for another process before it repairs it."""
    path = schema30.make(home / "state.db")
    damage.execute(path, "INSERT INTO state_meta VALUES ('fts_stale', '1')")
    if attempts:
        said = f'{{"attempts": {attempts}, "first_seen": 1794700800.5, "holder_pids": [1, "x"]}}'
        damage.execute(path, f"INSERT INTO state_meta VALUES ('fts_rebuild_deferral', '{said}')")

    _, [found] = one_check.ask(ID, home)

    assert (found.code, found.severity.value) == ("DB-FTS-STALE", "warning")
    assert title in found.title
    assert len(found.evidence) == (3 if attempts else 1)


@pytest.mark.parametrize("said", ["x", "[]", '{"attempts": "many"}', '{"first_seen": 1e300}', "7"])
def test_odd_deferral(home: Path, said: str) -> None:
    """A note that cannot be read is left out."""
    path = schema30.make(home / "state.db")
    damage.execute(path, "INSERT INTO state_meta VALUES ('fts_stale', '1')")
    damage.execute(path, f"INSERT INTO state_meta VALUES ('fts_rebuild_deferral', '{said}')")

    _, [found] = one_check.ask(ID, home)

    assert len(found.evidence) == 1


def test_sound_index(home: Path) -> None:
    """Without these notes there is nothing to report."""
    schema30.make(home / "state.db")

    assert one_check.ask(ID, home)[1] == []
