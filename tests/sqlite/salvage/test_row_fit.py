"""Bytes that cannot be those of a row end its text with a mark; no row is dropped for them."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import struct
from pathlib import Path

import pytest

from hermes_doctor.sqlite.salvage.account import MARK
from tests.helpers.salvage_history import blueprint_of, saved

PAGE = 4096
MESSAGES = (
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, "
    "role TEXT NOT NULL, content TEXT, timestamp REAL NOT NULL, token_count INTEGER)"
)
INDEX = "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)"
ROWS = 9
SICK = 5
NOISE = random.Random(3).randbytes(PAGE)
OTHER = (b"the text of another conversation " * 200)[: PAGE - 4]


def content(number: int) -> str:
    """A text of two overflow pages."""
    return f"begin{number} " + f"word{number} " * 1500 + f"end{number}"


def build(path: Path, *texts: str) -> Path:
    """A history without full-text copies."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(MESSAGES)
        database.execute(INDEX)
        for number, text in enumerate(texts, 1):
            database.execute(
                "INSERT INTO messages (session_id, role, content, timestamp, token_count) "
                "VALUES ('s', 'user', ?, ?, 700)",
                (text, 1760000000.5 + number),
            )
    return path


def chain(path: Path, number: int) -> list[int]:
    """The overflow pages of a message in order."""
    data = path.read_bytes()
    pages = {
        place // PAGE + 1: struct.unpack_from(">I", data, place)[0]
        for place in range(0, len(data), PAGE)
        if data[place : place + PAGE].count(b"word%d " % number) > 300 and data[place] == 0
    }
    (page,) = set(pages) - set(pages.values())
    found = [page]
    while pages[found[-1]]:
        found.append(pages[found[-1]])
    return found


def put(path: Path, page: int, data: bytes, at: int = 0) -> None:
    """Overwrite bytes of a page."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE + at)
        file.write(data)


def result(sick: Path, folder: Path) -> tuple[dict[int, tuple[str, float]], list[str]]:
    """The texts and times of the salvaged messages, and what the receipt says."""
    fresh = build(folder / "fresh.db")
    target, account = saved(sick, folder, blueprint_of(fresh))
    with contextlib.closing(sqlite3.connect(target)) as database:
        rows = database.execute("SELECT id, content, timestamp FROM messages").fetchall()
    return {row[0]: row[1:] for row in rows}, list(account.sentences)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "junk",
    [b"\xff" * PAGE, NOISE, bytes(4) + OTHER, struct.pack(">I", 9_000_000) + OTHER],
    ids=["ones", "noise", "text", "linked-text"],
)
def test_a_wrong_overflow_page_ends_the_text(tmp_path: Path, place: int, junk: bytes) -> None:
    """The beginning stays and is marked, the time comes from the index, all rows are counted."""
    sick = build(tmp_path / "state.db", *(content(number) for number in range(1, ROWS + 1)))
    put(sick, chain(sick, SICK)[place], junk)
    rows, told = result(sick, tmp_path)
    assert sorted(rows) == list(range(1, ROWS + 1))
    for number, (text, time) in rows.items():
        assert time == 1760000000.5 + number
        assert number == SICK or text == content(number)
    kept = rows[SICK][0]
    assert kept.endswith(MARK) and content(SICK).startswith(kept[: -len(MARK)])
    assert len(kept) > 800 + place * (PAGE - 4)
    assert f"messages: {ROWS - 1} saved, 1 in part of {ROWS} rows." in told
    assert f"Rows of messages in part, content cut off and marked: {SICK}." in told


@pytest.mark.parametrize("junk", [NOISE[:1024], bytes(1024)], ids=["noise", "zeros"])
def test_torn_sectors_keep_what_is_around_them(tmp_path: Path, junk: bytes) -> None:
    """The text ends at the first wrong sector; the values after it are right."""
    sick = build(tmp_path / "state.db", *(content(number) for number in range(1, ROWS + 1)))
    put(sick, chain(sick, SICK)[1], junk, 1024)
    rows, told = result(sick, tmp_path)
    kept = rows[SICK][0]
    assert kept.endswith(MARK) and content(SICK).startswith(kept[: -len(MARK)])
    assert len(kept) > 800 + PAGE + 900
    assert len(rows) == ROWS
    listed = [one for one in told if "in part, " in one]
    assert listed == [f"Rows of messages in part, content cut off and marked: {SICK}."]


def test_a_flipped_bit_costs_one_character(tmp_path: Path) -> None:
    """The rest of the page is right; the receipt lists the row."""
    sick = build(tmp_path / "state.db", *(content(number) for number in range(1, ROWS + 1)))
    put(sick, chain(sick, SICK)[1], b"\xe5", 600)
    rows, told = result(sick, tmp_path)
    assert rows[SICK][0].count("\ufffd") == 1 and len(rows[SICK][0]) == len(content(SICK))
    assert f"Rows of messages in part, content guessed or perhaps wrong: {SICK}." in told


def test_a_wrong_pointer_behind_a_right_text_costs_nothing(tmp_path: Path) -> None:
    """The time on the page shows that it belongs to the row."""
    sick = build(tmp_path / "state.db", *(content(number) for number in range(1, ROWS + 1)))
    put(sick, chain(sick, SICK)[1], struct.pack(">I", 3))
    rows, _ = result(sick, tmp_path)
    assert rows[SICK][0] == content(SICK)


def test_sound_texts_stay(tmp_path: Path) -> None:
    """Zeros, foreign scripts and long rows are no damage."""
    texts = ["\0" * 100 + "a\0b" * 3000, "\u6f22\u5b57" * 4000, content(3), "x\0y", content(5)]
    sick = build(tmp_path / "state.db", *texts)
    put(sick, chain(sick, SICK)[1], b"\xff" * PAGE)
    rows, told = result(sick, tmp_path)
    assert [rows[number][0] for number in range(1, 5)] == texts[:4]
    assert "messages: 4 saved, 1 in part of 5 rows." in told


def test_a_time_that_is_no_number_does_not_drop_a_short_row(tmp_path: Path) -> None:
    """SQLite stores it as NULL, which the column refuses; the index knows the time."""
    sick = build(tmp_path / "state.db", "one", "two", "three")
    data = sick.read_bytes()
    at = data.index(b"usertwo") + len(b"usertwo")
    assert struct.unpack_from(">d", data, at) == (1760000002.5,)
    sick.write_bytes(data[:at] + b"\xff" * 8 + data[at + 8 :])
    rows, told = result(sick, tmp_path)
    assert rows == {
        n: (text, 1760000000.5 + n) for n, text in enumerate(("one", "two", "three"), 1)
    }
    assert any(one.startswith("messages: 2 saved, 1 restored") for one in told)


@pytest.mark.parametrize("wrong", [3, 6])
@pytest.mark.parametrize("indexed", [True, False], ids=["index", "no index"])
def test_two_rows_with_the_same_pages(tmp_path: Path, wrong: int, indexed: bool) -> None:
    """The second is cut; the receipt lists the first unless an index confirms it."""
    right = 9 - wrong
    sick = build(tmp_path / "state.db", *(content(number) for number in range(1, ROWS + 1)))
    if not indexed:
        with contextlib.closing(sqlite3.connect(sick)) as database:
            database.execute("DROP INDEX idx_messages_session")
    pointer = struct.pack(">I", chain(sick, wrong)[0])
    data = sick.read_bytes()
    [at] = [
        found
        for found in range(len(data) - 4)
        if data.startswith(pointer, found) and b"d%d " % wrong in data[found - 12 : found]
    ]
    put(sick, 1, struct.pack(">I", chain(sick, right)[0]), at)
    rows, told = result(sick, tmp_path)
    assert sorted(rows) == list(range(1, ROWS + 1))
    assert rows[6][0].endswith(MARK)
    assert "Rows of messages in part, content cut off and marked: 6." in told
    confirmed = indexed and wrong == 6
    assert confirmed == (not any("perhaps wrong: 3." in one for one in told))
    assert f"messages: {ROWS - 1 if confirmed else ROWS - 2} saved" in "".join(told)
