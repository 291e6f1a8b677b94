"""Reading the history changes nothing, works without rights, and never fails a check."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.operations.history import place, reading, summary
from tests.helpers import budget, support
from tests.helpers.histories import after, found, recorder, rows
from tests.operations.history.test_database import KINDS, damage

NOW = int(after(days=3).timestamp())
START = int(after().timestamp())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with a history: A came three times, the third time is open; B came once."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = recorder(tmp_path, file=place.own_file())
    for day in range(3):
        made.note_gap()
        made.record(found("A", *(["B"] if not day else [])), after(days=day))
        if day < 2:
            made.record(found(), after(days=day, minutes=5))
    return made.home


def test_how_often_in_a_week(home: Home) -> None:
    """An open episode is the current time; without one, this is one time more."""
    keys = [("A", "thing"), ("B", "thing"), ("C", "thing")]

    assert reading.times_in_week(home, keys, NOW) == {keys[0]: 3, keys[1]: 2, keys[2]: 1}
    much_later = NOW + 30 * 86400
    assert reading.times_in_week(home, keys, much_later) == {keys[0]: 1, keys[1]: 1, keys[2]: 1}


def test_without_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, and no folder is created."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = Home(tmp_path)

    assert place.files_of(home) == []
    assert reading.times_in_week(home, [("A", "")], NOW) is None
    assert reading.load(home, START, NOW) is None
    assert not (tmp_path / "state").exists()


def test_another_home(home: Home, tmp_path: Path) -> None:
    """A home that the history does not know has none."""
    assert reading.load(Home(tmp_path), START, NOW) is None
    assert reading.times_in_week(Home(tmp_path), [("A", "thing")], NOW) is None


def test_reading_leaves_no_trace(home: Home, tmp_path: Path) -> None:
    """Not a byte or a name changes."""
    before = support.contents(tmp_path)
    loaded = reading.load(home, START, NOW)
    reading.times_in_week(home, [("A", "thing")], NOW)

    assert loaded is not None and len(loaded.episodes) == 4 and loaded.skipped == 0
    assert support.contents(tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_history(kind: str, home: Home, tmp_path: Path) -> None:
    """`history` has one clear line, `check` goes on without it, and nobody touches the file."""
    damage(place.own_file(), kind)
    before = support.contents(tmp_path)
    try:
        assert reading.load(home, START, NOW) is not None
        assert kind == "other columns", "all that is needed may still be there"
    except Trouble as trouble:
        assert "The history is damaged" in str(trouble)
    reading.times_in_week(home, [("A", "thing")], NOW)

    assert support.contents(tmp_path) == before


def test_damaged_rows_are_left_out(home: Home) -> None:
    """One bad value does not hide the rest."""
    db = sqlite3.connect(place.own_file())
    db.execute("UPDATE episodes SET first_seen = 'yesterday' WHERE code = 'B'")
    db.execute("UPDATE episodes SET title = CAST(x'ff41' AS TEXT) WHERE ended IS NULL")
    db.commit()
    db.close()
    loaded = reading.load(home, START, NOW)

    assert loaded is not None and loaded.skipped == 1
    assert {one.code for one in loaded.episodes} == {"A"} and loaded.episodes[-1].title == "\ufffdA"


def test_random_damage(home: Home) -> None:
    """Random bytes anywhere: rows or one line, never another error, and the file stays as it is."""
    chance, file = budget.chance(11), place.own_file()
    good = file.read_bytes()
    outcomes = set()
    for _ in range(budget.tries(150, 2000)):
        data = bytearray(good)
        for _ in range(chance.choice((1, 5, 100, 3000))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data)
        try:
            outcomes.add(type(reading.load(home, START, NOW)).__name__)
        except Trouble:
            outcomes.add("Trouble")
        reading.times_in_week(home, [("A", "thing")], NOW)
        assert file.read_bytes() == data

    assert {"Trouble", "HistoryRows"} <= outcomes
    assert [one.name for one in file.parent.iterdir()] == ["history.db"]


def test_a_time_in_the_future_counts_as_now(home: Home) -> None:
    """A clock that was wrong once does not make durations negative."""
    early = START + 60
    loaded = reading.load(home, START, early)

    assert loaded is not None
    assert all(0 <= one.seconds(early) <= 60 for one in loaded.episodes)
    assert loaded.last_seen == early


def test_newer(home: Home) -> None:
    """A newer history is reported by `history` and ignored by `check`."""
    db = sqlite3.connect(place.own_file())
    db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(Trouble, match="newer hermes-doctor"):
        reading.load(home, START, NOW)
    assert reading.times_in_week(home, [("A", "thing")], NOW) is None


def test_while_it_is_written(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check does not wait for long."""
    monkeypatch.setattr(reading, "PATIENTLY", 0.1)
    other = sqlite3.connect(place.own_file())
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Trouble, match="being written"):
        reading.load(home, START, NOW)
    assert reading.times_in_week(home, [("A", "thing")], NOW) is None
    other.close()


def test_cut_off_in_the_middle_of_a_write(home: Home) -> None:
    """A journal that must be played back first: one line that says how; the writer does it."""
    file = place.own_file()
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA cache_size = 1")
    db.execute("BEGIN")
    db.execute("UPDATE episodes SET title = hex(randomblob(60))")
    db.execute("CREATE TABLE junk AS SELECT randomblob(90000) AS x")
    copies = {one.name: one.read_bytes() for one in file.parent.iterdir()}
    db.close()
    assert len(copies) == 2
    for name, data in copies.items():
        (file.parent / name).write_bytes(data)
    with pytest.raises(Trouble, match="in the middle of a write"):
        reading.load(home, START, NOW)
    assert reading.times_in_week(home, [("A", "thing")], NOW) is None
    recorder(file.parents[2], file=file, home=home).record(found(), after(days=3))
    assert {row["title"] for row in rows(file, "episodes")} == {"A is wrong", "B is wrong"}


def system_history(home: Home, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The history that the system's watch of the home writes, newer than the user's own."""
    monkeypatch.setattr(homes, "SYSTEM_STATE", folder / "var")
    file = homes.system_state_folder(home) / "history.db"
    recorder(folder, file=file, home=home).record(found("S"), after(days=2, hours=1))
    return file


def test_the_history_of_the_system_service(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the service's own folder; the one with the newer record is shown."""
    file = system_history(home, tmp_path, monkeypatch)

    loaded = reading.load(home, START, NOW)
    assert loaded is not None and loaded.file == file
    assert reading.times_in_week(home, [("A", "thing")], NOW) == {("A", "thing"): 1}


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_folder_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root reads a history with the rights of another user, who may not write it either."""
    with support.reachable_folder() as folder:
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        made = recorder(folder, file=place.own_file())
        made.record(found("A"), after())
        made.file.chmod(0o444)
        made.file.parent.chmod(0o555)
        os.chown(made.file.parent, 1234, 1234)
        made.file.parent.parent.chmod(0o755)

        loaded = reading.load(made.home, START, NOW)
        assert loaded is not None and len(loaded.episodes) == 1


def test_a_link_is_not_followed(home: Home) -> None:
    """Also one that leads to a real history."""
    file = place.own_file()
    file.rename(file.with_name("real.db"))
    file.symlink_to("real.db")
    with pytest.raises(Trouble, match="not a regular file"):
        reading.load(home, START, NOW)


def test_returns_count_as_times(home: Home) -> None:
    """As in `history`: each return within an episode is one time more."""
    db = sqlite3.connect(place.own_file())
    db.execute("UPDATE episodes SET returns = 4 WHERE code = 'A' AND ended IS NULL")
    db.commit()
    db.close()
    key = ("A", "thing")
    loaded = reading.load(home, START, NOW)
    assert loaded is not None
    [counted] = [one for one in summary.recurring(loaded.episodes, NOW) if one.code == "A"]

    assert reading.times_in_week(home, [key], NOW) == {key: 7} and counted.times == 7


def shares(home: Home, since: int, now: int) -> summary.Shares:
    """The shares of a time; the days must add up to them."""
    loaded = reading.load(home, since, now)
    assert loaded is not None
    shares = summary.total(loaded, since, now)
    days = summary.days(loaded, summary.local(since).date(), since, now)
    assert [sum(day.shares[n] for day in days) for n in range(4)] == list(shares)
    return shares


def test_the_hour_in_which_the_time_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its part counts, and not more than that part."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = recorder(tmp_path, file=place.own_file())
    for minute in range(0, 121, 4):
        made.record(found(), after(minutes=minute))

    assert shares(made.home, START + 1800, START + 7200) == (5400, 0, 0, 0)
    assert shares(made.home, START - 86400, START + 7200) == (7200, 0, 0, 0), "nothing is missing"


def test_rounds_that_are_not_written_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the next record is due, the bot is as the last one says; then nobody knows."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = recorder(tmp_path, file=place.own_file())
    made.record(found("A"), after(minutes=56))
    made.record(found("A"), after(minutes=60))
    begin = START + 56 * 60

    assert shares(made.home, START, begin + 300) == (0, 0, 300, 0)
    assert shares(made.home, START, begin + 540) == (0, 0, 540, 0)
    assert shares(made.home, START, begin + 541) == (0, 0, 0, 541)


def test_single_rounds_that_are_not_written_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of cron are written each hour; a check by hand is known for a quarter of an hour."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = recorder(tmp_path, file=place.own_file(), single=True)
    made.record(found(), after())
    assert shares(made.home, START, START + 960).working == 960
    assert shares(made.home, START, START + 961).working == 0
    for minute in range(5, 61, 5):
        again = recorder(tmp_path, file=place.own_file(), single=True)
        again.rounds = made.rounds
        again.record(found(), after(minutes=minute))
        made = again

    assert shares(made.home, START, START + 3600 + 3000) == (6600, 0, 0, 0)


def test_one_of_two_files_is_damaged(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is shown, with the reason; if it does not know the home, that is an error."""
    file = system_history(home, tmp_path, monkeypatch)
    file.write_bytes(b"nonsense" * 600)

    loaded = reading.load(home, START, NOW)
    assert loaded is not None and loaded.file == place.own_file()
    assert len(loaded.unread) == 1 and str(file) in loaded.unread[0]
    place.own_file().unlink()
    with pytest.raises(Trouble, match="damaged"):
        reading.load(home, START, NOW)


def test_a_path_that_is_not_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the history may have any name."""
    monkeypatch.setenv("XDG_STATE_HOME", os.path.join(tmp_path, os.fsdecode(b"st\xffte?#%41")))
    made = recorder(tmp_path, file=place.own_file())
    made.record(found("A"), after())
    loaded = reading.load(made.home, START, NOW)

    assert loaded is not None and len(loaded.episodes) == 1
