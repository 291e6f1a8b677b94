"""salvage-rows: every row that can be read is in the new database, and all are accounted for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.sqlite import query_process
from hermes_doctor.sqlite.reader import InProcess
from hermes_doctor.sqlite.repairs import rescue
from hermes_doctor.sqlite.salvage import account
from tests.helpers import damage, fix_cycle, support
from tests.helpers.damage import CUT, ROWS, Fault
from tests.helpers.fix_contract import Planted

SALVAGED = [fault for fault in (*ROWS, *CUT) if fault is not damage.freelist_lost]


@pytest.mark.sampled
@pytest.mark.parametrize("fault", SALVAGED, ids=damage.called)
def test_cures_and_undoes(home: Path, fault: Fault) -> None:
    """No row is made up, most are saved, and the notes count them by table."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    fault(path)

    cured = fix_cycle.cure(home, damage.CODES[fault], "salvage-rows")

    found = fix_cycle.messages(path)
    assert {row[0] for row in found} <= {row[0] for row in kept}
    assert len(set(found) & set(kept)) >= 0.6 * len(kept)
    assert fix_cycle.found_by_search(path, "message") >= 0.6 * len(kept)
    told = {note.partition(":")[0]: note for note in cured.notes}
    assert "saved" in told["messages"]
    assert told["sessions"].endswith(".")
    cured.undo()


def test_the_first_page(home: Path) -> None:
    """With the list of tables gone too, the tables are known by what lies in them."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.zero(path, 1)

    cured = fix_cycle.cure(home, "DB-NOTADB", "salvage-rows")

    assert fix_cycle.messages(path) == kept
    cured.undo()


def test_a_broken_log(home: Path) -> None:
    """Transactions behind the broken frame are there again."""
    path = damage.with_log(fix_cycle.history(home / "state.db"), index=False)
    log = Path(f"{path}-wal")
    frames = (log.stat().st_size - 32) // (damage.PAGE + 24)
    damage.write(log, b"garbage" * 9, 32 + frames // 3 * (damage.PAGE + 24) + 1000)

    cured = fix_cycle.cure(home, "DB-WAL-BROKEN", "salvage-rows")

    assert not log.exists()
    late = fix_cycle.rows(path, "SELECT count(*) FROM messages WHERE timestamp >= 10000")
    assert late[0][0] > 20
    assert any("write-ahead log is damaged" in note for note in cured.notes)
    cured.undo()


def test_from_a_snapshot(home: Path) -> None:
    """Rows that are lost in the file come from Hermes' own copy of it, which is named."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    support.put(home / "state-snapshots" / "20260101-000000" / "state.db", path.read_bytes())
    damage.cut_off(path)

    cured = fix_cycle.cure(home, "DB-TRUNCATED", "salvage-rows")

    assert set(fix_cycle.messages(path)) == set(kept)
    assert any("state-snapshots/20260101-000000/state.db" in note for note in cured.notes)


@pytest.mark.sampled
@pytest.mark.parametrize("foreign", [False, True], ids=["its own log", "a foreign log"])
def test_from_a_snapshot_with_a_log(home: Path, foreign: bool) -> None:
    """A copy with a log beside it is read with it, or without it where it is another's."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    place = home / "state-snapshots" / "20260101-000000" / "state.db"
    support.put(place, path.read_bytes())
    damage.with_log(path, rows=20, index=False)
    log = Path(f"{path}-wal").read_bytes()
    damage.settle(path)
    if foreign:
        damage.history(place, 90)
        log = log[:32] + os.urandom(8) + log[40:]
        kept = []
    else:
        kept = fix_cycle.messages(path)
    support.put(Path(f"{place}-wal"), log)
    before = fix_cycle.parts(place)
    damage.cut_off(path)

    done = fix_cycle.apply(home, "DB-TRUNCATED")

    assert done.code == 0, done.out + done.err
    assert set(kept) <= set(fix_cycle.messages(path))
    assert fix_cycle.parts(place) == before, "it was only read"
    assert not list(home.rglob("*-other-*"))
    [item] = done.json["repair"]["runs"][0]["items"]
    if not foreign:
        assert any("state-snapshots/20260101-000000/state.db" in note for note in item["notes"])


def test_text_as_utf_16(home: Path) -> None:
    """No Hermes makes such a database: its rows are not misread, and nothing is changed."""
    path = home / "state.db"
    path.unlink()
    plan = support.plan("state.db")
    with damage.opened(path) as db:
        db.execute("PRAGMA encoding='UTF-16le'")
        for table in plan.tables.values():
            db.execute(table.sql)
        db.execute("INSERT INTO sessions (id, source, started_at) VALUES ('s0', 'cli', 1)")
        for number in range(300):
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) "
                "VALUES ('s0', 'user', ?, 1)",
                (f"message {number} " * 20,),
            )
    path.chmod(0o600)
    damage.zero(path, damage.kind_pages(path, 0x0D)[-2])
    sick = support.contents(home)

    done = fix_cycle.apply(home, "DB-MALFORMED")

    assert done.code == 1, done.out
    assert support.contents(home) == sick
    assert "is UTF-16, which hermes-doctor does not read" in done.out


def test_a_header_that_says_utf_16(home: Path) -> None:
    """What the text itself says counts: a damaged field does not stop the salvage."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.rows_zeroed(path)
    damage.write(path, b"\0\0\0\2", 56)

    rescue.save_rows(path, support.plan("state.db"), Home(home), [])

    assert len(set(fix_cycle.messages(path)) & set(kept)) >= 0.9 * len(kept)


def test_a_board(home: Path) -> None:
    """The tasks of a board that Hermes refuses."""
    path = home / "kanban.db"
    support.database(path, "UPDATE tasks SET title = 'another'")
    tasks = fix_cycle.rows(path, "SELECT id, title, status FROM tasks")
    damage.zero(path, damage.leaves(path, "task_events")[0])

    cured = fix_cycle.cure(home, "KANBAN-CORRUPT", "salvage-rows", "kanban.db")

    assert fix_cycle.rows(path, "SELECT id, title, status FROM tasks") == tasks
    cured.undo()


def test_it_asks_first(home: Path) -> None:
    """Rows may be lost, so somebody has to say yes."""
    damage.rows_zeroed(fix_cycle.history(home / "state.db"))
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--home", home)

    assert done.code == 1
    assert "asks first" in done.out
    assert support.contents(home) == sick


def test_nothing_to_read(home: Path) -> None:
    """If no row is left, an empty database follows, and the result says what is lost."""
    path = fix_cycle.history(home / "state.db")
    damage.write(path, os.urandom(path.stat().st_size - damage.PAGE), damage.PAGE)

    cured = fix_cycle.cure(home, "DB-MALFORMED", "salvage-rows", then="start-empty")

    [reason] = cured.before
    assert "no row can be read" in reason
    assert any("All messages and sessions are lost" in note for note in cured.notes)
    assert fix_cycle.messages(path) == []
    cured.undo()


def test_a_newer_release(home: Path) -> None:
    """What a newer Hermes made is not pressed into an older shape."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(path, "UPDATE schema_version SET version = 99")
    damage.rows_zeroed(path)

    assert fix_cycle.refused(home, "DB-MALFORMED") == (
        "state.db is from a newer Hermes than hermes-doctor knows. Update hermes-doctor first."
    )


def test_in_use(home: Path) -> None:
    """A database that somebody has open is not swapped."""
    path = fix_cycle.history(home / "state.db")
    damage.rows_zeroed(path)
    sick = support.contents(home)

    with path.open("rb"):
        done = support.doctor("fix", "--apply", "--yes", "--home", home)

    assert done.code == 2
    assert "in use by process" in done.err
    assert support.contents(home) == sick


def test_a_reader_of_ours_is_no_user(home: Path) -> None:
    """A check that did not end in time leaves a process behind that only reads."""
    path = fix_cycle.history(home / "state.db")
    damage.rows_zeroed(path)
    reader = InProcess(path, query_process.NOT_IN_USE)
    try:
        done = support.doctor("fix", "DB-MALFORMED", "--apply", "--yes", "--home", home)
    finally:
        reader.close()
    assert done.code == 0, done.out + done.err


def test_further_sources(home: Path) -> None:
    """Transcripts of sessions are looked into one by one; the folder itself is none."""
    support.put(home / "sessions" / "one.jsonl", "{}")
    support.put(home / "sessions" / "session_two.json", "{}")
    support.put(home / "sessions" / "notes.txt", "x")
    plan = support.plan("state.db")

    found = rescue.sources(plan, Home(home), [])

    assert [one.name for one in found] == ["sessions/one.jsonl", "sessions/session_two.json"]
    assert rescue.sources(support.plan("kanban.db"), Home(home), []) == []


def test_no_source_is_blamed_that_is_none(home: Path) -> None:
    """Without older copies the receipt speaks of the database alone."""
    damage.rows_zeroed(fix_cycle.history(home / "state.db"))

    done = support.doctor("fix", "DB-MALFORMED", "--apply", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert "was not used" not in done.out


def _with_log_of_today(home: Path, snapshot: bool) -> tuple[Path, list[tuple[Any, ...]]]:
    """A history with 30 messages in its log only; and the messages of its copy, if there is one."""
    path = fix_cycle.history(home / "state.db")
    of_today = "UPDATE messages SET timestamp = timestamp + 1800000000 WHERE timestamp < 1e9"
    damage.execute(path, of_today)
    old = fix_cycle.messages(path) if snapshot else []
    if snapshot:
        support.put(home / "state-snapshots" / "2026" / "state.db", path.read_bytes())
    damage.with_log(path, index=False, then=of_today)
    return path, old


def _saved(path: Path, old: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the messages: all that the log had, and those of the copy."""
    found = fix_cycle.messages(path)
    assert len([row for row in found if row[4] >= 1800010000]) == 30
    assert set(old) <= set(found)
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("left", ["empty", "gone"])
@pytest.mark.parametrize("snapshot", [False, True], ids=["log only", "log and copy"])
def test_only_its_log_is_left(home: Path, left: str, snapshot: bool) -> None:
    """Rows on the pages of the log are saved although no page of it says what tables there are."""
    path, old = _with_log_of_today(home, snapshot)
    os.truncate(path, 0)
    if left == "gone":
        path.unlink()

    cured = fix_cycle.cure(home, "DB-GONE" if left == "gone" else "DB-EMPTY", "salvage-rows")

    found = _saved(path, old)
    assert len({row[0] for row in found}) == len(found)
    cured.undo()


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 200, 20_000])
@pytest.mark.parametrize("snapshot", [False, True])
def test_another_file_is_beside_its_log(home: Path, size: int, snapshot: bool) -> None:
    """The newest copy comes back with the rows of the log; undo brings back both files."""
    path, old = _with_log_of_today(home, snapshot)
    path.write_bytes(b"<!DOCTYPE html><html>404 Not Found</html>\n" * size)

    cured = fix_cycle.cure(home, "DB-NOTADB", "salvage-rows")

    _saved(path, old)
    cured.undo()


def test_a_truncated_message_is_marked_and_listed(home: Path) -> None:
    """The receipt names the row and its field, and the text ends in a mark."""
    path = fix_cycle.history(home / "state.db")
    with damage.opened(path) as database:
        long = " ".join(f"w{number:05d}" for number in range(3000))
        session = "(SELECT id FROM sessions LIMIT 1)"
        database.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) "
            f"VALUES ({session}, 'user', ?, 1760000000.0)",
            (long,),
        )
        (row,) = database.execute("SELECT max(id) FROM messages").fetchone()
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        names = ("messages", "messages_fts_content", "messages_fts_trigram_content")
        pages = [
            number
            for name in names
            for (number,) in database.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'overflow'", (name,)
            )
        ]
    damage.zero(path, *pages)

    cured = fix_cycle.cure(home, "DB-MALFORMED", "salvage-rows")

    [(text,)] = fix_cycle.rows(path, f"SELECT content FROM messages WHERE id = {row}")
    assert str(text).endswith(account.MARK)
    assert str(text).startswith("w00000 ") and len(str(text)) < len(long)
    [told] = [note for note in cured.notes if "content cut off and marked: " in note]
    assert told.startswith("Rows of messages in part") and told.endswith(f", {row}.")
    cured.undo()


PLANTED = Planted(damage.CODES[ROWS[0]], lambda home: ROWS[0](fix_cycle.history(home / "state.db")))
