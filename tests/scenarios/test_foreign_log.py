"""A log that is not of the database beside it: known by its pages, not only by its counters."""

from __future__ import annotations

import os
import random
import shutil
import struct
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import Snapshot
from hermes_doctor.sqlite import files, header, log_ancestry, pages, query_process, reader, wal
from hermes_doctor.sqlite.examine import condition, foreign_log
from hermes_doctor.sqlite.reader import QueryResult, Reader
from tests.helpers import damage
from tests.helpers.one_check import ask, codes

FRAME = damage.PAGE + 24


@pytest.fixture(params=["memory", "process"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small databases and large ones, with time enough on a busy machine."""
    for limit in ("SMALL_QUERY_SECONDS", "ATTRIBUTION_SECONDS", "FILE_ALONE_SECONDS"):
        monkeypatch.setattr(condition, limit, 30.0)
    if request.param == "process":
        monkeypatch.setattr(condition, "SMALL_BYTES", 0)
        monkeypatch.setattr(condition, "SMALL_BYTES_DEEP", 0)
        monkeypatch.setattr(condition, "QUICK_CHECK_SECONDS", 5.0)


def level(path: Path) -> str:
    """What the counters of page 1 say."""
    with files.open_files(path) as book:
        assert book.log is not None
        head = header.Header(os.pread(book.main, 128, 0), Snapshot.of(os.fstat(book.main)))
        return log_ancestry.of_log(head, book.log, book.read_log(live=False)).level


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_a_log_of_a_longer_database(home: Path, deep: bool) -> None:
    """A complete snapshot is not called cut off because the log is of a longer file."""
    path = damage.foreign_log(damage.history(home / "state.db"))
    assert level(path) == log_ancestry.PROVEN, "the counters must fit, or the case is an easier one"

    assert codes(home, deep=deep) == ["DB-WAL-STALE"]
    _, [finding] = ask("database-log", home, deep=deep)
    assert (finding.severity, finding.fix) == (Severity.CRITICAL, "set-aside-log")
    assert "No row is lost" in finding.detail
    assert any("are in neither file" in one.what for one in finding.evidence)


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_two_lives_of_one_file(home: Path, deep: bool) -> None:
    """The snapshot is as long as the log needs, its counters fit, and still its pages do not."""
    two_lives(home)

    assert codes(home, deep=deep) == ["DB-WAL-STALE"]
    _, [finding] = ask("database-log", home, deep=deep)
    assert any("do not fit the pages" in one.what for one in finding.evidence)


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
@pytest.mark.parametrize("which", damage.VACUUMED)
def test_one_of_the_lives_was_vacuumed(home: Path, which: str, deep: bool) -> None:
    """VACUUM moves the roots: the schema in the file names pages that the log uses otherwise."""
    path = damage.vacuumed_life(damage.history(home / "state.db"), which)
    assert level(path) == log_ancestry.PROVEN, "the counters must fit, or the case is an easier one"

    assert codes(home, deep=deep) == ["DB-WAL-STALE"]
    _, [finding] = ask("database-log", home, deep=deep)
    assert finding.title == "state.db has a -wal file of another database"
    assert any("do not fit the pages" in one.what for one in finding.evidence)


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["backup", "into"])
def test_a_snapshot_made_by_sqlite(home: Path, how: str) -> None:
    """A copy by SQLite's backup or by VACUUM INTO, beside the log of what it was made from."""
    path = damage.history(home / "state.db")
    made = home / "made"
    with damage.opened(path) as db:
        if how == "into":
            db.execute("VACUUM INTO ?", (str(made),))
        else:
            with damage.opened(made) as target:
                db.backup(target)
    damage.foreign_log(path)
    shutil.move(made, path)

    assert codes(home) == codes(home, deep=True) == ["DB-WAL-STALE"]


@pytest.mark.sampled
def test_a_huge_foreign_log_is_not_brought_in(home: Path) -> None:
    """No other finding offers to merge the log into the database."""
    path = damage.foreign_log(damage.history(home / "state.db"))
    os.truncate(f"{path}-wal", 80 * 1024**2)

    _, findings = ask("database-log", home)

    assert [finding.code for finding in findings] == ["DB-WAL-STALE"]


@pytest.mark.sampled
def test_its_own_log(home: Path) -> None:
    """The same log beside the file that it was written for."""
    path = damage.history(home / "state.db")
    folder = damage.another_life(path)
    for suffix in ("", "-wal", "-shm"):
        shutil.move(folder / f"state.db{suffix}", f"{path}{suffix}")
    shutil.rmtree(folder)

    assert codes(home) == codes(home, deep=True) == []


@pytest.mark.sampled
def test_a_file_that_was_cut_off(home: Path) -> None:
    """A cut-off file beside its own log is cut off: it is not sound without the log either."""
    path = damage.with_log(damage.history(home / "state.db"), index=False)
    os.truncate(path, path.stat().st_size // 2 // damage.PAGE * damage.PAGE)

    assert codes(home) == codes(home, deep=True) == ["DB-TRUNCATED"]


@pytest.mark.sampled
def test_both_are_damaged(home: Path) -> None:
    """A snapshot that is damaged itself: nothing is claimed of its log."""
    path = damage.history(home / "state.db")
    damage.zero(path, *damage.leaves(path, "messages")[3:6])
    folder = damage.another_life(damage.history(home / "sound.db"))
    for suffix in ("-wal", "-shm"):
        shutil.move(folder / f"state.db{suffix}", f"{path}{suffix}")
    shutil.rmtree(folder)
    (home / "sound.db").unlink()

    assert "DB-WAL-STALE" not in codes(home, deep=True)


@pytest.mark.sampled
def test_no_time_for_the_file_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a loss nor a foreign log is claimed before the file alone was judged."""
    damage.foreign_log(damage.history(home / "state.db"))
    late = QueryResult([], "SQLITE_INTERRUPT")
    monkeypatch.setattr(foreign_log.ForeignLogTest, "tables_of", lambda *_: ([], late))
    ask_alone = foreign_log.ForeignLogTest.alone

    def alone(self: foreign_log.ForeignLogTest) -> Reader:
        found = ask_alone(self)
        if not self.deep:
            monkeypatch.setattr(found, "ask", lambda *_: late)
        return found

    monkeypatch.setattr(foreign_log.ForeignLogTest, "alone", alone)

    result, findings = ask("database-pages", home)

    assert findings == []
    assert "--deep" in (result.reason or "")
    assert codes(home, deep=True) == ["DB-WAL-STALE"]


def two_lives(home: Path) -> Path:
    """A file and a log whose counters fit and whose pages do not."""
    path = damage.history(home / "state.db")
    folder = damage.another_life(path)
    with damage.opened(path) as db:
        for n in range(900):
            damage.add(db, 8_000 + n)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        shutil.move(folder / f"state.db{suffix}", f"{path}{suffix}")
    shutil.rmtree(folder)
    assert level(path) == log_ancestry.PROVEN
    return path


@pytest.mark.sampled
def test_no_time_to_compare(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage is not claimed before the pages were compared: the log may be foreign."""
    two_lives(home)
    walk = log_ancestry.PageComparison.walk

    def hurried(
        self: log_ancestry.PageComparison,
        roots: Iterable[tuple[str, int, bool]],
        seconds: float | None,
    ) -> None:
        walk(self, roots, None if seconds is None else 0.0)

    monkeypatch.setattr(log_ancestry.PageComparison, "walk", hurried)

    result, findings = ask("database-pages", home)

    assert findings == []
    assert "--deep" in (result.reason or "")
    assert codes(home, deep=True) == ["DB-WAL-STALE"]


def test_a_busy_machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both time limits count the seconds of an idle machine."""
    path = damage.history(home / "state.db")
    monkeypatch.setattr(limits, "factor", lambda: 1e7)
    monkeypatch.setattr(condition, "FILE_ALONE_SECONDS", 1e-5)
    monkeypatch.setattr(condition, "ATTRIBUTION_SECONDS", 1e-5)
    with path.open("rb") as file:
        compared = log_ancestry.PageComparison(pages.pages_of(file.fileno(), None))
        compared.walk([], 1e-5)
    assert compared.finished
    with closing(reader.InProcess(path, query_process.NOT_IN_USE)) as alone:
        suspicion = foreign_log.ForeignLogTest.__new__(foreign_log.ForeignLogTest)
        said, answer = suspicion.tables_of(alone)
    assert not answer.unfinished
    assert set(said) == {"ok"}


def newest(path: Path) -> dict[int, int]:
    """Where the newest version of each page lies in the log."""
    with files.open_files(path) as book:
        return dict(book.read_log(live=False).pages)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_damage_in_its_own_log(home: Path, seed: int) -> None:
    """Pages that went wrong in memory and got a right checksum do not prove a log foreign."""
    path = damage.with_log(damage.history(home / "state.db"), index=False)
    data = bytearray(Path(f"{path}-wal").read_bytes())
    chance = random.Random(seed)
    places = newest(path)
    for number in chance.sample(sorted(set(places) - {1}), 3):
        at = places[number]
        data[at + chance.randrange(12)] ^= 1 << chance.randrange(8)
        data[at + 100 : at + 200] = bytes(100)
    Path(f"{path}-wal").write_bytes(summed(data))

    assert codes(home, deep=True), "the damage must be found"
    for finding in ask("database-log", home, deep=True)[1]:
        assert finding.title == "state.db is intact, but its -wal file is wrong"


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_damaged_rows_in_its_own_log(home: Path, deep: bool) -> None:
    """The file alone has all of its rows, so it is not called damaged; nor is the log accused."""
    damaged_log(damage.history(home / "state.db"), "messages")

    assert codes(home, deep=deep) == ["DB-WAL-STALE"]
    _, [finding] = ask("database-log", home, deep=deep)
    assert finding.title == "state.db is intact, but its -wal file is wrong"
    assert "No row is lost" in finding.detail
    assert any("it is not proven" in one.what for one in finding.evidence)


@pytest.mark.sampled
def test_a_damaged_index_in_its_own_log(home: Path) -> None:
    """Every row can be read, the new ones too: the index is damaged, and the log stays."""
    damaged_log(damage.history(home / "state.db"), "idx_messages_session")

    assert codes(home, deep=True) == ["DB-INDEX"]


def damaged_log(path: Path, name: str) -> Path:
    """A log of the file's own in which one page of a tree is zeroed, with the right checksum."""
    folder = path.parent / "joined"
    folder.mkdir()
    dated = "UPDATE messages SET timestamp = 1700000000 + id WHERE timestamp >= 10000"
    damage.with_log(path, index=False, then=dated)
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", folder / f"state.db{suffix}")
    damage.settle(folder / "state.db")
    leaves = damage.leaves(folder / "state.db", name)
    shutil.rmtree(folder)
    places = newest(path)
    at = places[next(page for page in leaves if page in places)]
    data = bytearray(Path(f"{path}-wal").read_bytes())
    data[at : at + damage.PAGE] = bytes(damage.PAGE)
    Path(f"{path}-wal").write_bytes(summed(data))
    return path


@pytest.mark.sampled
def test_a_log_that_claims_four_billion_pages(home: Path) -> None:
    """Its checksums are right, and the look ends at once: the pages are not counted one by one."""
    path = damage.foreign_log(damage.history(home / "state.db"))
    data = bytearray(Path(f"{path}-wal").read_bytes())
    for at in range(32, len(data) - FRAME + 1, FRAME):
        if data[at + 4 : at + 8] != bytes(4):
            data[at + 4 : at + 8] = b"\xff" * 4
    Path(f"{path}-wal").write_bytes(summed(data))
    used = time.process_time()

    _, findings = ask("database-log", home)

    assert [finding.code for finding in findings] == ["DB-WAL-STALE"]
    assert "4,294,967,295 pages" in findings[0].evidence[1].what
    assert time.process_time() - used < 20


def summed(data: bytearray) -> bytes:
    """A log with the checksums that its frames should have."""
    order = "<" if struct.unpack_from(">I", data)[0] == wal.LITTLE else ">"
    sums = wal.checksum(bytes(data[:24]), (0, 0), order)
    for at in range(32, len(data) - FRAME + 1, FRAME):
        if data[at + 8 : at + 16] != data[16:24]:
            break
        sums = wal.checksum(bytes(data[at : at + 8]), sums, order)
        sums = wal.checksum(bytes(data[at + 24 : at + FRAME]), sums, order)
        data[at + 16 : at + 24] = struct.pack(">II", *sums)
    return bytes(data)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(8))
def test_a_crash_at_any_moment(home: Path, seed: int) -> None:
    """Checkpoints, deletions and VACUUM before it: a log beside its own file is never foreign."""
    chance = random.Random(seed)
    path = damage.history(home / "state.db", 200)
    beside = Path(shutil.copy(path, home / "writing.db"))
    with damage.opened(beside) as db, damage.opened(beside) as reader:
        db.execute(f"PRAGMA wal_autocheckpoint={chance.choice([0, 1, 50])}")
        for n in range(chance.randrange(5, 40)):
            what = chance.random()
            if what < 0.1:
                db.execute("DELETE FROM messages WHERE id % 5 = ?", (chance.randrange(5),))
            elif what < 0.15:
                db.execute("VACUUM")
            elif what < 0.35:
                mode = chance.choice(["PASSIVE", "RESTART", "TRUNCATE"])
                db.execute(f"PRAGMA wal_checkpoint({mode})")
            elif what < 0.45 and not reader.in_transaction:
                reader.execute("BEGIN")  # so that a checkpoint can only do a part
                reader.execute("SELECT count(*) FROM messages").fetchone()
            else:
                for m in range(chance.randrange(1, 20)):
                    damage.add(db, 1_000 * n + m)
            if reader.in_transaction and chance.random() < 0.5:
                reader.execute("COMMIT")
        for suffix in ("", "-wal", "-shm"):
            if Path(f"{beside}{suffix}").exists():
                shutil.copy(f"{beside}{suffix}", f"{path}{suffix}")
    for left in home.glob("writing.db*"):
        left.unlink()

    assert codes(home) == codes(home, deep=True) == []
