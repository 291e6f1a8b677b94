"""Damage inside a database, told apart by what it hits."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from hermes_doctor.sqlite.examine import condition
from tests.helpers import damage, support
from tests.helpers.damage import CODES, Fault
from tests.helpers.one_check import ask, codes

MODES = [False, True]
WAYS = ["memory", "process"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small database is looked at in memory, a large one by a process of its own."""
    if request.param == "process":
        monkeypatch.setattr(condition, "SMALL_BYTES", 0)
        monkeypatch.setattr(condition, "SMALL_BYTES_DEEP", 0)
        monkeypatch.setattr(condition, "QUICK_CHECK_SECONDS", 5.0)
    return str(request.param)


@pytest.mark.parametrize("deep", MODES, ids=["quick", "deep"])
def test_healthy(home: Path, way: str, deep: bool) -> None:
    """A sound database with deleted rows, long rows and search shows nothing."""
    damage.history(home / "state.db")

    result, findings = ask("database-pages", home, deep=deep)

    assert (result.status, findings) == (Status.OK, [])
    assert codes(home, deep=deep) == []


@pytest.mark.sampled(one_of=3)
@pytest.mark.parametrize("fault", CODES, ids=map(damage.called, CODES))
def test_each_damage(home: Path, way: str, fault: Fault) -> None:
    """Each damage has its own code, is told once, and names what it hits."""
    fault(damage.history(home / "state.db"))
    # A quick look at a large file does not read indexes against their tables.
    deep = way == "process" and fault in damage.INDEX

    found = codes(home, deep=deep)
    _, findings = ask("database-pages", home, deep=deep)

    assert found == [CODES[fault]]
    [finding] = findings
    assert finding.subject == "state.db"
    assert finding.severity in (Severity.CRITICAL, Severity.ERROR, Severity.WARNING)
    assert finding.fix
    if fault in (damage.rows_zeroed, damage.root_zeroed, damage.chain_cut):
        assert finding.data["tables"] == ("messages",)
        assert finding.data["pages"]
    if fault in damage.INDEX:
        assert finding.data["indexes"] == ("idx_messages_session",)
    if fault in damage.SEARCH:
        names = {"messages_fts", "messages_fts_trigram"}
        assert set(finding.data["tables"]) <= names


@pytest.mark.parametrize("fault", CODES, ids=damage.called)
def test_deep_agrees(home: Path, fault: Fault) -> None:
    """A look at everything comes to the same verdict."""
    fault(damage.history(home / "state.db"))

    assert codes(home, deep=True) == [CODES[fault]]


def test_much_damage_hides_none(home: Path) -> None:
    """SQLite stops after a hundred complaints; rows that are hit are named all the same."""
    path = damage.history(home / "state.db", messages=3000)
    last = damage.leaves(path, "messages")[-1]
    damage.zero(path, *damage.leaves(path, "messages_fts_trigram_data"), last)

    _, [finding] = ask("database-pages", home, deep=True)

    assert finding.code == "DB-MALFORMED"
    assert finding.data["tables"] == ("messages",)
    assert finding.data["searches"] == ("messages_fts_trigram",)


def test_a_changed_row_is_not_blamed_on_its_index(home: Path, way: str) -> None:
    """The index is then the only witness; making it anew would destroy what it knows."""
    damage.value_changed(damage.history(home / "state.db"))

    _, [finding] = ask("database-pages", home, deep=True)

    assert (finding.code, finding.fix) == ("DB-MALFORMED", "salvage-rows")
    assert finding.data["tables"] == ("messages",)
    assert any("1 row of " in one.what for one in finding.evidence)


def test_rows_that_break_a_rule_are_not_called_unreadable(home: Path) -> None:
    """A column that was declared NOT NULL later: nothing is lost, and nothing is saved anew."""
    path = damage.history(home / "state.db")
    rule = "replace(sql, ' content TEXT', ' content TEXT NOT NULL')"
    damage.execute(path, "UPDATE messages SET content = NULL WHERE id = 7")
    damage.surgery(path, f"UPDATE sqlite_master SET sql = {rule} WHERE name = 'messages'")

    _, [finding] = ask("database-pages", home, deep=True)

    assert (finding.code, finding.severity, finding.fix) == (
        "DB-MALFORMED",
        Severity.WARNING,
        None,
    )
    assert "messages, column content" in finding.evidence[0].what


def test_a_look_that_ran_out_of_time_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not read is not called sound without a word; a look at everything has no need."""
    damage.history(home / "state.db")
    monkeypatch.setattr(condition, "SMALL_BYTES", 0)
    monkeypatch.setattr(condition, "QUICK_CHECK_SECONDS", -1.0)

    result, findings = ask("database-pages", home)

    assert (result.status, findings) == (Status.OK, [])
    assert (result.reason or "").startswith("state.db: only a part of its pages was read")
    assert ask("database-pages", home, deep=True)[0].reason is None
    monkeypatch.setattr(condition, "SMALL_BYTES_DEEP", 0)
    assert "word by word" in (ask("database-pages", home, deep=True)[0].reason or "")


def test_names_of_other_databases(home: Path) -> None:
    """A board has its own code, the API server's cache another, and caches another fix."""
    for name in ("kanban.db", "response_store.db", "cron/executions.db", "projects.db"):
        path = home / name
        path.unlink(missing_ok=True)
        support.database(path, "CREATE TABLE t (a)", "CREATE TABLE u (a)")
        with damage.opened(path) as db:
            db.executemany("INSERT INTO t VALUES (?)", [("x" * 900,)] * 40)
        damage.zero(path, damage.leaves(path, "t")[1])

    _, findings = ask("database-pages", home)

    assert {finding.subject: (finding.code, finding.fix) for finding in findings} == {
        "kanban.db": ("KANBAN-CORRUPT", "salvage-rows"),
        "response_store.db": ("RESPSTORE", "set-aside-cache"),
        "cron/executions.db": ("DB-MALFORMED", "set-aside-cache"),
        "projects.db": ("DB-MALFORMED", "salvage-rows"),
    }


def test_search_severities(home: Path) -> None:
    """What stops writing is critical, what stops searching an error, what only lacks a warning."""
    expected = {
        damage.search_structure: Severity.CRITICAL,
        damage.search_table_gone: Severity.CRITICAL,
        damage.search_segment_gone: Severity.ERROR,
        damage.search_lacks_rows: Severity.WARNING,
    }
    for fault, severity in expected.items():
        fault(damage.history(home / "state.db"))
        _, [finding] = ask("database-pages", home)
        assert finding.severity is severity, fault.__name__
        assert finding.fix == "rebuild-fts"


def test_no_text_of_the_database_is_shown(home: Path) -> None:
    """A table may be called anything; a finding shows plain names only."""
    path = home / "projects.db"
    name = "sk-canary-0123456789abcdef \n"
    support.database(path, f'CREATE TABLE "{name}" (a)')
    with damage.opened(path) as db:
        db.executemany(f'INSERT INTO "{name}" VALUES (?)', [("x" * 900,)] * 40)
    damage.zero(path, damage.leaves(path, name)[1])

    _, [finding] = ask("database-pages", home)

    assert "canary" not in f"{finding.title}{finding.detail}{finding.evidence}"
    assert "odd name" in finding.evidence[0].what


def test_a_releases_way_with_nul_is_no_damage() -> None:
    """What SQLite says from 3.44 on of a trigram table is never taken for damage of rows."""
    from hermes_doctor.sqlite.examine.damage import find_damage
    from hermes_doctor.sqlite.schema import Catalog, SchemaRow

    entry = SchemaRow(
        "table",
        "messages_fts_trigram",
        "messages_fts_trigram",
        0,
        "create virtual table x using fts5(content, tokenize='trigram')",
    )
    said = [("", "malformed inverted index for FTS5 table main.messages_fts_trigram")]

    found = find_damage(said, "", Catalog((entry,)), None, seconds=1)

    assert found.searches == found.inverted == {"messages_fts_trigram"}
    assert not found.rows and not found.indexes
