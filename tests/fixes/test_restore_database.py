"""restore-database: a history that is gone comes back from a copy of it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from hermes_doctor.core.file_copies import DatabaseCopy
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.sqlite.repairs.rescue import restore_from_copy
from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_contract import Planted


def copy_of(home: Path, day: int, messages: int) -> Path:
    """A snapshot of Hermes' own."""
    path = home / "state-snapshots" / f"2026010{day}-000000" / "state.db"
    path.parent.mkdir(parents=True)
    fix_cycle.history(path, messages)
    os.utime(path, (1_800_000_000 + day, 1_800_000_000 + day))
    return path


def test_the_newest_sound_one(home: Path) -> None:
    """A damaged copy is passed over; the copies themselves stay."""
    older = copy_of(home, 1, 100)
    damage.rows_zeroed(copy_of(home, 2, 200))
    kept = fix_cycle.messages(older)
    os.truncate(home / "state.db", 0)

    cured = fix_cycle.cure(home, "DB-EMPTY", "restore-database")

    assert fix_cycle.messages(home / "state.db") == kept
    [note] = cured.notes
    assert "20260101-000000/state.db" in note
    cured.undo()


def test_it_asks_first(home: Path) -> None:
    """Which copy is the right one is for the operator to say."""
    copy_of(home, 1, 100)
    os.truncate(home / "state.db", 0)
    sick = support.contents(home)

    done = support.doctor("fix", "DB-EMPTY", "--apply", "--home", home)

    assert done.code == 1
    assert "asks first" in done.out
    assert support.contents(home) == sick


def test_no_sound_copy(home: Path) -> None:
    """If every copy is damaged, too, the rows of the newest one are saved."""
    damage.rows_zeroed(copy_of(home, 1, 200))
    os.truncate(home / "state.db", 0)

    cured = fix_cycle.cure(home, "DB-EMPTY", "restore-database", then="salvage-rows")

    assert cured.before == ["every older copy is damaged, too. The next fix is salvage-rows."]
    assert 0 < len(fix_cycle.messages(home / "state.db")) <= 200
    assert any("damaged copy 20260101-000000/state.db" in note for note in cured.notes)
    cured.undo()


def test_content_decides_which_copy_is_newest(home: Path) -> None:
    """A person copied an old database a minute ago: the copy with newer messages is restored."""
    newer = copy_of(home, 1, 100)
    older = copy_of(home, 2, 80)
    damage.execute(newer, "UPDATE messages SET timestamp = 2000")
    damage.execute(older, "UPDATE messages SET timestamp = 1000")
    os.utime(newer, (1_500_000_000, 1_500_000_000))
    kept = fix_cycle.messages(newer)
    (home / "state.db").unlink()

    fix_cycle.cure(home, "DB-GONE", "restore-database")

    assert fix_cycle.messages(home / "state.db") == kept


def test_a_log_beside_the_empty_file(home: Path) -> None:
    """Rows that are in the log only are saved out of it."""
    path = home / "state.db"
    with damage.opened(fix_cycle.history(home / "other.db")) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("VACUUM")
        log = Path(f"{home}/other.db-wal").read_bytes()
        kept = fix_cycle.messages(home / "other.db")
    for left in home.glob("other.db*"):
        left.unlink()
    support.put(Path(f"{path}-wal"), log)
    os.truncate(path, 0)

    cured = fix_cycle.cure(home, "DB-EMPTY", "salvage-rows")

    assert fix_cycle.messages(path) == kept
    cured.undo()


def test_a_file_that_is_gone(home: Path) -> None:
    """The newest copy is in its place; undo takes it away again."""
    kept = fix_cycle.messages(copy_of(home, 1, 100))
    (home / "state.db").unlink()

    cured = fix_cycle.cure(home, "DB-GONE", "restore-database")

    assert fix_cycle.messages(home / "state.db") == kept
    assert (home / "state.db").stat().st_mode & 0o777 == 0o600
    cured.undo()
    assert not (home / "state.db").exists()


def test_another_file_in_its_place(home: Path) -> None:
    """Something else has its name: the newest sound copy comes back, and undo keeps the file."""
    older = copy_of(home, 1, 100)
    damage.rows_zeroed(copy_of(home, 2, 200))
    kept = fix_cycle.messages(older)
    (home / "state.db").write_bytes(b"<!DOCTYPE html><html>404 Not Found</html>" * 200)

    cured = fix_cycle.cure(home, "DB-NOTADB", "restore-database")

    assert fix_cycle.messages(home / "state.db") == kept
    [note] = cured.notes
    assert "20260101-000000/state.db" in note
    cured.undo()


def zipped(
    path: Path,
    source: Path,
    name: str = "state.db",
    year: int = 2026,
    method: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """A backup zip of Hermes' own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        info = zipfile.ZipInfo(name, (year, 11, 2, 3, 4, 6))
        info.compress_type = method
        archive.writestr(info, source.read_bytes())
    return path


@pytest.mark.sampled
@pytest.mark.parametrize("place", ["empty", "html", "gone"])
def test_a_copy_in_a_zip(home: Path, tmp_path: Path, place: str) -> None:
    """The newest copy is in a backup of Hermes; it is found wherever the database was lost."""
    source = fix_cycle.history(tmp_path / "source.db", 120)
    zipped(home / "backups/pre-update-20261102.zip", source)
    kept = fix_cycle.messages(source)
    path = home / "state.db"
    code = {"empty": "DB-EMPTY", "html": "DB-NOTADB", "gone": "DB-GONE"}[place]
    path.unlink()
    if place != "gone":
        support.put(path, "<html>not found</html>" * 400 if place == "html" else b"")

    cured = fix_cycle.cure(home, code, "restore-database")

    assert fix_cycle.messages(path) == kept
    assert "backups/pre-update-20261102.zip:state.db" in " ".join(cured.notes)
    cured.undo()


@pytest.mark.sampled
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_is_passed_over(home: Path, tmp_path: Path, method: int) -> None:
    """Damaged bytes in the newest zip, and an older one that is sound."""
    source = fix_cycle.history(tmp_path / "source.db", 120)
    newest = zipped(home / "backups/pre-update-2.zip", source, year=2027, method=method)
    data = bytearray(newest.read_bytes())
    data[200 : len(data) // 2] = bytes(255 - one for one in data[200 : len(data) // 2])
    newest.write_bytes(data)
    zipped(home / "backups/pre-update-1.zip", source)
    os.truncate(home / "state.db", 0)

    cured = fix_cycle.cure(home, "DB-EMPTY", "restore-database")

    assert "backups/pre-update-1.zip:state.db" in " ".join(cured.notes)


def test_a_zip_without_the_database(home: Path, tmp_path: Path) -> None:
    """Its other files are not copies of it, and a file with its name only is none."""
    source = fix_cycle.history(tmp_path / "source.db", 120)
    zipped(home / "backups/pre-update-1.zip", source, name="kanban.db")
    support.put(home / "backups/pre-update-2.zip", b"PK\3\4 not a zip")
    assert Probes(Home(home)).databases.all_copies(home / "state.db") == []


def test_a_zip_of_perhaps_another_home(tmp_path: Path) -> None:
    """`hermes backup` writes next to the default home for any home: such a zip comes last."""
    home = tmp_path / "user/.hermes"
    support.healthy(home)
    source = fix_cycle.history(tmp_path / "source.db", 120)
    zipped(tmp_path / "user/hermes-backup-9.zip", source, year=2028)
    zipped(home / "backups/pre-update-1.zip", source)
    own, other = Probes(Home(home)).databases.all_copies(home / "state.db")
    assert (own.doubtful, other.doubtful) == (False, True)


def test_a_zip_of_perhaps_another_home_shows_nothing(tmp_path: Path) -> None:
    """A new home next to it is new."""
    home = tmp_path / "user/.hermes"
    support.healthy(home)
    zipped(tmp_path / "user/hermes-backup-9.zip", fix_cycle.history(tmp_path / "source.db", 120))
    for left in ("state.db", "kanban.db"):
        (home / left).unlink(missing_ok=True)
    assert not {"DB-EMPTY", "DB-GONE"} & set(support.check(home).codes)


def test_a_zip_that_was_removed_meanwhile(home: Path, tmp_path: Path) -> None:
    """The next copy is tried; so it is for a file."""
    source = fix_cycle.history(tmp_path / "source.db", 120)
    gone = [
        DatabaseCopy(home / "backups/gone.zip", source.stat().st_size, 3, "state.db"),
        DatabaseCopy(home / "gone.db", source.stat().st_size, 2),
    ]
    target = tmp_path / "target.db"

    restore_from_copy(target, [*gone, DatabaseCopy(source, source.stat().st_size, 1)])

    assert fix_cycle.messages(target) == fix_cycle.messages(source)


def test_a_zip_of_perhaps_another_home_is_used_only_alone(tmp_path: Path) -> None:
    """Not in place of a damaged copy of this home; alone, plan and receipt say what it may be."""
    home = tmp_path / "user/.hermes"
    support.healthy(home)
    source = fix_cycle.history(tmp_path / "source.db", 120)
    zipped(tmp_path / "user/hermes-backup-9.zip", source, year=2028)
    damage.rows_zeroed(copy_of(home, 1, 200))
    os.truncate(home / "state.db", 0)

    plan = support.doctor("fix", "DB-EMPTY", "--home", home)
    assert "1 copy not used, perhaps of another home" in " ".join(plan.out.split())
    for place in (home / "state-snapshots").rglob("state.db"):
        place.unlink()
    support.put(home / "state.db", b"<html>not found</html>" * 400)

    cured = fix_cycle.cure(home, "DB-NOTADB", "restore-database")

    assert "may be of another home" in " ".join(cured.steps)
    assert "It may be of another home." in cured.notes
    assert fix_cycle.messages(home / "state.db") == fix_cycle.messages(source)


def planted(home: Path) -> None:
    """An empty database, and a copy of it."""
    copy_of(home, 1, 100)
    os.truncate(home / "state.db", 0)


PLANTED = Planted("DB-EMPTY", planted)
