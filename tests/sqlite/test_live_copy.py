"""The copy of a database in use: one moment of it, and nothing of the writer's is disturbed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.system import workers
from hermes_doctor.core.system.files import Snapshot
from hermes_doctor.core.system.workers import lines_from_parent, start_worker
from hermes_doctor.sqlite import files, live_copy, wal
from tests.helpers import support
from tests.helpers.database_writer import ROWS, Once, back_up, half_done, versions, writing
from tests.helpers.warm_server import ROOT


@pytest.fixture(autouse=True)
def _in_small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small database is copied in many, and something can happen between them."""
    monkeypatch.setattr(live_copy, "STRETCH", 65536)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with nothing but what is copied here."""
    support.put(tmp_path / "home" / "config.yaml", support.CONFIG)
    return tmp_path / "home"


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The children that this process forks."""
    pids: list[int] = []
    real = os.fork

    def fork() -> int:
        pid = real()
        if pid:
            pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", fork)
    return pids


def method(backup: Backup, name: str = "state.db") -> tuple[str, str | None]:
    """How a database was copied, and what SQLite said of the copy."""
    entry = backup.entry(name)
    assert entry is not None
    return entry.method, entry.integrity


def nothing_made(home: Path) -> None:
    """Insist that the vault holds no backup and no half of one."""
    assert list((home / "backups" / "doctor").iterdir()) == []


# -- one moment ----------------------------------------------------------------------------


def test_the_log_is_begun_anew_while_it_is_copied(home: Path, tmp_path: Path) -> None:
    """Everything was in the file, so a writer may overwrite the log under the reader: the file
    alone is the moment that is copied."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        writer.write(2)
        writer.checkpoint()  # all of the log is in the file, and stays
        salt = (home / "state.db-wal").read_bytes()[16:24]
        anew = Once(half_done(home, "state.db"), lambda: writer.write(3))

        made = back_up(home, anew)

        assert anew.happened
        assert (home / "state.db-wal").read_bytes()[16:24] != salt, "it was not begun anew"
    assert method(made) == ("sqlite", "ok")
    assert versions(made, "state.db", tmp_path / "out") == [(2, ROWS)]


@pytest.mark.sampled
@pytest.mark.parametrize("before", ["", "PASSIVE", "TRUNCATE"])
def test_somebody_writes_all_the_while(home: Path, tmp_path: Path, before: str) -> None:
    """Before every stretch everything is written anew and a checkpoint is made, so far as the
    reader allows it; the copy is of one moment, and has no log and needs none."""
    with writing(home / "state.db") as writer:
        for version in range(1, 4):
            writer.write(version)
            if before:
                writer.checkpoint(before)
        writer.write(4)
        written = iter(range(5, 1000))

        begun = half_done(home, "state.db")

        def more(_: int) -> None:
            if not begun():
                return
            writer.write(next(written), 100)
            writer.tell("PRAGMA wal_checkpoint(PASSIVE)")
            writer.write(next(written))

        made = back_up(home, more)

    assert method(made) == ("sqlite", "ok")
    assert not list(made.folder.glob("files/state.db-*"))
    assert versions(made, "state.db", tmp_path / "out") == [(4, ROWS)]
    copy = (made.folder / "files" / "state.db").read_bytes()
    assert copy[18:20] == b"\1\1"


def test_a_database_that_shrank(home: Path, tmp_path: Path) -> None:
    """What the log says of its length counts, not the length of the file."""
    with writing(home / "state.db") as writer:
        writer.write(1, 3000)
        writer.checkpoint("TRUNCATE")
        writer.tell("DELETE FROM entries WHERE id > 1000", "VACUUM")

        made = back_up(home)

    assert versions(made, "state.db", tmp_path / "out") == [(1, 1000)]
    assert (made.folder / "files" / "state.db").stat().st_size < 5_000_000
    assert (home / "state.db").stat().st_size > 10_000_000


def test_a_log_that_claims_too_much(tmp_path: Path) -> None:
    """A length that file and log cannot have is not believed: it would fill any disk."""
    (tmp_path / "one.db").write_bytes(bytes(8192))
    with files.open_files(tmp_path / "one.db") as book:
        log = wal.WriteAheadLog(4152, 4096, pages={1: 56}, db_pages=4)
        with pytest.raises(CannotFix, match="is incomplete"):
            live_copy.size_of(book, log)


def test_a_checkpoint_while_the_file_is_copied(home: Path, tmp_path: Path) -> None:
    """A checkpoint in the middle of it may tear the copy of the file; the log mends that."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        writer.checkpoint("TRUNCATE")
        writer.write(2)

        def more() -> None:
            writer.write(3)
            writer.tell("PRAGMA wal_checkpoint(PASSIVE)")

        meanwhile = Once(half_done(home, "state.db"), more)

        made = back_up(home, meanwhile)

        assert meanwhile.happened
    assert method(made) == ("sqlite", "ok")
    assert versions(made, "state.db", tmp_path / "out") in ([(2, ROWS)], [(3, ROWS)])


def test_the_reader_dies(home: Path, forked: list[int]) -> None:
    """Without it nothing holds the file still: there is no backup rather than a mixture."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        writer.checkpoint("TRUNCATE")
        writer.tell("INSERT INTO entries VALUES (99999, 1, 'x')")

        def killed() -> None:
            os.kill(forked[-1], signal.SIGKILL)
            os.waitid(os.P_PID, forked[-1], os.WEXITED | os.WNOWAIT)
            writer.write(2)
            writer.checkpoint("TRUNCATE")

        death = Once(half_done(home, "state.db"), killed)
        with pytest.raises(
            Trouble, match=r"state\.db is in use and could not be copied .*has stopped"
        ):
            back_up(home, death)

        assert death.happened
    nothing_made(home)


def test_the_reader_never_gets_the_database(home: Path) -> None:
    """A writer that lets nobody read: refused with SQLite's name for it, and nothing is left."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        writer.tell("PRAGMA locking_mode=EXCLUSIVE")
        writer.write(2)

        with pytest.raises(Trouble, match=r"could not be copied \(SQLITE_BUSY"):
            back_up(home)

    nothing_made(home)


def test_the_follower_dies(home: Path, forked: list[int]) -> None:
    """Who hashes the copy is gone: there is no backup."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        death = Once(half_done(home, "state.db"), lambda: os.kill(forked[0], signal.SIGKILL))

        with pytest.raises(Trouble, match=r"state\.db is in use and could not be copied .*cut off"):
            back_up(home, death)

        assert death.happened
    nothing_made(home)


# -- no room -------------------------------------------------------------------------------


def test_no_room_for_what_is_in_the_log(home: Path) -> None:
    """The log's pages cannot be laid over the copy: that says nothing of the source, and there is
    no backup; the earlier one stays whole."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        writer.checkpoint("TRUNCATE")
        good = back_up(home)
        grown = "INSERT INTO entries SELECT id + 9999, 2, randomblob(3500) FROM entries"
        assert writer.tell(grown) == []
        file, log = ((home / name).stat().st_size for name in ("state.db", "state.db-wal"))
        most = max(file, log) + 65536
        assert most < file + log - 65536

        done = support.spawned(
            "backup",
            "create",
            "--home",
            home,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        )

        assert done.code == 2, done.out
        assert "Could not write the backup" in done.err
        assert "damaged" not in done.out + done.err
    assert [path.name for path in (home / "backups" / "doctor").iterdir()] == [good.id]
    assert support.doctor("backup", "verify", "--all", "--home", home).code == 0


FULL = """
import os, subprocess, sys
from pathlib import Path
from hermes_doctor.core.system.files import Snapshot
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.sqlite import live_copy
from tests.helpers.database_writer import Once, back_up, half_done, writing
from tests.helpers import support

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", disk], check=True)
home = disk / "home"
support.put(home / "config.yaml", support.CONFIG)
with writing(home / "state.db") as writer:
    writer.write(1, 10)
    writer.checkpoint("TRUNCATE")
    good = back_up(home)
    writer.write(2, 1000)
    live_copy.STRETCH = 65536

    def fill():
        room = os.statvfs(disk)
        (disk / "ballast").write_bytes(bytes(room.f_bavail * room.f_frsize - 262144))

    full = Once(half_done(home, "state.db"), fill)
    try:
        back_up(home, full)
        print("made")
    except Trouble as trouble:
        print(trouble)
    print(full.happened, [p.name for p in (home / "backups/doctor").iterdir()] == [good.id])
"""


def test_a_disk_that_fills_meanwhile(tmp_path: Path) -> None:
    """The same on a disk that is full for real."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a disk of its own needs root")

    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", FULL, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    trouble, facts = done.stdout.splitlines()
    assert "Could not write the backup" in trouble
    assert "no space left" in trouble
    assert facts == "True True"


def test_a_damaged_one_is_not_the_good_one(home: Path) -> None:
    """A database in use that is damaged is saved as it is, and said to be; but pruning keeps the
    earlier, sound backup for it."""
    with writing(home / "state.db", "DELETE") as writer:
        writer.write(1)
        writer.tell("CREATE INDEX by_version ON entries (version)")
    good = back_up(home)
    [(root,)] = _asked(home / "state.db", "SELECT rootpage FROM sqlite_master WHERE type='index'")
    support.clobber(home / "state.db", b"\0" * 64, (root - 1) * 4096)
    with writing(home / "state.db") as writer:
        writer.tell("SELECT count(*) FROM entries")

        done = support.doctor("backup", "create", "--home", home)

    assert done.code == 1
    assert "; the backup contains it as it is." in " ".join(done.out.split())
    pruned = support.doctor("backup", "prune", "--keep", "1", "--yes", "--json", "--home", home)
    assert pruned.code == 0, pruned.err
    assert pruned.json["removed"] == []
    assert good.id in pruned.json["kept"]


def _asked(path: Path, question: str) -> list[tuple[int]]:
    with writing(path, "DELETE") as reader:
        return [tuple(row) for row in reader.tell(question)]


# -- names ---------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("name", [b"h\xff\xfe", b"a?b#c%20d", "häuschen 家".encode()])
def test_names_of_any_bytes(tmp_path: Path, name: bytes) -> None:
    """A home, and a database in it, whose names are no UTF-8 or mean something in an address."""
    home = tmp_path / os.fsdecode(name)
    support.put(home / "config.yaml", support.CONFIG)
    database = home / "kanban" / "boards" / os.fsdecode(name) / "kanban.db"
    database.parent.mkdir(parents=True)
    with writing(database) as writer:
        writer.write(1)

        done = support.doctor("backup", "create", "--json", "--home", home)

    assert done.code == 0, done.err
    manifest = Path(done.json["folder"], "manifest.json")
    saved = {one["path"]: one for one in json.loads(manifest.read_text())["entries"]}
    one = saved[str(database.relative_to(home))]
    assert (one["method"], one["integrity"]) == ("sqlite", "ok")
    assert os.listdir(tmp_path) == [home.name], "SQLite was led to another name"


# -- the writer ----------------------------------------------------------------------------

BUSY = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=1.0)
print("up", flush=True)
ok = failed = 0
while True:
    time.sleep(0.05)
    try:
        db.execute("INSERT INTO entries VALUES (NULL, 1, 'x')")
        ok += 1
    except sqlite3.Error:
        failed += 1
    print(ok, failed, flush=True)
"""


def test_a_writer_without_a_log_meets_no_lock(home: Path, tmp_path: Path) -> None:
    """In DELETE mode a reader would keep it waiting. It writes at once, however long the copy
    takes, and the copy is made again."""
    said: list[object] = []
    with writing(home / "state.db", "DELETE") as writer:
        writer.write(1)
        change = "UPDATE entries SET version = 2"
        meanwhile = Once(half_done(home, "state.db"), lambda: said.append(writer.tell(change)))

        made = back_up(home, meanwhile)

    assert said == [[]], "the writer was kept waiting"
    assert method(made) == ("bytes", "ok")
    assert versions(made, "state.db", tmp_path / "out") == [(2, ROWS)]


@pytest.mark.disk  # in memory the copy is soon made
def test_a_busy_writer_without_a_log(home: Path) -> None:
    """One that never rests is not kept waiting either, though the file is large; there may be
    no backup then, and one line says so."""
    with writing(home / "state.db", "DELETE") as writer:
        writer.write(1, 13_000)
    assert (home / "state.db").stat().st_size > 50_000_000
    busy = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(home / "state.db")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert busy.stdout
    busy.stdout.readline()

    done = support.doctor("backup", "create", "--home", home)

    busy.kill()
    said = busy.communicate()[0].splitlines()
    assert len(said) > 3, "it did not write meanwhile"
    assert said[-1].split()[1] == "0", f"the writer was kept waiting: {said[-1]}"
    assert done.code == 0 or "is writing to" in done.err, done.err


# -- the child -----------------------------------------------------------------------------


def test_the_reader_holds_nothing_else(home: Path, forked: list[int]) -> None:
    """It has the database open and nothing of ours; and we have no more open than before."""
    seen: dict[str, str] = {}
    with writing(home / "state.db") as writer:
        writer.write(1)
        lock = os.open(home, os.O_RDONLY)

        def looked() -> None:
            for fd in Path(f"/proc/{forked[-1]}/fd").iterdir():
                seen[fd.name] = os.readlink(fd)

        before = os.listdir("/proc/self/fd")
        back_up(home, Once(half_done(home, "state.db"), looked))
        assert os.listdir("/proc/self/fd") == before
        os.close(lock)
    opened = {path for fd, path in seen.items() if int(fd) > 2 and not path.startswith("pipe:")}
    assert str(home / "state.db") in opened
    assert opened <= {str(home / name) for name in ("state.db", "state.db-wal", "state.db-shm")}
    assert len([path for path in seen.values() if path.startswith("pipe:")]) <= 4
    assert not Path(f"/proc/{forked[-1]}").exists()


def test_what_a_child_is_told(tmp_path: Path) -> None:
    """It comes line by line, and ends when there is no more."""
    with start_worker(tmp_path / "any", lambda _: ",".join(lines_from_parent())) as other:
        for line in ("one", "two words", "3"):
            other.send(line)
        other.close_input()

        assert other.receive() == ("done", "one,two words,3")


def test_a_child_that_hears_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is stopped, or gone, is not told things for ever."""
    monkeypatch.setattr(workers, "STILL", 0.05)
    with start_worker(tmp_path / "any", lambda _: ",".join(lines_from_parent())) as other:
        os.kill(other.pid, signal.SIGSTOP)
        with pytest.raises(CannotFix, match="stopped"):
            for _ in range(10_000):
                other.send("word" * 100)
        os.kill(other.pid, signal.SIGKILL)
        with pytest.raises(CannotFix, match="cut off"):
            for _ in range(10_000):
                other.send("word" * 100)


KILLED = """
import os, signal, sys, time

real, parent, when = os.fork, os.getpid(), sys.argv.pop(1)

def fork():
    pid = real()
    if pid:
        print(pid, flush=True)
        if when == "after":
            time.sleep(1)
        os.kill(parent, signal.SIGKILL)
    while when == "before" and os.getppid() == parent:
        time.sleep(0.01)
    return pid

os.fork = fork
"""
COMMAND = "from hermes_doctor.cli.main import main\nmain()\n"
WORK = """
from pathlib import Path
from hermes_doctor.core.system.workers import start_worker
done = Path(sys.argv[1])
with start_worker(done, lambda say: str(done.write_text("written"))) as other:
    other.receive()
"""


def killed(when: str, script: str, *args: str | Path) -> None:
    """Run a script that is killed when it has forked; its child must be gone soon after."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED + script, when, *map(str, args)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as command:
        assert command.stdout
        pid = int(command.stdout.readline())
        assert command.wait(30) == -signal.SIGKILL
        gone = _soon(lambda: not _running(pid))
        if not gone:
            os.kill(pid, signal.SIGKILL)
        assert gone, "the child lives on without us"


@pytest.mark.sampled
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_right_after_the_fork(home: Path, when: str) -> None:
    """We are killed before the child could ask to die with us, or after: it goes as well, and
    the home is free for the next command."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        killed(when, COMMAND, "backup", "create", "--home", home)

        done = support.doctor("backup", "create", "--home", home)

    assert done.code == 0, done.err
    assert not list(home.glob("backups/doctor/*.partial"))


def test_nothing_is_done_for_nobody(tmp_path: Path) -> None:
    """A child whose parent was gone before it could begin does not begin."""
    killed("before", WORK, tmp_path / "done")

    assert os.listdir(tmp_path) == []


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _soon(true: Callable[[], bool], limit: float = 10.0) -> bool:
    end = time.monotonic() + limit
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


def test_another_database_in_its_place(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader holds the one that was there, and nobody the new one: it is held, too."""
    with (
        writing(home / "state.db") as writer,
        writing(tmp_path / "other.db") as other,
    ):
        writer.write(1)
        other.write(2)
        other.checkpoint("TRUNCATE")
        real = live_copy.write_copy

        def written(source: Path, target: int, held: Snapshot) -> Iterator[int]:
            for end in ("", "-wal", "-shm"):
                if (tmp_path / f"other.db{end}").exists():
                    (tmp_path / f"other.db{end}").rename(home / f"state.db{end}")
            return real(source, target, held)

        def act() -> None:
            other.write(3)
            other.checkpoint()

        monkeypatch.setattr(live_copy, "write_copy", written)
        meanwhile = Once(half_done(home, "state.db"), act)

        made = back_up(home, meanwhile)

    assert meanwhile.happened
    assert versions(made, "state.db", tmp_path / "out") == [(2, ROWS)]


def test_it_is_gone_before_it_is_copied(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of a moment, as one that is made anew beside the old: the rest is saved."""
    with writing(home / "state.db") as writer:
        writer.write(1)
        real = live_copy.write_copy

        def written(source: Path, target: int, held: Snapshot) -> Iterator[int]:
            source.unlink()
            return real(source, target, held)

        monkeypatch.setattr(live_copy, "write_copy", written)

        made = back_up(home)

    assert [entry.path for entry in made.entries] == ["config.yaml"]
