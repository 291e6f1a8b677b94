"""SIGKILL at every write while a foreign log is set aside: the database never changes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import open_regular, snapshot
from hermes_doctor.repair.planning import logs_set_aside
from hermes_doctor.repair.planning.logs_set_aside import KeepDatabase
from tests.helpers import budget, crash_server, damage, fix_cycle, support
from tests.helpers.crash_server import Cut, Ended, Server
from tests.scenarios.test_crash import killed, rehearse

SECRET = b"a secret of root's"


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving(alone=True)


def test_killed_at_any_moment(server: Server, tmp_path: Path) -> None:
    """The log is beside the database or it is not; the next command brings it to an end."""
    sick = tmp_path / "sick"
    sick.mkdir()
    path = damage.foreign_log(fix_cycle.history(sick / "state.db"), before=200, after=8)
    alone, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    home = tmp_path / "home"
    scene = rehearse(server, sick, home, "fix", "DB-WAL-STALE", "--apply", "--yes")
    kills = [one for one in scene.cuts if one.how == "kill"][::2]
    for cut in budget.sample(kills, 4):
        killed(scene, cut)
        assert (home / "state.db").read_bytes() == alone
        left = home / "state.db-wal"
        assert not left.exists() or left.read_bytes() == log
    ended = scene.again()
    assert ended.code == 0, ended.said
    assert crash_server.state(home) == scene.after


WRITER = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1','user','w',3)")
if sys.argv[2] == "killed":
    os._exit(0)
db.close()
"""


def cut_off_and_written_to(server: Server, home: Path, how: str, *more: str) -> Ended:
    """Kill the fix right after the log was moved; a writer uses the database; the next command."""
    words = ("fix", "DB-WAL-STALE", *more, "--apply", "--yes")
    path = damage.foreign_log(fix_cycle.history(home / "state.db"), before=200, after=8)
    copy = crash_server.clone(home, home.with_name("rehearsal"))
    renames = [call for call in server(*words, "--home", copy).calls if call.name == "rename"]
    [moved] = [n for n, call in enumerate(renames) if call.path.endswith("db-wal")]
    killed = server(*words, "--home", home, cuts=(Cut(moved + 1, "kill", only=("rename",)),))
    assert killed.code == -9, killed.said
    assert not Path(f"{path}-wal").exists()
    subprocess.run([sys.executable, "-c", WRITER, str(path), how], check=True)
    return server("fix", "DB-WAL-STALE", "--apply", "--yes", "--home", home)


def assert_kept(server: Server, home: Path) -> str:
    """The row of the writer is there, and the rows of the log are still offered."""
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db:
        assert db.execute("SELECT count(*) FROM messages WHERE content = 'w'").fetchone() == (1,)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    [aside] = home.glob("state.db-wal.aside-*")
    assert "DB-WAL-ROWS" in server("check", "-v", "--home", home).said
    assert crash_server.leftovers(home) == []
    return aside.name


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_writer_after_it_was_cut_off(how: str, server: Server, home: Path) -> None:
    """All that counts was done, so the run is finished: the log stays aside."""
    ended = cut_off_and_written_to(server, home, how)
    assert ended.code == 0, ended.said
    assert "state.db has been used since" in ended.said
    assert_kept(server, home)


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_writer_after_only_a_part_was_done(how: str, server: Server, home: Path) -> None:
    """The rest is taken back. The log cannot go back, so its new name stays, and that is said."""
    board = home / "kanban.db"
    board.unlink(missing_ok=True)
    support.board(board, without=(("tasks", "session_id"),))
    before = board.read_bytes()
    ended = cut_off_and_written_to(server, home, how, "KANBAN-SCHEMA")
    assert ended.code == 1, ended.said
    assert "only in part: state.db has changed since" in ended.said, ended.said
    assert f"kept as {assert_kept(server, home)} and in backup" in ended.said, ended.said
    assert board.read_bytes() == before


@pytest.fixture
def held(home: Path, monkeypatch: pytest.MonkeyPatch) -> KeepDatabase:
    """A foreign log that a gateway works with, kept before the gateway stops."""
    monkeypatch.setattr(logs_set_aside, "PAUSES", (0.0, 0.0))
    path = damage.foreign_log(fix_cycle.history(home / "state.db"))
    return KeepDatabase(path, home / "aside", "40 messages")


def made(step: KeepDatabase) -> dict[str, bytes | None]:
    """What the step makes of each path, by name."""
    found: dict[str, bytes | None] = {}
    for change in step.changes():
        target = change.path.with_name("made")
        if change.make is not None:
            change.make(target)
            found[change.path.name] = target.read_bytes()
            target.unlink()
        else:
            found[change.path.name] = None
    return found


def test_a_stop_that_spoils_the_database(held: KeepDatabase) -> None:
    """The gateway brought the log into the file as it closed it: the file is put back."""
    alone, log = held.path.read_bytes(), Path(f"{held.path}-wal").read_bytes()
    held.prepare()
    held.path.write_bytes(alone[: damage.PAGE] + log[56 : 56 + damage.PAGE] * 9)
    for suffix in ("-wal", "-shm"):
        Path(f"{held.path}{suffix}").unlink()

    assert made(held) == {"aside": log, "state.db": alone}
    held.release()
    assert held.open_copies == {}


def test_a_stop_that_changes_nothing(held: KeepDatabase) -> None:
    """The database is as it was, so that only the log moves."""
    log = Path(f"{held.path}-wal").read_bytes()
    held.prepare()

    assert made(held) == {"aside": log, "state.db-wal": None, "state.db-shm": None}
    held.release()


def test_it_was_spoiled_before(held: KeepDatabase) -> None:
    """The log was brought in between the look and the stop: then nothing is done."""
    damage.zero(held.path, *range(4, 9))
    before = snapshot(held.path)

    with pytest.raises(CannotFix, match=r"no longer confirms that state\.db is intact"):
        held.prepare()

    held.release()
    assert snapshot(held.path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read what the owner cannot")
@pytest.mark.parametrize("swapped", ["", "-wal", "home"])
def test_the_owner_swaps_a_file_for_a_symlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """While the question is open, or between look and opening: nothing of root's is copied."""
    home = tmp_path / "user" / "home"
    home.mkdir(parents=True)
    path = damage.foreign_log(fix_cycle.history(home / "state.db"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("state.db", "state.db-wal"):
        (elsewhere / name).write_bytes(SECRET)
    elsewhere.chmod(0o700)
    crash_server.chown(tmp_path / "user")

    def swap() -> None:
        place = home if swapped == "home" else Path(f"{path}{swapped}")
        if not place.is_symlink():
            place.rename(f"{place}.moved")
            place.symlink_to(elsewhere if swapped == "home" else elsewhere / place.name)
            os.chown(place, crash_server.STRANGER, crash_server.STRANGER, follow_symlinks=False)

    step = KeepDatabase(path, home / "aside", "40 messages")
    opening = open_regular

    def late(place: Path, *, follow: bool = True) -> int:
        swap()
        return opening(place, follow=follow)

    monkeypatch.setattr(logs_set_aside, "open_regular", late)
    for _ in range(2):  # the second time it is swapped from the start
        with pytest.raises(CannotFix):
            step.prepare()
        for fd in step.open_copies.values():
            assert SECRET not in os.pread(fd, 1 << 20, 0)
        step.release()
    assert [one.read_bytes() for one in elsewhere.iterdir()] == [SECRET, SECRET]


@pytest.mark.sampled
@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts for another user")
@pytest.mark.parametrize("supported", [True, False])
def test_the_copies_belong_to_the_owner(
    held: KeepDatabase, monkeypatch: pytest.MonkeyPatch, supported: bool
) -> None:
    """Root makes them with the rights of the home's owner, and no name of them is left."""
    crash_server.chown(held.path.parent)
    names = sorted(os.listdir(held.path.parent))
    if not supported:
        monkeypatch.delattr(os, "O_TMPFILE")

    held.prepare()

    assert {os.fstat(fd).st_uid for fd in held.open_copies.values()} == {crash_server.STRANGER}
    assert sorted(os.listdir(held.path.parent)) == names
    held.release()


@pytest.mark.parametrize("writes", [1, 2, 99])
def test_the_log_is_written_while_it_is_copied(
    held: KeepDatabase, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """The copy lacks what the gateway wrote after it, so the database and its log are copied again.

    If the gateway never stops writing, nothing is done.
    """
    transfer, log = disk.copy_range, Path(f"{held.path}-wal")
    copied: list[int] = []

    def late(source: int, target: int, start: int, length: int) -> None:
        transfer(source, target, start, length)
        copied.append(target)
        if len(copied) % 2 == 0 and len(copied) <= 2 * writes:
            with log.open("ab") as file:
                file.write(bytes(24 + damage.PAGE))

    monkeypatch.setattr(disk, "copy_range", late)

    if writes > 2:
        with pytest.raises(CannotFix, match="is writing"):
            held.prepare()
    else:
        held.prepare()
        assert os.pread(held.open_copies["-wal"], 1 << 24, 0) == log.read_bytes()
    assert len(copied) == 2 * min(writes + 1, 3)
    assert len(support.open_files(held.path.parent)) == len(held.open_copies) == 2
    held.release()
    assert support.open_files(held.path.parent) == []
