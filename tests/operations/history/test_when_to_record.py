"""A recorder writes what changed, and nothing stops it: a full disk, damage, other processes."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.operations.history import when_to_record as recorders
from hermes_doctor.operations.history.when_to_record import Recorder
from tests.helpers import budget, support
from tests.helpers.histories import after, found, new_home, recorder, rows, seconds
from tests.helpers.warm_server import ROOT
from tests.operations.history.test_database import KINDS, damage


def test_quiet_rounds_are_written_every_five_minutes(tmp_path: Path) -> None:
    """A change is written at once; the last quiet round when the watch ends."""
    made = recorder(tmp_path, interval=30.0)
    written = []
    for half in range(0, 41):
        before = made.file.read_bytes() if made.file.exists() else b""
        made.record(found("A") if half == 25 else found(), after(seconds=30 * half))
        written += [half] if made.file.read_bytes() != before else []
    made.flush()

    assert written == [0, 10, 20, 25, 26, 36]
    assert seconds(made.file) == {"working": 1170, "limited": 0, "silent": 30}


def test_quiet_single_rounds_are_written_each_hour(tmp_path: Path) -> None:
    """Each is a process of its own and gets what the one before it knew; all time counts."""
    rounds = None
    written = []
    for five in range(0, 40):
        made = recorder(tmp_path, single=True)
        made.rounds = rounds
        before = made.file.read_bytes() if made.file.exists() else b""
        made.record(found("A") if five == 30 else found(), after(minutes=5 * five))
        rounds = made.rounds
        written += [five] if made.file.read_bytes() != before else []

    assert written == [0, 12, 24, 30, 31]
    assert seconds(made.file) == {"working": 30 * 300, "limited": 0, "silent": 300}


def test_single_rounds_after_a_pause(tmp_path: Path) -> None:
    """Nobody watched in between, whatever the rounds before it saw."""
    made = recorder(tmp_path, single=True)
    made.record(found(), after())
    made.record(found(), after(minutes=5))
    later = recorder(tmp_path, single=True)
    later.rounds = made.rounds
    later.record(found(), after(minutes=100))

    assert seconds(made.file)["working"] == 0
    assert rows(made.file, "homes")[0]["last_seen"] == "2026-11-01T05:40:00Z"


def test_a_round_without_a_report_is_a_gap(tmp_path: Path) -> None:
    """The home was away for two minutes: what was seen before counts, the rest is unknown."""
    made = recorder(tmp_path)
    made.attempt(found(), after())
    made.attempt(found(), after(minutes=4))
    made.attempt(None, after(minutes=5))
    made.attempt(found(), after(minutes=6))
    made.attempt(found(), after(minutes=12))

    assert seconds(made.file)["working"] == 600


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_history_is_set_aside(kind: str, tmp_path: Path) -> None:
    """It is kept under another name, a new one is started, and that is reported once."""
    recorder(tmp_path).record(found("A"), after())
    file = recorder(tmp_path).file
    damage(file, kind)
    made = recorder(tmp_path)
    [note] = made.attempt(found("B"), after(minutes=1))

    [kept] = [one for one in file.parent.iterdir() if one != file]
    assert "the history was damaged" in note and kept.name in note
    assert [row["code"] for row in rows(file, "episodes")] == ["B"]
    assert made.attempt(found("C"), after(minutes=2)) == []


def test_random_damage(tmp_path: Path) -> None:
    """Random bytes anywhere: the next round is recorded, in the old file or in a new one."""
    chance = budget.chance(7)
    file = recorder(tmp_path).file
    sound = recorder(tmp_path)
    for minute in range(200):
        sound.record(found(f"C{minute % 9}"), after(minutes=minute))
    good = file.read_bytes()
    for number in range(budget.tries(30, 400)):
        data = bytearray(good)
        for _ in range(chance.choice((1, 8, 200))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data[: chance.choice((len(data), chance.randrange(len(data))))])
        made = recorder(tmp_path)
        notes = made.attempt(found("NEW"), after(days=1))
        assert not any("switched off" in note for note in notes), (number, notes)
        if any("newer hermes-doctor" in note for note in notes):  # the version itself was hit
            assert [one.name for one in file.parent.iterdir()] == [file.name], "it is left alone"
        else:
            assert "NEW" in [row["code"] for row in rows(file, "episodes")], (number, notes)
        for one in file.parent.glob("history.db*"):
            one.unlink()


def test_a_newer_history_is_reported_once(tmp_path: Path) -> None:
    """Then the history is off for this process, and the file stays as it is."""
    made = recorder(tmp_path)
    made.record(found(), after())
    db = sqlite3.connect(made.file)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = made.file.read_bytes()
    later = recorder(tmp_path)

    assert "newer hermes-doctor" in later.attempt(found("A"), after(minutes=1))[0]
    assert later.attempt(found("B"), after(minutes=2)) == []
    later.flush()
    assert made.file.read_bytes() == before


def test_a_check_that_took_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check --record` of a deep check is recorded at its end, so no clock seems to go back."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home, now = new_home(tmp_path / "home"), datetime.now(UTC)
    watching = Recorder(home, 60.0)
    assert watching.attempt(found(), now) == []
    long_ago = found()._replace(started_at=now - timedelta(hours=1))

    assert recorders.record_once(home, long_ago, None) == []
    assert rows(watching.file, "marks") == []


def test_not_inside_the_home(tmp_path: Path) -> None:
    """A state folder inside the Hermes home is refused, also through a link."""
    home = new_home(tmp_path / "home")
    (tmp_path / "link").symlink_to(home.path)
    made = recorder(tmp_path, home=home, file=tmp_path / "link" / "state" / "history.db")

    assert "not kept inside the Hermes home" in made.attempt(found(), after())[0]
    assert not (home.path / "state").exists()


def test_a_crash_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug switches the history off; the watch goes on."""
    made = recorder(tmp_path)

    def crash(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(recorders, "observe", crash)
    assert "switched off" in made.attempt(found(), after())[0]
    assert made.attempt(found(), after(minutes=1)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk(tmp_path: Path) -> None:
    """One line, nothing is damaged, and with room again it goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount")
    try:
        made = recorder(tmp_path, file=disk / "history.db")
        assert made.attempt(found("A"), after()) == []
        filler = disk / "filler"
        fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while os.write(fd, b"x" * 1024):
                pass
        os.close(fd)
        told = [made.attempt(found(*(f"B{n}" for n in range(99))), after(minutes=1))]
        told += [made.attempt(found(f"C{n}"), after(minutes=2 + n)) for n in range(3)]
        filler.unlink()
        assert any("full" in note or "space" in note for notes in told for note in notes)
        assert made.attempt(found("D"), after(minutes=9)) == []
        codes = [row["code"] for row in rows(made.file, "episodes")]
        assert "A" in codes and "D" in codes
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """The error names the file; nothing else happens."""
    (tmp_path / "state").write_text("a file where the folder should be")
    [note] = recorder(tmp_path).attempt(found(), after())

    assert "could not write the history" in note and "history.db" in note


WRITER = """
import sys, time
from pathlib import Path
from tests.helpers.histories import after, found, recorder
folder, start, rounds = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
made = recorder(folder, interval=5.0)
for n in range(rounds):
    at = after(seconds=60 * (time.time() - start))
    notes = made.attempt(found("A", f"X{n % 3}"), at)
    if notes:
        print(notes)
made.flush()
"""


def write(folder: Path, start: float, rounds: int) -> subprocess.Popen[str]:
    """Start a process that records rounds; for it, a second is a minute."""
    words = [sys.executable, "-c", textwrap.dedent(WRITER), str(folder), str(start), str(rounds)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_several_processes_at_once(tmp_path: Path) -> None:
    """Three of them create it together: one home, one episode of each problem, no time twice."""
    new_home(tmp_path / "home")
    start = time.time()
    running = [write(tmp_path, start, 40) for _ in range(3)]
    said = [one.communicate(timeout=120)[0] for one in running]

    file = tmp_path / "state" / "history.db"
    assert said == ["", "", ""]
    assert len(rows(file, "homes")) == 1
    codes = [row["code"] for row in rows(file, "episodes")]
    assert sorted(codes) == ["A", "X0", "X1", "X2"]
    assert 0 < seconds(file)["silent"] <= 60 * (time.time() - start)
    assert [one.name for one in file.parent.iterdir()] == ["history.db"]


def test_killed_in_the_middle(tmp_path: Path) -> None:
    """kill -9 at any moment: the next round goes on with the same history, undamaged."""
    new_home(tmp_path / "home")
    file = tmp_path / "state" / "history.db"
    recorder(tmp_path).record(found("FIRST"), after())
    later = 0
    chance = budget.chance(3)
    for _ in range(budget.tries(3, 40)):
        later += 180
        process = write(tmp_path, time.time() - later, 4000)
        before = file.stat().st_mtime_ns
        while file.stat().st_mtime_ns == before:
            assert process.poll() is None
        with process:
            for _ in range(chance.randrange(30)):
                os.stat(file)
            process.send_signal(signal.SIGKILL)
        assert recorder(tmp_path).attempt(found("FIRST"), after(seconds=60 * later + 3600)) == []
        codes = [row["code"] for row in rows(file, "episodes")]
        assert "FIRST" in codes


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_root_writes_with_the_rights_of_the_folder_s_owner() -> None:
    """In a folder of another user, the file belongs to that user."""
    with support.reachable_folder() as folder:
        state = folder / "state"
        state.mkdir()
        os.chown(state, 1234, 1234)
        new_home(folder / "home")
        made = Recorder(Home(folder / "home"), 60.0, file=state / "history.db")

        assert made.attempt(found("A"), after()) == []
        assert made.file.stat().st_uid == 1234 and made.file.stat().st_mode & 0o777 == 0o600
