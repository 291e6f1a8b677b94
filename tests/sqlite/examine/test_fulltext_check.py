"""The search of schema 30: views with functions, and an index of an unknown tokenizer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.model import CannotFix
from hermes_doctor.sqlite.fulltext import FulltextIndex
from hermes_doctor.sqlite.repairs import rebuild_search
from tests.helpers import damage, fix_cycle, schema30, support

DECLARED = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"


def searched(home: Path, *more: str) -> list[Any]:
    """What `check` says about the search index."""
    findings = support.check(home, *more).json["findings"]
    return [one for one in findings if one["code"].startswith("DB-FTS")]


def reasons(home: Path) -> str:
    """What the check of pages leaves out, and why."""
    checks = support.check(home).json["checks"]
    [reason] = [one["reason"] or "" for one in checks if one["id"] == "database-pages"]
    return str(reason)


@pytest.mark.sampled
@pytest.mark.parametrize("how", [(), ("--deep",)], ids=["quick", "deep"])
def test_a_healthy_one(home: Path, how: tuple[str, ...]) -> None:
    """Rows that a view leaves out are not missing."""
    assert schema30.sound(schema30.make(home / "state.db"))

    assert searched(home, *how) == []
    assert "not judged" not in reasons(home)


FAULTS = (damage.search_zeroed, damage.search_structure, damage.search_table_gone)


@pytest.mark.sampled
@pytest.mark.parametrize("fault", FAULTS, ids=damage.called)
def test_a_damaged_one_is_repaired(home: Path, fault: damage.Fault) -> None:
    """The view is read although SQLite calls its functions unsafe; no declaration changes."""
    path = schema30.make(home / "state.db")
    kept, declared = fix_cycle.messages(path), fix_cycle.rows(path, DECLARED)
    fault(path)

    cured = fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert schema30.sound(path)
    assert (fix_cycle.messages(path), fix_cycle.rows(path, DECLARED)) == (kept, declared)
    cured.undo()


def test_rows_that_are_missing(home: Path) -> None:
    """Really missing rows are still found."""
    path = schema30.make(home / "state.db")
    damage.execute(path, "DELETE FROM messages_fts_trigram_docsize WHERE id IN (1, 2)")

    [found] = searched(home)

    what = "messages_fts_trigram: 2 rows of messages_fts_trigram_src are missing from it"
    assert found["evidence"][0]["what"] == what
    fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")
    assert schema30.sound(path)


def test_a_large_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick look at a large file reads both ends; the view is evaluated there too."""
    path = schema30.make(home / "state.db", 6000)
    assert path.stat().st_size > 4 * 1024 * 1024
    assert searched(home) == []
    assert searched(home, "--deep") == []


# -- an index that only an extension can open ------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("how", [(), ("--deep",)], ids=["quick", "deep"])
def test_an_unknown_tokenizer_is_not_judged(home: Path, how: tuple[str, ...]) -> None:
    """It is neither an alarm nor passed over in silence."""
    schema30.with_cjk(schema30.make(home / "state.db"))

    assert searched(home, *how) == []
    assert "could not check messages_fts_cjk: this SQLite does not have its tokenizer" in reasons(
        home
    )


def test_an_unknown_tokenizer_is_not_touched(home: Path) -> None:
    """The repair of another index leaves its tables as they are."""
    path = schema30.with_cjk(schema30.make(home / "state.db"))
    shadows = [f"SELECT * FROM messages_fts_cjk_{part}" for part in ("data", "idx", "docsize")]
    before = [fix_cycle.rows(path, sql) for sql in (DECLARED, *shadows)]
    damage.search_structure(path)

    fix_cycle.cure(home, "DB-FTS-CORRUPT", "rebuild-fts")

    assert [fix_cycle.rows(path, sql) for sql in (DECLARED, *shadows)] == before


# -- a view that somebody wrote to do harm ---------------------------------------------------------

HOSTILE = {
    "endless": "SELECT id, role, content, tool_name FROM messages WHERE id IN (WITH RECURSIVE n(x) "
    "AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n)",
    "memory": "SELECT id, role, content, tool_name FROM messages WHERE "
    "length(randomblob(900000000)) > 1",
    "extension": "SELECT id, role, content, tool_name FROM messages WHERE "
    "load_extension('/nowhere') IS NULL",
    "virtual": "SELECT id, role, content, tool_name FROM messages WHERE id IN "
    "(SELECT rowid FROM messages_fts)",
    "pragma": "SELECT m.id, role, content, tool_name FROM messages AS m, pragma_table_info('x')",
    "nested": "SELECT id, 'x' AS role, content, tool_name FROM messages_fts_src",
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_view_is_not_evaluated(home: Path, kind: str) -> None:
    """Only ordinary tables and harmless functions are read; the rest is not judged."""
    path = schema30.make(home / "state.db")
    _replace_view(path, HOSTILE[kind])

    found = support.check(home)

    assert not [one for one in found.json["findings"] if one["code"].startswith("DB-FTS")]
    assert "could not check messages_fts_trigram: SQLite could not evaluate" in reasons(home)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_view_is_not_trusted_by_a_repair(home: Path, kind: str) -> None:
    """The fix refuses, and no byte changes."""
    path = schema30.make(home / "state.db")
    damage.search_structure(path)
    _replace_view(path, HOSTILE[kind])

    assert "rebuilding its search index" in fix_cycle.refused(home, "DB-FTS-CORRUPT")


CROSS = "SELECT a.id, a.role, a.content, a.tool_name FROM messages AS a" + "".join(
    f", messages AS {name}" for name in "bcdefg"
)
"""Allowed in every part, and yet it has more rows than any machine can read."""


def test_a_view_that_takes_too_long_is_not_judged(home: Path) -> None:
    """No time to compare is not the same as sound."""
    _replace_view(schema30.make(home / "state.db"), CROSS)

    found = support.check(home)

    assert not [one for one in found.json["findings"] if one["code"].startswith("DB-FTS")]
    assert "could not check messages_fts_trigram: there was no time to compare it" in reasons(home)


def test_the_work_of_a_view_is_bounded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair stops evaluating a view after an amount of work that fits the database."""
    monkeypatch.setattr(rebuild_search, "LEAST", 5)
    monkeypatch.setattr(rebuild_search, "PER_PAGE", 0)
    path = schema30.make(home / "state.db")
    _replace_view(path, CROSS)
    name = "messages_fts_trigram"
    with closing(sqlite3.connect(path)) as db:
        [(sql,)] = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchall()
        index = FulltextIndex(name, sql)
        with (
            pytest.raises(CannotFix, match="takes too long to evaluate"),
            rebuild_search.allow_view(db, index),
        ):
            db.execute(f"SELECT count(*) FROM {name}_src").fetchall()


def test_a_hostile_trigger_behind_an_index(home: Path) -> None:
    """A trigger on a table behind the index cannot change messages during a repair."""
    path = schema30.make(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.search_structure(path)
    damage.surgery(
        path,
        "INSERT INTO sqlite_master VALUES ('trigger', 'spy', 'messages_fts_data', 0, 'CREATE "
        "TRIGGER spy AFTER INSERT ON messages_fts_data BEGIN DELETE FROM messages; END')",
    )

    support.doctor("fix", "DB-FTS-CORRUPT", "--apply", "--yes", "--json", "--home", home)

    assert fix_cycle.messages(path) == kept


def _replace_view(path: Path, select: str) -> None:
    sql = f"CREATE VIEW messages_fts_trigram_src AS {select}".replace("'", "''")
    damage.surgery(
        path, f"UPDATE sqlite_master SET sql = '{sql}' WHERE name = 'messages_fts_trigram_src'"
    )
