"""mend-rows: the rows that make Hermes fail, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import curing, damage
from tests.curing import SECRET


def test_titles(home: Path) -> None:
    """The newest keeps its title; the others get a number that nobody has yet."""
    path = curing.history(home / "state.db")
    damage.execute(
        path,
        "DROP INDEX idx_sessions_title_unique",
        f"UPDATE sessions SET title = '{SECRET}' WHERE id IN ('s3', 's4', 's5')",
        f"UPDATE sessions SET title = '{SECRET} (2)' WHERE id = 's9'",
    )
    titles = "SELECT id, title FROM sessions ORDER BY started_at"
    before = dict(curing.rows(path, titles))

    cured = curing.cure(home, "DB-TITLES", "mend-rows")

    expected = {"s5": SECRET, "s4": f"{SECRET} (3)", "s3": f"{SECRET} (4)", "s9": f"{SECRET} (2)"}
    assert dict(curing.rows(path, titles)) == before | expected
    assert cured.notes == ["2 sessions got a number behind a title that others had."]
    cured.undo()


@pytest.mark.parametrize("value", [f"'{{broken {SECRET}'", "''", "x'7b7d'"])
def test_settings(home: Path, value: str) -> None:
    """Settings that are no JSON go, the session and everybody else's settings stay."""
    path = curing.history(home / "state.db")
    damage.execute(path, f"UPDATE sessions SET model_config = {value} WHERE id IN ('s1', 's2')")

    cured = curing.cure(home, "DB-JSON", "mend-rows")

    found = curing.rows(path, "SELECT model_config, count(*) FROM sessions GROUP BY 1 ORDER BY 1")
    assert found == [(None, 2), ("{}", 38)]
    assert cured.notes == ["The settings of 2 sessions were no JSON."]
    cured.undo()


@pytest.mark.parametrize("value", [f"'{SECRET}'", "x'16'", "22.5"])
def test_version(home: Path, value: str) -> None:
    """What is no number goes, and Hermes writes its own."""
    path = curing.history(home / "state.db")
    damage.execute(path, f"UPDATE schema_version SET version = {value}")

    cured = curing.cure(home, "DB-SCHEMAVERSION", "mend-rows")

    assert curing.rows(path, "SELECT version FROM schema_version") == []
    assert cured.notes == ["The schema's version is a number again."]
    cured.undo()


def test_active(home: Path) -> None:
    """Messages that are neither active nor inactive are active; hidden ones stay hidden."""
    path = curing.history(home / "state.db")
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
    [(count,)] = curing.rows(path, "SELECT count(*) FROM messages WHERE id > 200")

    cured = curing.cure(home, "DB-ACTIVE-NULL", "mend-rows")

    found = dict(curing.rows(path, "SELECT active, count(*) FROM messages GROUP BY 1"))
    assert found.keys() == {0, 1}
    assert found[0] == 9
    assert cured.notes == [f"{count} messages were marked active again."]
    cured.undo()


def test_active_also_of_new_messages(home: Path) -> None:
    """Where the column has no default, as in an upgrade that went wrong, it gets it."""
    path = curing.history(home / "state.db", version="0.16.0")
    damage.execute(path, "DROP INDEX idx_messages_session_active")
    damage.execute(
        path,
        "ALTER TABLE messages DROP COLUMN active",
        "ALTER TABLE messages ADD COLUMN active INTEGER",
        "CREATE INDEX idx_messages_session_active ON messages(session_id, active, timestamp)",
    )
    kept = curing.messages(path)
    declared = "SELECT type, name, sql FROM sqlite_master WHERE type <> 'table' ORDER BY name"
    before = curing.rows(path, declared)

    curing.cure(home, "DB-ACTIVE-NULL", "mend-rows")

    assert curing.messages(path) == kept
    assert curing.rows(path, declared) == before
    damage.execute(
        path,
        "INSERT INTO messages (session_id, role, content, timestamp) "
        "VALUES ('s1', 'user', 'quite another word', 1)",
    )
    assert curing.rows(path, "SELECT count(*) FROM messages WHERE active = 1") == [(len(kept) + 1,)]
    assert curing.found_by_search(path, "another") == 1
