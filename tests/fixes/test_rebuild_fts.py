"""rebuild-fts: every message is found again, and not one of them changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle, support
from tests.helpers.damage import SEARCH, Fault
from tests.helpers.fix_contract import Planted


@pytest.mark.sampled
@pytest.mark.parametrize("fault", SEARCH, ids=damage.called)
def test_cures(home: Path, fault: Fault) -> None:
    """Damaged pages, a lost record, a lost table behind it, or rows that it does not know."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    fault(path)

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert fix_cycle.messages(path) == kept
    for table in ("messages_fts", "messages_fts_trigram"):
        assert f"{table} was rebuilt from {len(kept)} rows." in cured.notes
    assert fix_cycle.found_by_search(path, "message") == len(kept)
    damage.execute(
        path,
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "VALUES ('s1', 'user', 'quite another word', 1)",
    )
    assert fix_cycle.found_by_search(path, "another") == 1


def test_undoes(home: Path) -> None:
    """The damaged search is back, byte for byte."""
    damage.search_structure(fix_cycle.history(home / "state.db"))

    fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts").undo()


@pytest.mark.sampled
@pytest.mark.parametrize("version", ["0.13.0", "0.16.0"])
def test_older_releases(home: Path, version: str) -> None:
    """A file of an older release keeps its own declarations and its version."""
    path = fix_cycle.history(home / "state.db", version=version)
    declared = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'trigger') ORDER BY 1"
    before = fix_cycle.rows(path, declared)
    damage.search_zeroed(path)

    fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert fix_cycle.rows(path, declared) == before


@pytest.mark.sampled
@pytest.mark.parametrize("fault", SEARCH, ids=damage.called)
def test_a_newer_release(home: Path, fault: Fault) -> None:
    """A newer Hermes' search is made anew as the file declares it; nothing else changes."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(
        path,
        "UPDATE schema_version SET version = 99",
        "ALTER TABLE messages ADD COLUMN of_tomorrow TEXT DEFAULT 'x'",
    )
    declared = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    before, kept = fix_cycle.rows(path, declared), fix_cycle.rows(path, "SELECT * FROM messages")
    fault(path)

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert fix_cycle.rows(path, declared) == before
    assert fix_cycle.rows(path, "SELECT * FROM messages") == kept
    assert fix_cycle.found_by_search(path, "message") == len(kept)
    cured.undo()


# -- a search of somebody else's -------------------------------------------------------------------

THEIRS = (
    "CREATE VIRTUAL TABLE notes USING fts5(title, body, aside UNINDEXED, tokenize='porter')",
    "INSERT INTO notes (rowid, title, body, aside) "
    "SELECT id + 7, 'note ' || id, content, 'x' || id FROM messages WHERE id < 200",
    "INSERT INTO notes (notes, rank) VALUES ('automerge', 3)",
    "CREATE VIRTUAL TABLE over_messages USING fts5(content, content=messages, content_rowid=id)",
    "INSERT INTO over_messages (over_messages) VALUES ('rebuild')",
)
CONTENT = "SELECT rowid, * FROM notes ORDER BY rowid"


def _with_theirs(home: Path) -> Path:
    path = fix_cycle.history(home / "state.db")
    damage.execute(path, *THEIRS)
    damage.settle(path)
    return path


def test_a_sound_one_of_somebody_elses_stays(home: Path) -> None:
    """What Hermes' own needs is done, and not a byte of theirs is changed."""
    path = _with_theirs(home)
    shadows = [f"SELECT * FROM notes_{part}" for part in ("data", "idx", "docsize", "config")]
    before = [fix_cycle.rows(path, sql) for sql in (CONTENT, *shadows)]
    damage.search_zeroed(path)

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert [fix_cycle.rows(path, sql) for sql in (CONTENT, *shadows)] == before
    assert not any("notes" in note for note in cured.notes)
    assert fix_cycle.found_by_search(path, "message") == len(fix_cycle.messages(path))


def test_a_damaged_one_of_somebody_elses(home: Path) -> None:
    """It is made anew from the text that it keeps, with its settings; Hermes' own are left."""
    path = _with_theirs(home)
    before, kept = fix_cycle.rows(path, CONTENT), fix_cycle.messages(path)
    damage.zero(path, *damage.leaves(path, "notes_data"))

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert cured.notes == [f"notes was rebuilt from the text it keeps, {len(before)} rows."]
    assert fix_cycle.rows(path, CONTENT) == before
    assert fix_cycle.messages(path) == kept
    settings = fix_cycle.rows(path, "SELECT k, v FROM notes_config WHERE k <> 'version'")
    assert settings == [("automerge", 3)]
    found = "SELECT count(*) FROM notes WHERE notes MATCH 'note'"
    assert fix_cycle.rows(path, found) == [(len(before),)]
    names = {name for (name,) in fix_cycle.rows(path, "SELECT name FROM sqlite_master")}
    assert not any("put by" in name for name in names)


def test_one_over_a_table(home: Path) -> None:
    """One that keeps no text of its own is filled from its table again."""
    path = _with_theirs(home)
    damage.zero(path, *damage.leaves(path, "over_messages_data"))

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    count = len(fix_cycle.messages(path))
    assert cured.notes == [f"over_messages was rebuilt from its table, {count} rows."]


def test_the_text_that_theirs_keeps_is_rows(home: Path) -> None:
    """Where that is damaged, nothing says that rows are not."""
    path = _with_theirs(home)
    damage.zero(path, damage.leaves(path, "notes_content")[1])

    checked = support.check(home)

    assert "DB-FTS-CORRUPT" not in checked.codes
    evidence = support.finding(checked, "DB-MALFORMED")["evidence"]
    assert evidence[0]["what"] == "damaged rows in notes_content"


def test_the_text_that_theirs_kept_is_gone(home: Path) -> None:
    """A lost table behind it is told as what it is, and no rebuild is offered."""
    path = _with_theirs(home)
    damage.surgery(path, "DELETE FROM sqlite_master WHERE name = 'notes_content'")

    found = support.finding(support.check(home), "DB-FTS-CORRUPT")

    assert found["title"] == "the search index of state.db is damaged"
    assert "stored only there" in found["detail"]
    assert found["fix"]["id"] == "salvage-rows"


def test_one_that_keeps_no_text(home: Path) -> None:
    """What cannot be made anew stops the fix; the next one names what is lost."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(
        path,
        "CREATE VIRTUAL TABLE bare USING fts5(body, content='')",
        "INSERT INTO bare (rowid, body) SELECT id, content FROM messages",
    )
    damage.settle(path)
    damage.zero(path, *damage.leaves(path, "bare_data"))
    kept = fix_cycle.messages(path)

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts", then="salvage-rows")

    assert "bare stores no text" in cured.before[0]
    assert "Lost: the full-text table bare." in cured.notes
    assert fix_cycle.messages(path) == kept


PLANTED = Planted(
    "DB-FTS-CORRUPT", lambda home: damage.search_zeroed(fix_cycle.history(home / "state.db"))
)
