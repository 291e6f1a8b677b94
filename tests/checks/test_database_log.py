"""The files beside a database: a log that is foreign, broken or huge, and a journal."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.sqlite import files
from hermes_doctor.sqlite.examine import condition
from tests.helpers import damage
from tests.helpers.damage import PAGE
from tests.helpers.one_check import ask, codes

FRAME = PAGE + 24


@pytest.fixture(params=["memory", "process"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small databases and large ones."""
    if request.param == "process":
        monkeypatch.setattr(condition, "SMALL_BYTES", 0)
        monkeypatch.setattr(condition, "SMALL_BYTES_DEEP", 0)
        monkeypatch.setattr(condition, "QUICK_CHECK_SECONDS", 5.0)


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
@pytest.mark.parametrize("index", [False, True], ids=["only -wal", "both"])
def test_a_crash_is_no_fault(home: Path, index: bool, deep: bool) -> None:
    """What a killed process leaves is whole: SQLite takes the log in at the next start."""
    damage.with_log(damage.history(home / "state.db"), index=index)

    result, findings = ask("database-log", home, deep=deep)

    assert (result.status, findings) == (Status.OK, [])
    assert codes(home, deep=deep) == []


@pytest.mark.sampled
def test_stale(home: Path) -> None:
    """An older copy under the log of a newer life: sound alone, damaged with it."""
    path = damage.history(home / "state.db")
    older = shutil.copy(path, home / "older.db")
    damage.execute(path, "DELETE FROM messages WHERE id > 100", "VACUUM")
    damage.with_log(path)
    shutil.move(older, path)

    assert codes(home) == ["DB-WAL-STALE"]
    _, [finding] = ask("database-log", home)
    assert finding.severity is Severity.CRITICAL
    assert finding.fix == "set-aside-log"


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_broken(home: Path, deep: bool) -> None:
    """A damaged frame with whole transactions behind it."""
    path = damage.with_log(damage.history(home / "state.db"))
    log = home / "state.db-wal"
    frames = (log.stat().st_size - 32) // FRAME
    damage.write(log, b"garbage" * 9, 32 + frames // 3 * FRAME + 24 + 1000)

    assert codes(home, deep=deep) == ["DB-WAL-BROKEN"]
    _, [finding] = ask("database-log", home, deep=deep)
    assert finding.data["frame"] <= frames // 3
    assert path.exists()


def test_broken_head(home: Path) -> None:
    """A damaged head makes SQLite ignore the whole log."""
    damage.with_log(damage.history(home / "state.db"))
    damage.write(home / "state.db-wal", os.urandom(32), 0)

    assert codes(home) == ["DB-WAL-BROKEN"]


def test_cut_at_its_end(home: Path) -> None:
    """A log that ends within a frame lost nothing that was committed before it."""
    damage.with_log(damage.history(home / "state.db"))
    os.truncate(home / "state.db-wal", (home / "state.db-wal").stat().st_size - 100)

    assert codes(home) == []


@pytest.mark.sampled
def test_an_older_generation_is_no_fault(home: Path) -> None:
    """Frames of the log's earlier life behind the present ones are what SQLite leaves there."""
    path = damage.history(home / "state.db")
    with damage.opened(path) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        for n in range(30):
            damage.add(db, n)
        db.execute("PRAGMA wal_checkpoint(RESTART)")
        damage.add(db, 31)
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", home / f"kept{suffix}")
    for suffix in ("", "-wal", "-shm"):
        shutil.move(home / f"kept{suffix}", f"{path}{suffix}")

    assert codes(home) == codes(home, deep=True) == []


def test_huge(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that outgrew its database; the file is as large as that, and mostly a hole."""
    path = damage.with_log(damage.history(home / "state.db"))
    os.truncate(home / "state.db-wal", 80 * 1024**2)

    _, [finding] = ask("database-log", home)

    assert (finding.code, finding.severity) == ("DB-WAL-HUGE", Severity.WARNING)
    assert finding.fix == "checkpoint-wal"
    assert path.exists()


@pytest.mark.parametrize(
    ("main", "log", "found"),
    [(4, 60, True), (4, 15, False), (40, 60, False), (40, 90, True), (200, 300, False)],
)
def test_size_of_the_database(home: Path, main: int, log: int, found: bool) -> None:
    """What is huge depends on the size of the database, in MB."""
    path = damage.with_log(damage.history(home / "state.db"))
    os.truncate(path, main * 1024**2)
    os.truncate(home / "state.db-wal", log * 1024**2)

    findings = ask("database-log", home)[1]

    assert ("DB-WAL-HUGE" in [one.code for one in findings]) is found


def journal(home: Path, mode: str) -> Path:
    """A database with the journal of a transaction that was cut off."""
    path = damage.history(home / "state.db")
    beside = Path(shutil.copy(path, home / "beside.db"))
    with damage.opened(beside) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA cache_size=5")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE messages SET role = 'x' WHERE id < 300")
        if mode == "own":
            shutil.copy(beside, path)
        shutil.copy(f"{beside}-journal", f"{path}-journal")
        db.execute("ROLLBACK")
    beside.unlink()
    return path


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_foreign_journal(home: Path, deep: bool) -> None:
    """A database with a log never leaves a journal: this one would destroy rows."""
    journal(home, "foreign")

    assert codes(home, deep=deep) == ["DB-JOURNAL"]
    _, [finding] = ask("database-log", home, deep=deep)
    assert finding.severity is Severity.CRITICAL
    assert "of another database" in finding.title


def test_own_journal(home: Path) -> None:
    """One that belongs to its database is SQLite's business."""
    journal(home, "own")

    _, [finding] = ask("database-log", home)

    assert (finding.code, finding.severity) == ("DB-JOURNAL", Severity.WARNING)


def test_times_prove_nothing(home: Path) -> None:
    """A long transaction, a copy or a restore: the journal is much older, and still its own."""
    path = journal(home, "own")
    then = path.stat().st_mtime - 3600
    os.utime(f"{path}-journal", (then, then))

    _, [finding] = ask("database-log", home)

    assert (finding.severity, finding.fix) == (Severity.WARNING, "roll-back")


@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_half_a_transaction_that_is_sound(home: Path, deep: bool) -> None:
    """SQLite finds nothing wrong with the half that is in the file; it is half all the same."""
    path = damage.history(home / "state.db")
    damage.execute(path, damage.LONG)
    before = path.read_bytes()
    damage.cut_off_transaction(path, damage.QUIET)
    os.utime(f"{path}-journal", (1_700_000_000, 1_700_000_000))
    assert path.read_bytes() != before
    assert damage.sound(path), "the case itself is wrong"

    _, [finding] = ask("database-log", home, deep=deep)

    assert (finding.data["kind"], finding.fix) == ("own", "roll-back")


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_a_journal_of_another_time(home: Path, deep: bool) -> None:
    """Transactions were committed since it began: it is not of this database any more."""
    path = damage.cut_off_transaction(damage.history(home / "state.db"), damage.MANY)
    left = Path(shutil.move(f"{path}-journal", home / "left"))
    damage.history(path)
    damage.execute(path, "PRAGMA journal_mode=DELETE")
    for n in range(5):
        damage.execute(path, f"UPDATE sessions SET title = 'newer {n} ' || id", "VACUUM")
    shutil.move(left, f"{path}-journal")

    _, [finding] = ask("database-log", home, deep=deep)

    assert (finding.data["kind"], finding.fix) == ("foreign", "set-aside-log")


def test_it_cannot_be_told(home: Path) -> None:
    """Page 1 does not tell, and both pictures are sound or not looked at: nobody touches it."""
    path = damage.history(home / "state.db")
    damage.execute(path, damage.LONG)
    damage.cut_off_transaction(path, damage.QUIET)
    damage.write(path, b"\xff\xff\xff\xff", 92)

    _, [finding] = ask("database-log", home)

    assert (finding.data["kind"], finding.fix) == ("unclear", None)
    assert finding.severity is Severity.CRITICAL


@pytest.mark.sampled
def test_a_journal_beside_a_log(home: Path) -> None:
    """A stale journal says nothing of the log beside it."""
    path = damage.with_log(damage.history(home / "state.db"), index=False)
    other = damage.cut_off_transaction(damage.history(home / "other.db"), damage.MANY)
    shutil.move(f"{other}-journal", f"{path}-journal")
    other.unlink()

    _, [finding] = ask("database-log", home)

    assert (finding.code, finding.data["kind"]) == ("DB-JOURNAL", "foreign")


@pytest.mark.parametrize("head", [b"\0" * 512, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\xff" * 600])
def test_a_journal_that_is_none(home: Path, head: bytes) -> None:
    """Zeros, or a head that makes no sense: SQLite would not play it back."""
    damage.history(home / "state.db")
    (home / "state.db-journal").write_bytes(head)

    assert codes(home) == []


@pytest.mark.sampled
def test_a_broken_index_in_a_log(home: Path) -> None:
    """The rows in the log can all be read: it is the database's own, and the index is damaged."""
    damage.log_with_a_broken_index(damage.history(home / "state.db"))

    assert codes(home, deep=True) == ["DB-INDEX"]


def _rollback(home: Path, *, later: bool = True) -> Path:
    """A database that left WAL mode, with an old log put back beside it."""
    path = damage.with_log(damage.history(home / "state.db"), index=False)
    log = Path(shutil.copy(f"{path}-wal", home / "old-log"))
    with damage.opened(path) as db:
        assert db.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
        for n in range(20 if later else 0):
            damage.add(db, 50_000 + n)
    assert not Path(f"{path}-wal").exists()
    shutil.move(log, f"{path}-wal")
    return path


@pytest.mark.parametrize("later", [False, True])
def test_a_log_beside_rollback_mode(home: Path, later: bool) -> None:
    """SQLite would apply it without an error, and newer rows would disappear."""
    path = _rollback(home, later=later)
    [finding] = ask("database-log", home)[1]
    assert (finding.code, finding.severity) == ("DB-WAL-STALE", Severity.CRITICAL)
    assert finding.fix == "set-aside-log"
    assert "rollback mode" in str(finding.evidence[0])
    alone = path.read_bytes()
    if later:  # this is what SQLite does
        count = "SELECT count(*) FROM messages"
        with damage.opened(path) as db:
            with_log = db.execute(count).fetchone()[0]
        path.write_bytes(alone)
        Path(f"{path}-wal").unlink(missing_ok=True)
        with damage.opened(path) as db:
            assert db.execute(count).fetchone()[0] == with_log + 20


def test_its_own_log_beside_rollback_mode(home: Path) -> None:
    """The log may be the database's own, so it is reported but not moved away."""
    path = damage.with_log(damage.history(home / "state.db"), index=False)
    damage.write(path, b"\1\1", 18)
    [finding] = ask("database-log", home)[1]
    assert (finding.code, finding.severity) == ("DB-WAL-STALE", Severity.WARNING)
    assert finding.fix is None


def test_rollback_mode_is_no_fault(home: Path) -> None:
    """Releases that avoid the log by design, with and without an empty log."""
    path = damage.history(home / "state.db")
    with damage.opened(path) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    assert ask("database-log", home)[1] == []
    Path(f"{path}-wal").touch()
    assert ask("database-log", home)[1] == []


def test_a_journal_mode_without_effect(home: Path) -> None:
    """The setting is for new databases only."""
    path = damage.with_log(damage.history(home / "state.db"))
    config = home / "config.yaml"
    config.write_text(f"{config.read_text()}\ndatabase:\n  journal_mode: delete\n")
    [finding] = ask("database-log", home)[1]
    assert (finding.code, finding.severity) == ("DB-JOURNAL-MODE", Severity.WARNING)
    with damage.opened(path) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    assert ask("database-log", home)[1] == []


def test_memory_for_what_is_there(home: Path) -> None:
    """However large a database may be, a small one takes only the memory that it needs."""
    most = 128 * MEGABYTE
    with files.open_files(home / "state.db") as opened:
        tracemalloc.start()
        try:
            files.read_image(opened, max_bytes=most)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < most / 10
