"""Rows that are salvaged in part: their texts are marked, and the receipt lists them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.sqlite.salvage.account import GROUPS, LISTED, MARK, PartialRows
from tests.helpers.salvage_history import blueprint_of, page_of, saved, zero

MESSAGES = (
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, "
    "role TEXT NOT NULL, timestamp REAL NOT NULL, tool_calls TEXT, content TEXT, "
    "api_content TEXT, finish_reason TEXT)"
)
NOTES = "CREATE TABLE notes (name TEXT PRIMARY KEY, entry_json TEXT NOT NULL, body TEXT)"
LONG = " ".join(f"word{number:05d}" for number in range(2000))
PARTS = "\0json:" + json.dumps(
    [
        {"type": "text", "text": "what is in the \u201cpicture\u201d?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 20000}},
    ]
)
CALLS = json.dumps([{"id": "call", "arguments": LONG}])


def build(path: Path, *rows: tuple[str | None, str | None, str | None]) -> Path:
    """A history without search index, so that nothing can complete its rows."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(MESSAGES)
        database.execute(NOTES)
        for number, (calls, content, exact) in enumerate(rows):
            database.execute(
                "INSERT INTO messages (session_id, role, timestamp, tool_calls, content, "
                "api_content, finish_reason) VALUES ('s', 'user', ?, ?, ?, ?, 'stop')",
                (1.76e9 + number, calls, content, exact),
            )
    return path


def salvaged(path: Path, folder: Path, table: str) -> tuple[Path, list[str]]:
    """Zero every second overflow page of a table, and save the rest."""
    fresh = build(folder / "fresh.db")
    zero(path, *page_of(path, table, "overflow")[1:])
    target, account = saved(path, folder, blueprint_of(fresh))
    return target, list(account.sentences)


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    """The answer of a database."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute(sql).fetchall()


def test_a_truncated_text_is_marked_and_listed(tmp_path: Path) -> None:
    """Its beginning is kept; the row that is whole is not listed."""
    sick = build(tmp_path / "state.db", (None, "short", None), (None, LONG, None))
    target, told = salvaged(sick, tmp_path, "messages")
    (short,), (cut,) = query(target, "SELECT content FROM messages ORDER BY id")
    assert short == "short"
    assert isinstance(cut, str) and cut.endswith(MARK) and LONG.startswith(cut[: -len(MARK)])
    assert 3000 < len(cut) < len(LONG)
    assert "Rows of messages in part, content cut off and marked: 2." in told
    assert "Rows of messages in part, finish_reason lost: 2." in told
    assert "messages: 1 saved, 1 in part of 2 rows." in told


def test_what_hermes_parses_is_left_out(tmp_path: Path) -> None:
    """A piece of JSON, or of a text that is sent verbatim, would be worse than nothing."""
    sick = build(tmp_path / "state.db", (CALLS, "text", None), (None, "text", LONG))
    target, told = salvaged(sick, tmp_path, "messages")
    found = query(target, "SELECT tool_calls, content, api_content FROM messages ORDER BY id")
    assert found == [(None, None, None), (None, "text", None)]
    why = "lost (Hermes cannot use a piece of it)"
    assert f"Rows of messages in part, tool_calls {why}: 1." in told
    assert f"Rows of messages in part, api_content {why}: 2." in told
    assert not any(MARK in one for one in told)


def test_parts_keep_their_text_without_the_image(tmp_path: Path) -> None:
    """Hermes would show half of a picture as text."""
    sick = build(tmp_path / "state.db", (None, PARTS, None))
    target, told = salvaged(sick, tmp_path, "messages")
    assert query(target, "SELECT content FROM messages") == [
        ("what is in the \u201cpicture\u201d?" + MARK,)
    ]
    assert "Rows of messages in part, content cut off and marked: 1." in told


def test_a_needed_value_is_empty_and_the_key_is_named(tmp_path: Path) -> None:
    """A table without numbers is listed by its key."""
    sick = build(tmp_path / "state.db")
    with contextlib.closing(sqlite3.connect(sick, isolation_level=None)) as database:
        database.execute("INSERT INTO notes VALUES ('one', ?, 'b')", ("{" + LONG,))
        database.execute("INSERT INTO notes VALUES ('two', '{}', ?)", ("[" + LONG,))
    target, told = salvaged(sick, tmp_path, "notes")
    rows = {row[0]: row[1:] for row in query(target, "SELECT * FROM notes")}
    assert rows["one"] == ("", None)
    assert str(rows["two"][1]).startswith("[word00000") and str(rows["two"][1]).endswith(MARK)
    why = "lost (Hermes cannot use a piece of it)"
    assert f"Rows of notes in part, entry_json {why}: one." in told
    assert "Rows of notes in part, body cut off and marked: two." in told


def test_the_list_is_limited() -> None:
    """It says how many more there are; consecutive numbers are ranges; odd keys are made safe."""
    rows = PartialRows()
    for number in range(1, LISTED + 8):
        rows.add("cut", ["content"], number)
    rows.add("lost", ["title"], "a\x1b[31m" + "b" * 90)
    told = list(rows.sentences("messages"))
    assert told[0].endswith(f"marked: 1-{LISTED} and 7 more.")
    assert "\x1b" not in told[1] and len(told[1]) < 120
    for number in range(50):
        rows.add("lost", [f"column{number}"], number)
    assert len(rows.groups) <= GROUPS + 1


@pytest.mark.parametrize("tail", ["\\", "\\u20", "\\u201"])
def test_a_truncated_escape(tail: str) -> None:
    """The part of an escape at the end is dropped."""
    from hermes_doctor.sqlite.salvage import account

    assert list(account._texts('\0json:[{"text": "abc' + tail)) == ["abc"]
