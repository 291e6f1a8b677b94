"""mend-rows: the rows that make Hermes fail, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import SECRET


def test_titles(home: Path) -> None:
    """The newest keeps its title; the others get a number that nobody has yet."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(
        path,
        "DROP INDEX idx_sessions_title_unique",
        f"UPDATE sessions SET title = '{SECRET}' WHERE id IN ('s3', 's4', 's5')",
        f"UPDATE sessions SET title = '{SECRET} (2)' WHERE id = 's9'",
    )
    titles = "SELECT id, title FROM sessions ORDER BY started_at"
    before = dict(fix_cycle.rows(path, titles))

    cured = fix_cycle.cure(home, "DB-TITLES", "mend-rows")

    expected = {"s5": SECRET, "s4": f"{SECRET} (3)", "s3": f"{SECRET} (4)", "s9": f"{SECRET} (2)"}
    assert dict(fix_cycle.rows(path, titles)) == before | expected
    assert cured.notes == ["2 sessions got a number after the title, because others had the same."]
    cured.undo()


def test_one_session_is_singular(home: Path) -> None:
    """The note counts in words: one session, not "1 sessions"."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(path, "UPDATE sessions SET model_config = '{' WHERE id = 's1'")

    cured = fix_cycle.cure(home, "DB-JSON", "mend-rows")

    assert cured.notes == ["The settings of 1 session were not valid JSON."]


@pytest.mark.sampled
@pytest.mark.parametrize("value", [f"'{{broken {SECRET}'", "''", "x'7b7d'"])
def test_settings(home: Path, value: str) -> None:
    """Settings that are no JSON go, the session and everybody else's settings stay."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(path, f"UPDATE sessions SET model_config = {value} WHERE id IN ('s1', 's2')")

    cured = fix_cycle.cure(home, "DB-JSON", "mend-rows")

    found = fix_cycle.rows(
        path, "SELECT model_config, count(*) FROM sessions GROUP BY 1 ORDER BY 1"
    )
    assert found == [(None, 2), ("{}", 38)]
    assert cured.notes == ["The settings of 2 sessions were not valid JSON."]
    cured.undo()


@pytest.mark.sampled
@pytest.mark.parametrize("value", [f"'{SECRET}'", "x'16'", "22.5"])
def test_version(home: Path, value: str) -> None:
    """What is no number goes, and Hermes writes its own."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(path, f"UPDATE schema_version SET version = {value}")

    cured = fix_cycle.cure(home, "DB-SCHEMAVERSION", "mend-rows")

    assert fix_cycle.rows(path, "SELECT version FROM schema_version") == []
    assert cured.notes == ["The schema's version is a number again."]
    cured.undo()


def test_active(home: Path) -> None:
    """Messages that are neither active nor inactive are active; hidden ones stay hidden."""
    path = fix_cycle.history(home / "state.db")
    damage.surgery(
        path,
        "UPDATE sqlite_master SET sql = replace(sql, 'active INTEGER NOT NULL DEFAULT 1', "
        "'active INTEGER') WHERE name = 'messages'",
    )
    damage.execute(
        path,
        "UPDATE messages SET active = NULL WHERE id > 200",
        "UPDATE messages SET active = 0 WHERE id < 10",
    )
    [(count,)] = fix_cycle.rows(path, "SELECT count(*) FROM messages WHERE id > 200")

    cured = fix_cycle.cure(home, "DB-ACTIVE-NULL", "mend-rows")

    found = dict(fix_cycle.rows(path, "SELECT active, count(*) FROM messages GROUP BY 1"))
    assert found.keys() == {0, 1}
    assert found[0] == 9
    assert cured.notes == [f"{count} messages were marked active again."]
    cured.undo()


def test_active_also_of_new_messages(home: Path) -> None:
    """Where the column has no default, as in an upgrade that went wrong, it gets it."""
    path = fix_cycle.history(home / "state.db", version="0.16.0")
    damage.execute(path, "DROP INDEX idx_messages_session_active")
    damage.execute(
        path,
        "ALTER TABLE messages DROP COLUMN active",
        "ALTER TABLE messages ADD COLUMN active INTEGER",
        "CREATE INDEX idx_messages_session_active ON messages(session_id, active, timestamp)",
    )
    kept = fix_cycle.messages(path)
    declared = "SELECT type, name, sql FROM sqlite_master WHERE type <> 'table' ORDER BY name"
    before = fix_cycle.rows(path, declared)

    fix_cycle.cure(home, "DB-ACTIVE-NULL", "mend-rows")

    assert fix_cycle.messages(path) == kept
    assert fix_cycle.rows(path, declared) == before
    damage.execute(
        path,
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "VALUES ('s1', 'user', 'quite another word', 1)",
    )
    assert fix_cycle.rows(path, "SELECT count(*) FROM messages WHERE active = 1") == [
        (len(kept) + 1,)
    ]
    assert fix_cycle.found_by_search(path, "another") == 1


def planted(home: Path) -> None:
    """Three sessions with one title."""
    damage.execute(
        fix_cycle.history(home / "state.db"),
        "DROP INDEX idx_sessions_title_unique",
        f"UPDATE sessions SET title = '{SECRET}' WHERE id IN ('s3', 's4', 's5')",
    )


PLANTED = Planted("DB-TITLES", planted)
