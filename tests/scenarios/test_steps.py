"""Every kind of step: done, verified, taken back, and refused where it must be."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.records.journal import ItemRecord, Journal, Journals
from hermes_doctor.backup.vault.free_space import MARGIN
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.system.files import ABSENT, snapshot
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.steps.database import ReplaceDatabase
from hermes_doctor.repair.steps.files import (
    MoveAside,
    Remove,
    ReplaceFile,
    ReplaceSpan,
    SetMode,
    SetOwner,
)
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.transaction.recovery import recover
from hermes_doctor.repair.transaction.run import Run
from hermes_doctor.repair.transaction.targets import Item
from hermes_doctor.repair.transaction.undo import undo_plan
from tests.helpers import crash_server, support

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")


def cured(records: Sequence[ItemRecord]) -> list[str | None]:
    """A check that finds everything well."""
    return [None for _ in records]


def ill(records: Sequence[ItemRecord]) -> list[str | None]:
    """A check that still finds everything."""
    return ["the check still finds the problem" for _ in records]


def item(*steps: Step, name: str = "TEST") -> Item:
    """An item of a run."""
    return Item(ItemRecord(name.lower(), name, name, "test"), steps)


def apply(
    home: Path,
    *items: Item,
    verify: Callable[[Sequence[ItemRecord]], Sequence[str | None]] = cured,
) -> Journal:
    """One run of these items."""
    where = Home(home)
    with lock_home(where):
        return Run(where, Vault(where), kind="fix", reason="a test").apply(items, verify)


def undo(home: Path, journal: Journal) -> Journal:
    """Take a run back."""
    where = Home(home)
    with lock_home(where):
        plan = undo_plan(where, Journals(where).load(journal.id), force=False)
        run = Run(where, Vault(where), kind="undo", reason="a test", of=journal.id)
        return run.apply(plan.items, plan.verify)


def there_and_back(home: Path, *steps: Step) -> Journal:
    """Apply, take back, and see that every file is what it was, times included."""
    before, times = crash_server.state(home), crash_server.modified(home)
    done = apply(home, item(*steps))
    assert done.state == "done", done.note
    assert crash_server.leftovers(home) == []
    after = crash_server.state(home)
    assert after != before
    undone = undo(home, done)
    assert undone.state == "done", undone.note
    assert crash_server.state(home) == before
    assert crash_server.modified(home) == times
    again = undo(home, undone)
    assert again.state == "done", again.note
    assert crash_server.state(home) == after
    return done


def replaced(path: Path, data: bytes) -> ReplaceFile:
    """A step that gives a file new content."""
    return ReplaceFile(path, data, "a test", snapshot(path))


def forked() -> int:
    """A fork of the test; Python 3.12 warns of one where threads run, as those of xdist do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def opened(home: Path) -> None:
    """Let other users pass the folders that pytest made above a home."""
    for folder in list(home.parents)[:4]:
        if folder.stat().st_uid == os.geteuid() and folder.stat().st_mode & 0o077 == 0:
            folder.chmod(0o711)


def as_stranger(act: Callable[[], bool]) -> bool:
    """Act as a user who is not root, in a process of its own."""
    pid = forked()
    if not pid:
        good = False
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setgid(crash_server.STRANGER)
            os.setuid(crash_server.STRANGER)
            good = act()
        os._exit(0 if good else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# -- files ---------------------------------------------------------------------------------


def test_replace_file(home: Path) -> None:
    """A file gets new content and keeps its mode."""
    (home / "config.yaml").chmod(0o640)
    there_and_back(home, replaced(home / "config.yaml", b"a: 1\r\n"))
    assert (home / "config.yaml").read_bytes() == b"a: 1\r\n"
    assert (home / "config.yaml").stat().st_mode & 0o7777 == 0o640


def test_replace_a_file_that_is_not_there(home: Path) -> None:
    """A file that is not there is made, private; undo removes it."""
    there_and_back(home, replaced(home / "new.yaml", b"a: 1\n"))
    assert (home / "new.yaml").stat().st_mode & 0o7777 == 0o600


@root_only
def test_a_new_file_in_a_home_of_another_group(home: Path) -> None:
    """A user whose group is not the home's makes a file, and can undo that."""
    os.chown(home, crash_server.STRANGER, 54321)
    for path in home.rglob("*"):
        os.chown(path, crash_server.STRANGER, 54321)
    opened(home)
    step = replaced(home / "new.yaml", b"a: 1\n")
    assert as_stranger(lambda: there_and_back(home, step).state == "done")


def test_replace_span(home: Path) -> None:
    """Exactly the bytes of the span change."""
    path = home / "config.yaml"
    before = b"a: 1\r\nb: two # kept\r\n\xff\r\n"
    path.write_bytes(before)
    at = before.index(b"two")
    step = ReplaceSpan(path, before, at, at + 3, b"three", "a test", snapshot(path))
    assert "line 2" in step.sentence()
    there_and_back(home, step)
    assert path.read_bytes() == before.replace(b"two", b"three")


def test_move_aside_and_remove(home: Path) -> None:
    """A file goes out of sight, a symlink as well; the vault keeps it."""
    (home / "link").symlink_to("nowhere at all")
    done = there_and_back(
        home, MoveAside(home / "auth.json", "a test"), Remove(home / "link", "a test")
    )
    assert not (home / "auth.json").exists() and not (home / "link").is_symlink()
    kept = home / "backups" / "doctor" / done.id / "files" / "auth.json"
    assert kept.read_text() == '{"providers": {}}\n'


def test_move_aside_takes_no_folder(home: Path) -> None:
    """A folder is not moved aside."""
    with pytest.raises(CannotFix, match="logs"):
        apply(home, item(MoveAside(home / "logs", "a test")))


def test_set_mode(home: Path) -> None:
    """A mode changes, and nothing else; no copy of the secret is made."""
    path = home / ".env"
    path.chmod(0o664)
    done = there_and_back(home, SetMode(path, 0o600, "a test", snapshot(path)))
    assert path.stat().st_mode & 0o7777 == 0o600
    assert not (home / "backups" / "doctor" / done.id / "files" / ".env").exists()


@root_only
def test_set_mode_of_a_file_that_its_owner_may_not_read(home: Path) -> None:
    """The owner of a file with mode 0000 can have it opened again."""
    crash_server.chown(home)
    (home / ".env").chmod(0)
    opened(home)
    step = SetMode(home / ".env", 0o600, "a test", snapshot(home / ".env"))
    assert as_stranger(lambda: apply(home, item(step)).state == "done")
    assert (home / ".env").stat().st_mode & 0o7777 == 0o600


@root_only
def test_set_owner(home: Path) -> None:
    """An owner changes, and nothing else."""
    path = home / ".env"
    there_and_back(
        home, SetOwner(path, crash_server.STRANGER, crash_server.STRANGER, "", snapshot(path))
    )
    assert path.stat().st_uid == path.stat().st_gid == crash_server.STRANGER


@root_only
@pytest.mark.parametrize("before_call", ["chown", "chmod"])
def test_owner_and_mode_cut_off_between(
    home: Path, before_call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is cut off between owner and mode of one file is taken back."""
    path = home / ".env"
    path.chmod(0o664)
    before = crash_server.state(home)
    steps = (
        SetOwner(path, crash_server.STRANGER, crash_server.STRANGER, "", snapshot(path)),
        SetMode(path, 0o600, "", snapshot(path)),
    )
    pid = forked()
    if not pid:
        real = getattr(os, before_call)

        def killing(what: object, *args: object, **options: object) -> object:
            if os.path.realpath(str(what)) == str(path):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(what, *args, **options)

        setattr(os, before_call, killing)
        with contextlib.suppress(BaseException):
            apply(home, item(steps[0], name="ONE"), item(steps[1], name="TWO"))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    where = Home(home)
    with lock_home(where):
        (said,) = [one.text for one in recover(where, cured)]
    assert "changed since" not in said, said
    assert crash_server.state(home) == before


@root_only
def test_somebody_else_may_not(home: Path) -> None:
    """A user who does not own the home is refused, though every file is open to all."""
    crash_server.chown(home, 23456)
    for path in (home, *home.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    opened(home)
    before = crash_server.state(home, vault=True)
    step = replaced(home / ".env", b"A=1\n")

    def refused() -> bool:
        with pytest.raises(Trouble, match="belongs to another user"):
            apply(home, item(step))
        return True

    assert as_stranger(refused)
    assert crash_server.state(home, vault=True) == before


# -- several at once -----------------------------------------------------------------------


def test_content_and_mode_of_one_file_by_two_fixes(home: Path) -> None:
    """One fix changes the text and another the mode: both in one run."""
    path = home / ".env"
    path.chmod(0o644)
    mode = SetMode(path, 0o600, "a test", snapshot(path))
    done = apply(home, item(replaced(path, b"A=1\n"), name="ONE"), item(mode, name="TWO"))
    assert [one.outcome for one in done.items] == ["verified", "verified"]
    assert path.read_bytes() == b"A=1\n"
    assert path.stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize("content_first", [True, False])
def test_content_and_mode_of_one_file_by_one_fix(home: Path, content_first: bool) -> None:
    """One fix may change text and mode of a file in two steps; neither is lost."""
    path = home / ".env"
    path.chmod(0o644)
    steps = [replaced(path, b"A=1\n"), SetMode(path, 0o600, "a test", snapshot(path))]
    done = apply(home, item(*(steps if content_first else reversed(steps))))
    assert done.state == "done"
    assert path.read_bytes() == b"A=1\n"
    assert path.stat().st_mode & 0o7777 == 0o600


def test_two_contents_for_one_file(home: Path) -> None:
    """Of two fixes that rewrite one file the second is left; it is never half done."""
    path, other = home / ".env", home / "auth.json"
    second = item(replaced(other, b"{}\n"), replaced(path, b"B=2\n"), name="TWO")
    done = apply(home, item(replaced(path, b"A=1\n"), name="ONE"), second)
    assert [one.outcome for one in done.items] == ["verified", "left"]
    assert path.read_bytes() == b"A=1\n"
    assert other.read_bytes() == b'{"providers": {}}\n'


def test_one_fix_that_does_not_hold(home: Path) -> None:
    """What is cured stays, what is not is taken back; what shares its files goes with it."""
    one = item(replaced(home / ".env", b"A=1\n"), name="ONE")
    two = item(replaced(home / "auth.json", b"{}\n"), name="TWO")
    three = item(SetMode(home / "auth.json", 0o640, "", snapshot(home / "auth.json")), name="THREE")
    before = crash_server.state(home)

    def verify(records: Sequence[ItemRecord]) -> list[str | None]:
        return [None if record.code != "TWO" else "still there" for record in records]

    done = apply(home, one, two, three, verify=verify)
    assert done.state == "partly"
    assert [i.outcome for i in done.items] == ["verified", "rolled-back", "rolled-back"]
    now = crash_server.state(home)
    assert now["auth.json"] == before["auth.json"]
    assert (home / ".env").read_bytes() == b"A=1\n"
    assert undo(home, done).state == "done"
    assert crash_server.state(home) == before


def test_not_verified(home: Path) -> None:
    """A run whose checks still find it changes nothing, and says so."""
    before, times = crash_server.state(home), crash_server.modified(home)
    done = apply(home, item(replaced(home / ".env", b"A=1\n")), verify=ill)
    assert done.state == "rolled-back"
    assert crash_server.state(home) == before and crash_server.modified(home) == times
    assert crash_server.leftovers(home) == []


def test_taken_back_in_part(home: Path) -> None:
    """A file that somebody edits meanwhile stays and is named; what was given up is kept."""
    before = (home / ".env").read_bytes()
    both = item(
        replaced(home / ".env", b"KEY=typed\n"), replaced(home / "auth.json", b'{"a": 1}\n')
    )

    def verify(records: Sequence[ItemRecord]) -> list[str | None]:
        (home / "auth.json").write_bytes(b'{"b": 2}\n')
        return ill(records)

    done = apply(home, both, verify=verify)

    assert (done.state, done.items[0].outcome) == ("partly", "failed")
    assert "rolled back only in part: auth.json was not restored" in (done.items[0].reason or "")
    assert (home / ".env").read_bytes() == before
    assert (home / "auth.json").read_bytes() == b'{"b": 2}\n'
    kept = Path(done.backup) / "given-back" / ".env"
    assert kept.read_bytes() == b"KEY=typed\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    vault = Vault(Home(home))
    assert vault.verify(vault.load(done.id)) == []


def test_a_check_that_breaks_while_it_verifies(home: Path) -> None:
    """Verifying that raises takes everything back."""
    before = crash_server.state(home)

    def verify(records: Sequence[ItemRecord]) -> list[str | None]:
        raise RuntimeError("a broken check")

    with pytest.raises(RuntimeError):
        apply(home, item(replaced(home / ".env", b"A=1\n")), verify=verify)
    assert crash_server.state(home) == before and crash_server.leftovers(home) == []


# -- databases -----------------------------------------------------------------------------


def rows(path: Path) -> list[str]:
    """What a reader of a database sees."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute("SELECT content FROM messages")]


def adding(text: str) -> Callable[[Path], None]:
    """A rebuild that adds a row."""

    def rebuild(copy: Path) -> None:
        with contextlib.closing(sqlite3.connect(copy)) as db, db:
            db.execute("INSERT INTO messages (content) VALUES (?)", (text,))

    return rebuild


@pytest.fixture
def live(home: Path) -> Path:
    """A database whose newest row is only in its write-ahead log."""
    path = home / "state.db"
    path.unlink()
    support.database(path, "CREATE TABLE messages (content TEXT)")
    crash_server.logged(path, "INSERT INTO messages VALUES ('in the log')")
    return path


def test_replace_database_merges_the_log(home: Path, live: Path) -> None:
    """What is only in the log is in the new file, and the log does not lie beside it."""
    step = ReplaceDatabase(live, adding("new"), "a test", snapshot(live))
    there_and_back(home, step)
    assert sorted(p.name for p in home.glob("state.db*")) == ["state.db"]
    assert rows(live) == ["in the log", "new"]


def test_undo_of_a_database_gives_the_log_back(home: Path, live: Path) -> None:
    """After undo a reader sees what it saw before, from the log."""
    done = apply(home, item(ReplaceDatabase(live, adding("new"), "a test", snapshot(live))))
    undo(home, done)
    assert (home / "state.db-wal").stat().st_size > 0
    assert rows(live) == ["in the log"]


def breaking(copy: Path) -> None:
    """A rebuild that leaves damage behind."""
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    support.clobber(copy, b"\xff" * 4096, at=4096)


def failing(copy: Path) -> None:
    """A rebuild that gives up."""
    raise CannotFix("it is beyond repair")


@pytest.mark.parametrize(
    ("rebuild", "why"), [(failing, "beyond repair"), (breaking, "repaired copy")]
)
def test_a_rebuild_that_fails(
    home: Path, live: Path, rebuild: Callable[[Path], None], why: str
) -> None:
    """A copy that cannot be proven sound is dropped: refused, with nothing changed."""
    before = crash_server.state(home)
    done = apply(home, item(ReplaceDatabase(live, rebuild, "a test", snapshot(live))))
    assert done.items[0].outcome == "refused"
    assert why in (done.items[0].reason or "")
    assert crash_server.state(home) == before and crash_server.leftovers(home) == []


def test_a_rebuild_with_a_bug(home: Path, live: Path) -> None:
    """A rebuild that raises what it should not changes nothing either."""
    before = crash_server.state(home)

    def rebuild(copy: Path) -> None:
        raise sqlite3.DatabaseError("malformed")

    with contextlib.suppress(sqlite3.DatabaseError):
        apply(home, item(ReplaceDatabase(live, rebuild, "a test", snapshot(live))))
    assert crash_server.state(home) == before and crash_server.leftovers(home) == []


def test_a_rebuild_that_fails_names_no_other_fix(home: Path, live: Path) -> None:
    """The reason of one refusal is not given for another fix."""
    bad = item(ReplaceDatabase(live, failing, "a test", snapshot(live)), name="BAD")
    good = item(replaced(home / ".env", b"A=1\n"), name="GOOD")
    done = apply(home, bad, good)
    assert done.items[0].outcome == "refused"
    assert done.items[1].outcome != "refused"
    assert "beyond repair" not in (done.items[1].reason or "")


def test_a_rebuild_that_needs_more_room(
    home: Path, live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a rebuild needs on the way is known before it begins, and before any backup."""
    before = crash_server.state(home)
    size = sum(path.stat().st_size for path in home.glob("state.db*"))
    begun: list[Path] = []
    free = 3 * size + MARGIN
    monkeypatch.setattr(
        os, "statvfs", lambda _: SimpleNamespace(f_frsize=1, f_bfree=free, f_bavail=free)
    )
    step = ReplaceDatabase(live, begun.append, "a test", snapshot(live), times=4)

    with pytest.raises(Trouble, match="free, but"):
        apply(home, item(step))

    assert begun == []
    assert crash_server.state(home) == before and crash_server.leftovers(home) == []
    assert not list((home / "backups").rglob("state.db"))


@contextlib.contextmanager
def holding(path: Path) -> Iterator[int]:
    """Another process that has a file open."""
    code = "import sys; f = open(sys.argv[1], 'rb'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stdin
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.wait(10)


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
def test_a_database_in_use(home: Path, live: Path, name: str) -> None:
    """A database or a log that somebody has open is refused, with the process named."""
    before = crash_server.state(home, vault=True)
    step = ReplaceDatabase(live, adding("new"), "a test", snapshot(live))
    with holding(home / name) as pid, pytest.raises(Trouble, match=str(pid)):
        apply(home, item(step))
    assert crash_server.state(home, vault=True) == before


def test_a_database_that_is_opened_meanwhile(home: Path, live: Path) -> None:
    """Somebody who opens the database while the copy is rebuilt stops the swap."""
    before = crash_server.state(home)
    with contextlib.ExitStack() as stack:
        pids = []

        def rebuild(copy: Path) -> None:
            adding("new")(copy)
            pids.append(stack.enter_context(holding(live)))

        step = ReplaceDatabase(live, rebuild, "a test", snapshot(live))
        said = ""
        try:
            said = apply(home, item(step)).items[0].reason or ""
        except Trouble as trouble:
            said = str(trouble)
    assert crash_server.state(home) == before
    assert str(pids[0]) in said


# -- the gateway ---------------------------------------------------------------------------


@dataclass(eq=False)
class Child(GatewayControl):
    """A service whose gateway is a process that this test starts, and that reads a file first."""

    reads: Path
    process: subprocess.Popen[bytes] | None = None
    log: list[str] = field(default_factory=list)
    broken: bool = False
    away: dict[str, str] = field(default_factory=dict)
    looped: bool | None = None

    def describe(self) -> str:
        """What owns the gateway."""
        return "the test"

    def running(self) -> int | None:
        """The gateway's process."""
        alive = self.process is not None and self.process.poll() is None
        return self.process.pid if alive and self.process else None

    def stop(self, limit: float) -> None:
        """End it."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(limit)
        self.log.append(f"stop {self.reads.read_text().strip()}")

    def start(self, limit: float) -> None:
        """Bring it up."""
        assert self.running() is None
        self.log.append(f"start {self.reads.read_text().strip()}")
        if self.broken:
            raise CannotFix("the gateway does not stay up")
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])

    def restless(self) -> bool:
        """Nobody starts it but a run."""
        return False

    def settled(self, limit: float) -> int | None:
        """It ends at once."""
        return self.running()

    def asked(self) -> int | None:
        """What was asked to end has ended."""
        return None

    def remember(self, file: Path) -> None:
        """There is nothing to know."""

    def unconnected(self) -> dict[str, str]:
        """The platforms that a test wants to stay away."""
        return self.away

    def notes(self) -> list[str]:
        """There is nothing to say."""
        return []


@pytest.fixture
def service(home: Path) -> Iterator[Child]:
    """A running gateway, ended after the test."""
    (home / ".env").write_text("OLD=1\n")
    child = Child(home / ".env")
    child.start(5)
    child.log.clear()
    yield child
    if child.process is not None:
        child.process.kill()
        child.process.wait(5)


def test_stopped_since_the_plan(home: Path) -> None:
    """A gateway that somebody stopped after the plan was made is not started by its restart."""
    service = Child(home / ".env")
    step = GatewayStep(service, restart=True, why="a test")
    done = apply(home, item(replaced(home / ".env", b"NEW=1\n"), step))
    assert done.state == "done" and service.log == []


class Slow(Child):
    """One that heeds the stop when it is done with its answer."""

    def stop(self, limit: float) -> None:
        """It goes on."""
        raise CannotFix(f"process {self.running()} was asked to end and still works")

    def asked(self) -> int | None:
        """The one that goes on."""
        return self.running()


def test_ends_later(home: Path) -> None:
    """No file was changed, but the gateway will end: the run stays open until it is up again."""
    service = Slow(home / ".env")
    service.start(5)
    assert service.process is not None
    before = crash_server.state(home)
    step = GatewayStep(service, restart=True, why="a test")
    try:
        with pytest.raises(Trouble, match=r"No file was changed; process .* stops when its work"):
            apply(home, item(replaced(home / ".env", b"NEW=1\n"), step))
    finally:
        service.process.kill()
        service.process.wait(5)
    assert crash_server.state(home) == before
    [log] = Journals(Home(home)).all()
    assert (log.state, log.gateway, log.final) == ("ending", "asked", False)
    assert [run.waits_for_gateway for run in Probes(Home(home)).records.unfinished_runs()] == [True]
    with lock_home(Home(home)):
        [ended] = recover(Home(home), ill)
    assert "waits for the gateway to stop" in ended.text
    [log] = Journals(Home(home)).all()
    assert (log.final, log.gateway) == (True, "stopped"), "there is no Hermes that could run it"


def test_restart(home: Path, service: Child) -> None:
    """The gateway is down while the files change, and up with the new ones afterwards."""
    old = service.running()
    step = GatewayStep(service, restart=True, why="a test")
    done = apply(home, item(replaced(home / ".env", b"NEW=1\n"), step))
    assert done.state == "done"
    assert service.log == ["stop OLD=1", "start NEW=1"]
    assert service.running() not in (None, old)
    assert done.gateway == "started"


@pytest.mark.parametrize("verify", [cured, ill])
def test_a_restart_whose_platform_stays_away(
    home: Path, service: Child, verify: Callable[[Sequence[ItemRecord]], Sequence[str | None]]
) -> None:
    """It is done and stays, but it is not a repair, whatever the check says so early."""
    service.away = {"qqbot": "QQ: closed", "telegram": "Telegram: retrying"}
    step = GatewayStep(service, restart=True, why="a test", platforms=("qqbot",))
    done = apply(home, item(step), verify=verify)
    [one] = done.items
    assert (one.outcome, one.reason) == ("not-connected", "QQ: closed")
    assert (done.state, done.gateway) == ("done", "started")
    assert service.log == ["stop OLD=1", "start OLD=1"]


def test_a_restart_whose_platform_is_connected(home: Path, service: Child) -> None:
    """What another platform does is not its business."""
    service.away = {"telegram": "Telegram: retrying"}
    step = GatewayStep(service, restart=True, why="a test", platforms=("qqbot",))
    assert [one.outcome for one in apply(home, item(step)).items] == ["verified"]


def test_changed_files_stay_when_the_platform_does_not_connect(home: Path, service: Child) -> None:
    """The check found them right, so they are kept, and undo can restore the old ones."""
    service.away = {"qqbot": "QQ: closed"}
    step = GatewayStep(service, restart=True, why="a test", platforms=("qqbot",))
    done = apply(home, item(replaced(home / ".env", b"NEW=1\n"), step))
    assert [one.outcome for one in done.items] == ["not-connected"]
    assert (home / ".env").read_bytes() == b"NEW=1\n" and done.undoable
    assert undo(home, done).state == "done"
    assert (home / ".env").read_bytes() == b"OLD=1\n"
    wrong = apply(home, item(replaced(home / ".env", b"NEW=2\n"), step), verify=ill)
    assert [one.outcome for one in wrong.items] == ["rolled-back"]
    assert (home / ".env").read_bytes() == b"OLD=1\n"


def test_start(home: Path, service: Child) -> None:
    """A gateway that is down is started; one that is up is left alone."""
    step = GatewayStep(service, restart=False, why="a test")
    old = service.running()
    assert apply(home, item(step)).state == "done"
    assert service.running() == old and service.log == []
    service.stop(5)
    service.log.clear()
    assert apply(home, item(step)).state == "done"
    assert service.log == ["start OLD=1"]


def test_restart_after_a_commit_that_fails(home: Path, service: Child) -> None:
    """A file that changed while the gateway went down: rolled back, and it runs again."""
    path = home / ".env"
    stop = service.stop

    def stopping(limit: float) -> None:
        stop(limit)
        (home / "auth.json").write_text("{}")

    service.stop = stopping  # type: ignore[method-assign]
    step = GatewayStep(service, restart=True, why="a test")
    items = item(replaced(path, b"NEW=1\n"), replaced(home / "auth.json", b"[]"), step)
    with contextlib.suppress(Trouble):
        assert apply(home, items).state in ("abandoned", "rolled-back")
    assert path.read_text() == "OLD=1\n" and (home / "auth.json").read_text() == "{}"
    assert service.log == ["stop OLD=1", "start OLD=1"]
    assert service.running() is not None


def test_neither_changed_nor_started_again(home: Path, service: Child) -> None:
    """A run that fails and leaves the gateway stopped does not say that nothing was changed."""
    path = home / ".env"
    stop = service.stop

    def stopping(limit: float) -> None:
        stop(limit)
        service.broken = True
        raise CannotFix("The disk is away.")

    service.stop = stopping  # type: ignore[method-assign]
    step = GatewayStep(service, restart=True, why="a test")
    with pytest.raises(Trouble) as raised:
        apply(home, item(replaced(path, b"NEW=1\n"), step))
    assert path.read_text() == "OLD=1\n"
    assert str(raised.value) == (
        "The disk is away. No file was changed, but the gateway was stopped and could not be "
        "started again. Start it."
    )


def test_restart_that_does_not_come_up(home: Path, service: Child) -> None:
    """A gateway that does not stay up on the new files: they are taken back, and it is told."""
    service.broken = True
    step = GatewayStep(service, restart=True, why="a test")
    done = apply(home, item(replaced(home / ".env", b"NEW=1\n"), step))
    assert done.state == "rolled-back"
    assert (home / ".env").read_text() == "OLD=1\n"
    assert service.log == ["stop OLD=1", "start NEW=1", "start OLD=1"]
    assert "could not be started again" in (done.note or "")


def test_restart_that_does_not_cure(home: Path, service: Child) -> None:
    """Not cured: the files are never taken back under a gateway that runs on the new ones."""
    step = GatewayStep(service, restart=True, why="a test")
    done = apply(home, item(replaced(home / ".env", b"NEW=1\n"), step), verify=ill)
    assert done.state == "rolled-back"
    assert (home / ".env").read_text() == "OLD=1\n"
    assert service.log == ["stop OLD=1", "start NEW=1", "stop NEW=1", "start OLD=1"]
    assert service.running() is not None


def test_a_database_that_the_gateway_holds(home: Path, service: Child, live: Path) -> None:
    """A holder that the run itself stops is no obstacle."""
    assert service.process is not None
    service.process.kill()
    service.process.wait(5)
    with holding(live) as pid:
        service.process = None

        def running() -> int | None:
            return pid if Path(f"/proc/{pid}/fd").exists() and not stopped else None

        stopped: list[bool] = []

        def stop(limit: float) -> None:
            os.kill(pid, signal.SIGTERM)
            stopped.append(True)
            with contextlib.suppress(PermissionError):  # only root may list those of a dead process
                while any(Path(f"/proc/{pid}/fd").iterdir()):
                    pass

        service.running = running  # type: ignore[method-assign]
        service.stop = stop  # type: ignore[method-assign]
        step = GatewayStep(service, restart=True, why="a test")
        database = ReplaceDatabase(live, adding("new"), "a test", snapshot(live))
        done = apply(home, item(step, database))
    assert done.state == "done", done.note
    assert rows(live) == ["in the log", "new"]


def test_inside_the_gateway(home: Path, service: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the gateway that it would restart, a run refuses before it touches anything."""
    monkeypatch.setenv("_HERMES_GATEWAY", "1")
    before = crash_server.state(home, vault=True)
    step = GatewayStep(service, restart=True, why="a test")
    with pytest.raises(Trouble, match="inside the gateway"):
        apply(home, item(replaced(home / ".env", b"NEW=1\n"), step))
    assert crash_server.state(home, vault=True) == before
    assert service.log == [] and service.running() is not None


def test_killed_while_the_gateway_is_down(home: Path, service: Child) -> None:
    """The next command says that a run which was cut off has left the gateway down."""
    before = crash_server.state(home)
    pid = forked()
    if not pid:

        def stopping(limit: float) -> None:
            assert service.process is not None
            os.kill(service.process.pid, signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGKILL)

        service.running = lambda: 1  # type: ignore[method-assign]  # a fork is not its parent
        service.stop = stopping  # type: ignore[method-assign]
        with contextlib.suppress(BaseException):
            step = GatewayStep(service, restart=True, why="a test")
            apply(home, item(replaced(home / ".env", b"NEW=1\n"), step))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    where = Home(home)
    with lock_home(where):
        (said,) = [one.text for one in recover(where, cured)]
    assert "gateway" in said
    assert crash_server.state(home) == before and crash_server.leftovers(home) == []


# -- compare and swap ----------------------------------------------------------------------


def test_changed_before_the_run(home: Path) -> None:
    """A file that was edited after the plan is not touched."""
    path = home / ".env"
    step = replaced(path, b"A=1\n")
    path.write_text("EDITED=1\n")
    with pytest.raises(Trouble, match=r"nother program changed \.env"):
        apply(home, item(step))
    assert path.read_text() == "EDITED=1\n"


def test_changed_while_staging(home: Path, live: Path) -> None:
    """A file that is edited after the backup stops the run, and the edit stays."""
    path = home / ".env"

    def rebuild(copy: Path) -> None:
        path.write_text("EDITED=1\n")

    before = crash_server.state(home)
    steps = (replaced(path, b"A=1\n"), ReplaceDatabase(live, rebuild, "", snapshot(live)))
    done = apply(home, item(*steps))
    assert done.state == "rolled-back"
    assert "nother program changed .env" in (done.note or "")
    now = crash_server.state(home)
    assert path.read_text() == "EDITED=1\n"
    assert {k: v for k, v in now.items() if k != ".env"} == {
        k: v for k, v in before.items() if k != ".env"
    }


def test_made_meanwhile(home: Path) -> None:
    """A file that appears where none was is not overwritten."""
    path = home / "new.yaml"
    step = ReplaceFile(path, b"ours", "a test", ABSENT)
    path.write_text("theirs")
    with pytest.raises(Trouble, match="nother program changed"):
        apply(home, item(step))
    assert path.read_text() == "theirs"


def test_edited_before_the_rollback(home: Path) -> None:
    """A rollback leaves alone what somebody has edited since the commit, and names it."""

    def verify(records: Sequence[ItemRecord]) -> list[str | None]:
        (home / ".env").write_text("EDITED=1\n")
        return ill(records)

    done = apply(home, item(replaced(home / ".env", b"A=1\n")), verify=verify)
    assert (home / ".env").read_text() == "EDITED=1\n"
    assert done.state == "partly" and ".env" in (done.note or "")
    assert crash_server.leftovers(home) == []


def test_hard_links_are_named(home: Path) -> None:
    """A replaced file leaves its other names behind, and the plan says so."""
    path = home / "config.yaml"
    one = ReplaceFile(path, b"a: 2\n", "to try it", snapshot(path))
    assert "hard link" not in one.sentence()
    os.link(path, home / "config.second")

    assert "the old content stays in 1 other hard link of it" in one.sentence()
