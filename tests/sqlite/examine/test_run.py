"""The examination of a database, part by part, and against hostile files."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import struct
import threading
import time
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.sqlite import query_process, wal
from hermes_doctor.sqlite.examine import condition, damage as damages, fulltext_check, run
from hermes_doctor.sqlite.examine.condition import Condition
from hermes_doctor.sqlite.files import open_files, read_image
from hermes_doctor.sqlite.reader import InMemory, InProcess, Reader
from hermes_doctor.sqlite.schema import Catalog, SchemaRow
from tests.helpers import damage

MOST = 64 * MEGABYTE
PICTURES = 25


def examine(path: Path, *, deep: bool = False) -> Condition:
    """A look at a database that nobody uses."""
    return run.examine(path, holders=lambda: (), deep=deep)


# -- logs ------------------------------------------------------------------------------------------


def test_frames_count_as_sqlite_counts_them(tmp_path: Path) -> None:
    """Our reading of a log and SQLite's own agree, for every place at which it can be cut."""
    path = damage.with_log(damage.history(tmp_path / "a.db", messages=60), rows=6, index=False)
    whole = Path(f"{path}-wal").read_bytes()
    for cut in [*range(0, len(whole), 3001), len(whole)]:
        Path(f"{path}-wal").write_bytes(whole[:cut])
        with open_files(path) as book:
            ours = book.read_log(live=False)
        reader = InProcess(path, query_process.LEFTOVER_LOG)
        index = wal.ShmHeader.parse(reader.ask("SELECT count(*) FROM messages").log_index)
        reader.close()
        assert ours.committed == (index.committed if index else 0), cut
        assert ours.broken is None


@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_byte_ends_the_log(tmp_path: Path, seed: int) -> None:
    """Wherever a byte of a frame is wrong, both stop before it."""
    chance = random.Random(seed)
    path = damage.with_log(damage.history(tmp_path / "a.db", messages=60), rows=12, index=False)
    log = Path(f"{path}-wal")
    at = chance.randrange(32, log.stat().st_size)
    damage.write(log, bytes([log.read_bytes()[at] ^ 1 << chance.randrange(8)]), at)
    reader = InProcess(path, query_process.LEFTOVER_LOG)
    index = wal.ShmHeader.parse(reader.ask("SELECT count(*) FROM messages").log_index)
    reader.close()
    assert index is not None

    with open_files(path) as book:
        checked = book.read_log(live=False)
        told = book.read_log(live=False, committed=index.committed)

    assert checked.committed == told.committed == index.committed <= (at - 32) // 4120
    assert checked.lost_commits == told.lost_commits


@pytest.mark.disk  # in memory the writer never waits
def test_picture_of_a_moving_database(tmp_path: Path) -> None:
    """However a writer moves, checkpoints and begins its log anew, a picture is always whole."""
    path = damage.history(tmp_path / "a.db", messages=100)
    stop = threading.Event()
    errors: list[sqlite3.Error] = []

    def work() -> None:
        try:
            with damage.opened(path) as db:
                db.execute("PRAGMA wal_autocheckpoint=20")
                number = 1000
                while not stop.is_set():
                    damage.add(db, number)
                    if number % 7 == 0:
                        db.execute("DELETE FROM messages WHERE id % 5 = 0")
                    if number % 31 == 0:
                        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    number += 1
                    time.sleep(0.001)
        except sqlite3.Error as error:
            errors.append(error)

    writer = threading.Thread(target=work)
    writer.start()
    taken = 0
    try:
        end = time.monotonic() + 90
        while taken < PICTURES and time.monotonic() < end:
            with contextlib.suppress(CouldNotLook), open_files(path) as book:
                reader = InMemory(read_image(book, max_bytes=MOST))
                assert reader.ask("PRAGMA integrity_check").rows == [["ok"]]
                reader.close()
                taken += 1
    finally:
        stop.set()
        writer.join()
    assert not errors
    assert taken == PICTURES


def test_a_log_cannot_make_a_giant(tmp_path: Path) -> None:
    """A log that claims a page far out does not fill the memory."""
    path = damage.with_log(damage.history(tmp_path / "a.db", messages=30), rows=1, index=False)
    log = bytearray(Path(f"{path}-wal").read_bytes())
    log[32:40] = struct.pack(">II", 0x7FFFFFFF, 0x7FFFFFFF)
    Path(f"{path}-wal").write_bytes(log)
    with open_files(path) as book:
        said = book.read_log(live=False, committed=1)
        with pytest.raises(CouldNotLook, match="larger than"):
            read_image(book, max_bytes=MOST, log=said)


# -- the process of its own ------------------------------------------------------------------------


def test_it_cannot_write(tmp_path: Path) -> None:
    """SQLite in that process refuses, whatever it is asked."""
    path = damage.with_log(damage.history(tmp_path / "a.db"))
    for how in (query_process.NOT_IN_USE, query_process.LEFTOVER_LOG, query_process.IN_USE):
        reader = InProcess(path, how)
        for sql in ("DELETE FROM messages", "PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"):
            answer = reader.ask(sql)
            assert answer.error or sql.startswith("PRAGMA"), (how, sql)
        reader.close()
    with damage.opened(path) as db:
        assert db.execute("SELECT count(*) FROM messages").fetchone()[0] > 500


def test_names_with_every_sign(tmp_path: Path) -> None:
    """A path may hold what means something in a URI."""
    path = damage.history(tmp_path / "a?mode=rwc&x=%41#b é'\".db", messages=5)
    reader = InProcess(path, query_process.NOT_IN_USE)

    assert reader.ask("SELECT count(*) FROM sessions").rows == [[40]]
    reader.close()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_time_is_kept(tmp_path: Path) -> None:
    """A statement that would run for ever is stopped, and the next one is answered."""
    path = damage.history(tmp_path / "a.db", messages=5)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with open_files(path) as book:
        readers: list[Reader] = [InMemory(read_image(book, max_bytes=MOST))]
    readers.append(InProcess(path, query_process.NOT_IN_USE))
    for reader in readers:
        started = time.monotonic()
        assert reader.ask(endless, 0.05).unfinished
        assert time.monotonic() - started < 5
        assert reader.ask("SELECT count(*) FROM sessions", 1).rows == [[40]]
        reader.close()


def test_time_is_kept_for_each(tmp_path: Path) -> None:
    """A long limit before it does not lengthen a short one, nor does a short one stop the next."""
    path = damage.history(tmp_path / "a.db", messages=5)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    some = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n LIMIT 300000) "
    with open_files(path) as book:
        readers: list[Reader] = [InMemory(read_image(book, max_bytes=MOST))]
    readers.append(InProcess(path, query_process.NOT_IN_USE))
    for reader in readers:
        for _ in range(3):
            assert reader.ask("SELECT 1", 1000).rows == [[1]]
            assert reader.ask(endless, 0.01).unfinished
            assert reader.ask(f"{some} SELECT max(i) FROM n", 1000).rows == [[300000]]
            assert reader.ask(f"{some} SELECT max(i) FROM n").rows == [[300000]]
        reader.close()


def test_a_process_that_died(tmp_path: Path) -> None:
    """Whatever happens to it, there is an answer."""
    reader = InProcess(damage.history(tmp_path / "a.db", messages=5), query_process.NOT_IN_USE)
    reader.process.kill()
    reader.process.wait()

    assert reader.ask("SELECT 1").error == "GONE"
    reader.close()


def test_without_the_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SQLite's calls cannot be reached, the file is not opened and that is said."""
    path = damage.history(tmp_path / "a.db")
    script = tmp_path / "query_process.py"
    text = Path(query_process.__file__).read_text()
    script.write_text(text.replace('b"open": ', 'b"no-such-call": '))
    monkeypatch.setattr(query_process, "__file__", str(script))
    monkeypatch.setattr(condition, "SMALL_BYTES", 0)

    found = examine(path)

    assert (found.reader, found.damage) == (None, None)
    assert "SQLite cannot open it" in (found.doubt or "")


# -- SQLite's sentences ----------------------------------------------------------------------------

_CATALOG = Catalog(
    (
        SchemaRow("table", "messages", "messages", 3, "CREATE TABLE messages (id)"),
        SchemaRow("index", "by_time", "messages", 4, "CREATE INDEX by_time ON messages(t)"),
        SchemaRow("table", "s", "s", 0, "CREATE VIRTUAL TABLE s USING fts5(content)"),
        SchemaRow("table", "s_data", "s_data", 5, "CREATE TABLE 's_data'(id)"),
    )
)
SENTENCES = {
    "row 5 missing from index by_time": ("", "by_time", ""),
    "wrong # of entries in index by_time": ("", "by_time", ""),
    "non-unique entry in index by_time": ("", "by_time", ""),
    "Tree 3 page 9 cell 2: 2nd reference to page 7": ("messages", "", ""),
    "Tree 4 page 9: btreeInitPage() returns error code 11": ("", "by_time", ""),
    "Tree 5 page 6: btreeInitPage() returns error code 11": ("", "", "s"),
    "malformed inverted index for FTS5 table main.s": ("", "", "s"),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_sentences(sentence: str) -> None:
    """Each sentence of any release of SQLite names what it is about."""
    rows, indexes, searches = SENTENCES[sentence]

    found = damages.find_damage(
        [("", f"*** in database main ***\n{sentence}")], "", _CATALOG, None, seconds=1
    )

    assert found.rows == ({rows} - {""})
    assert found.indexes == ({indexes} - {""})
    assert found.searches == ({searches} - {""})


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("NULL value in messages.session_id", "messages.session_id"),
        ("CHECK constraint failed in messages", "messages"),
    ],
)
def test_rules(sentence: str, rule: str) -> None:
    """A value that its table forbids is no damage of a page: the row can be read."""
    found = damages.find_damage([("", sentence)], "", _CATALOG, None, seconds=1)

    assert (not found.rows, found.rules == {rule}, found.any) == (True, True, True)


@pytest.mark.parametrize("sentence", ["Page 7 is never used", "Page 7: never used"])
def test_unused_pages(sentence: str) -> None:
    """Pages that belong to nothing hit nothing."""
    found = damages.find_damage([("", sentence)], "", _CATALOG, None, seconds=1)

    assert (found.unused, found.rows, found.indexes) == (1, frozenset(), frozenset())


@pytest.mark.parametrize(
    "sentence", ["Main freelist: invalid page number 7", "Freelist: freelist leaf count too big"]
)
def test_freelist(sentence: str) -> None:
    """Nor does the list of free pages."""
    found = damages.find_damage([("", sentence)], "", _CATALOG, None, seconds=1)

    assert (found.free, found.rows) == (True, frozenset())


def test_unknown_sentences_are_taken_seriously() -> None:
    """What cannot be read is never taken for harmless."""
    found = damages.find_damage([("", "something new is wrong")], "", _CATALOG, None, seconds=1)
    assert found.rows
    found = damages.find_damage(
        [("messages", "something new is wrong")], "", _CATALOG, None, seconds=1
    )
    assert found.rows == {"messages"}


# -- structure records -----------------------------------------------------------------------------


def test_structure_records(tmp_path: Path) -> None:
    """Segments of a real table are read as FTS5 wrote them, after every kind of merge."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE VIRTUAL TABLE s USING fts5(content)")
        db.execute("INSERT INTO s(s, rank) VALUES ('automerge', 2)")
        for n in range(300):
            db.execute("INSERT INTO s VALUES (?)", (f"word{n} " * 200,))
            if n % 90 == 0:
                db.execute("INSERT INTO s(s, rank) VALUES ('merge', 4)")
            if n == 250:
                db.execute("INSERT INTO s(s) VALUES ('optimize')")
            (record,) = db.execute("SELECT block FROM s_data WHERE id = 10").fetchone()
            for number, first, last in fulltext_check.segments_of(record):
                ids = f"id BETWEEN {(number << 37) + first} AND {(number << 37) + last}"
                count = db.execute(f"SELECT count(*) FROM s_data WHERE {ids}").fetchone()[0]
                assert count == last - first + 1


@pytest.mark.parametrize(
    ("harm", "flaw"),
    [
        ("", None),
        (
            "DELETE FROM s_data WHERE id = (SELECT max(id) FROM s_data)",
            "1 page of its index is gone",
        ),
        ("DELETE FROM s_data WHERE id = {first}", "1 page of its index is gone"),
        ("DELETE FROM s_idx WHERE segid = {segment}", "its index of terms has lost entries"),
        ("DROP TABLE s_idx", "its index of terms has lost entries"),
    ],
)
def test_the_ends_of_many_segments(tmp_path: Path, harm: str, flaw: str | None) -> None:
    """A look at the ends of all segments finds the same as a look at each of them."""
    path = tmp_path / "many.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE VIRTUAL TABLE s USING fts5(content)")
        db.execute("INSERT INTO s(s, rank) VALUES ('automerge', 0)")
        for n in range(12):
            db.execute("INSERT INTO s VALUES (?)", (" ".join(f"w{n}x{m}" for m in range(900)),))
        (record,) = db.execute("SELECT block FROM s_data WHERE id = 10").fetchone()
        segments = fulltext_check.segments_of(record)
        assert len(segments) > 5
        number, first, _ = segments[3]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(harm.format(segment=number, first=(number << 37) + first))
    with contextlib.closing(InMemory(path.read_bytes())) as reader:
        check = fulltext_check.FulltextCheck(reader, Catalog(()), None, whole=False)
        found = check.structure("s")
        sound = check.have_ends("s", segments)

    assert (found and found.what) == flaw
    assert sound == (flaw is None)


@pytest.mark.parametrize("seed", range(30))
def test_hostile_structure_records(seed: int) -> None:
    """Any bytes are segments or none, at once."""
    chance = random.Random(seed)
    with contextlib.suppress(CouldNotLook):
        fulltext_check.segments_of(chance.randbytes(chance.randrange(200)))


# -- hostile files ---------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
@pytest.mark.parametrize("way", ["memory", "process"])
@pytest.mark.parametrize("seed", range(10))
def test_mutated_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, way: str, deep: bool
) -> None:
    """Random damage of any kind gives an answer soon, and changes nothing."""
    if way == "process":
        monkeypatch.setattr(condition, "SMALL_BYTES", 0)
        monkeypatch.setattr(condition, "SMALL_BYTES_DEEP", 0)
    chance = random.Random(f"{seed} {way} {deep}")
    base = damage.with_log(damage.history(tmp_path / "base.db", messages=150), index=False)
    for number in range(4):
        path = tmp_path / f"{number}.db"
        for suffix in ("", "-wal"):
            if suffix and chance.random() < 0.4:
                continue
            data = bytearray(Path(f"{base}{suffix}").read_bytes())
            for _ in range(chance.choice((1, 3, 40, 400))):
                at = chance.randrange(len(data) if chance.random() < 0.7 else 200)
                data[at : at + 4] = chance.randbytes(4)
            if chance.random() < 0.2:
                data = data[: chance.randrange(len(data))]
            Path(f"{path}{suffix}").write_bytes(data)
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        started = time.monotonic()
        with contextlib.suppress(CouldNotLook):
            found = examine(path, deep=deep)
            if found.reader is not None:
                found.reader.ask("SELECT count(*) FROM messages", 1)
                found.reader.close()
        assert time.monotonic() - started < 20
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes(tmp_path: Path, seed: int) -> None:
    """Bytes that never were a database, with and without its head."""
    chance = random.Random(seed)
    path = tmp_path / "a.db"
    real = damage.history(tmp_path / "real.db", messages=5).read_bytes()
    path.write_bytes(
        real[: chance.choice((0, 16, 100))] + chance.randbytes(chance.randrange(40_000))
    )
    if chance.random() < 0.5:
        Path(f"{path}-wal").write_bytes(chance.randbytes(chance.randrange(40_000)))

    with contextlib.suppress(CouldNotLook):
        found = examine(path)
        assert found.wrong or found.header.empty


def test_a_sidecar_that_is_a_link(tmp_path: Path) -> None:
    """A symlinked database is looked at where it lies, with what lies beside it there."""
    path = damage.with_log(damage.history(tmp_path / "real.db"))
    os.symlink(path, tmp_path / "link.db")

    found = examine(tmp_path / "link.db")

    assert found.files.path == path
    assert found.log.committed
    assert not found.wrong
    shutil.rmtree(tmp_path)
