"""Looking leaves no trace: no byte, no time, no file, neither in the home nor beside it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.sqlite.examine import condition
from tests.helpers import budget, damage, requirements, support

pytestmark = pytest.mark.disk
PLUGINS = load.load()

LOOKS: tuple[tuple[str, ...], ...] = (
    ("check",),
    ("check", "--json"),
    ("check", "--deep"),
    ("check", "--all-homes"),
    ("check", "--all-homes", "--json"),
    ("fix",),
    ("fix", "--json"),
    ("fix", "CFG-YAML"),
    ("config",),
    ("config", "--json"),
    ("backup", "list"),
    ("backup", "list", "--json"),
    ("backup", "verify"),
    ("backup", "verify", "--all"),
)
"""Every command that only looks, as it is called with --home."""

HOMELESS: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("list", "codes"),
    ("list", "fixes", "--json"),
    ("explain", "CFG-YAML"),
    ("explain", "NO-SUCH"),
    ("--help",),
    ("check", "--no-such-option"),
)
"""Those that take no home, and calls that go wrong; HERMES_HOME names it."""

_WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA wal_autocheckpoint = 0")
db.execute("CREATE TABLE IF NOT EXISTS held (a)")
db.execute("INSERT INTO held VALUES (1)")
db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO held VALUES (2)")
print("ready", flush=True)
sys.stdin.read()
"""


def _sick(home: Path) -> Path:
    """A home with every fault that a check knows, copies to compare with, and a profile."""
    support.healthy(home)
    support.put(home / "config.yaml", "model:\n  provider: [\n")
    support.put(home / "config.yaml.bak", support.CONFIG)
    support.put(home / "state-snapshots" / "one" / "config.yaml", support.CONFIG + "# older\n")
    support.put(home / "state-snapshots" / "one" / ".env", support.ENV, mode=0o644)
    (home / "backups").mkdir()
    with zipfile.ZipFile(home / "backups" / "hermes.zip", "w") as archive:
        archive.writestr("config.yaml", support.CONFIG + "# in a zip\n")
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode(), mode=0o644)
    support.put(home / "auth.json", "{}", mode=0o644)
    support.clobber(home / "state.db")
    (home / "kanban.db").unlink()
    support.board(home / "kanban.db", without=(("tasks", "session_id"),))
    support.board(home / "kanban" / "boards" / "other" / "kanban.db")
    support.made("response_store.db", home / "response_store.db").close()
    support.put(home / "profiles" / "second" / "config.yaml", support.CONFIG)
    support.put(home / "gateway.lock", '{"pid": 1}')
    (home / "gateway.pid").symlink_to("gateway.lock")
    return home


def _leftovers(home: Path) -> Path:
    """Databases with the -wal and -shm of a process that was killed."""
    for name in ("projects.db", "kanban.db"):
        path = home / name
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            db.execute("CREATE TABLE leftover (a)")
            copies = {s: path.with_name(name + s).read_bytes() for s in ("", "-wal", "-shm")}
        for suffix, data in copies.items():
            support.put(path.with_name(name + suffix), data)
    support.put(
        home / "response_store.db-journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\0" * 504
    )
    return home


def _vault(home: Path) -> Path:
    """A home with a backup, a run that ended and one that was undone."""
    assert support.doctor("backup", "create", "--home", home).code == 1
    assert support.doctor("fix", "--apply", "--yes", "--home", home).code == 0
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    return home


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Another process has the database open in WAL mode, in the middle of a transaction."""
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        yield
    finally:
        writer.communicate()


def _aged(home: Path) -> Path:
    """Old times everywhere: under relatime only then does a read move the access time."""
    for base, _, files in os.walk(home, topdown=False):
        for name in files:
            path = Path(base, name)
            os.utime(path, (1_600_000_000, 1_700_000_000), follow_symlinks=False)
    time.sleep(0.02)  # the kernel's clock for file times ticks slowly
    return home


def _everything(home: Path) -> dict[str, tuple[Any, ...]]:
    """The home with its vault and all its times, and every name beside it."""
    found = support.tree(home, vault=True)
    links = [name for name in found if (home / name).is_symlink()]
    for name in links:  # reading a link moves its own access time, so that one is left out
        found[name] = found[name][:-1]
    return found | {f"../{path.name}": () for path in home.parent.iterdir()}


@pytest.fixture(scope="module", params=["healthy", "sick", "leftovers", "vault", "cut-off"])
def any_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Homes in several states, each with old times; built once, since no test may change them."""
    home = tmp_path_factory.mktemp("any") / "a" / ".hermes"
    if request.param == "healthy":
        support.healthy(home)
    elif request.param == "sick":
        _sick(home)
    elif request.param == "leftovers":
        _leftovers(support.healthy(home))
    else:
        _vault(_sick(home))
        if request.param == "cut-off":
            journal = sorted(home.glob("backups/doctor/runs/*/run.json"))[-1]
            journal.write_text(
                re.sub(r'"state": "\w+"', '"state": "committing"', journal.read_text())
            )
    return _aged(home)


def test_a_check_changes_nothing(any_home: Path) -> None:
    """Each check by itself leaves the home as it is, all times included."""
    before = _everything(any_home)
    for check in PLUGINS.checks:
        [result], _ = examine(Probes(Home(any_home)), [check])
        assert result.status is not Status.CRASHED, (check.id, result.reason)
        if budget.everything:  # else all together: a change leaves its time behind
            assert _everything(any_home) == before, check.id
    assert _everything(any_home) == before


def test_commands_that_look_change_nothing(any_home: Path) -> None:
    """Every command that only looks leaves the home as it is, all times included."""
    before = _everything(any_home)
    for args in budget.sample(LOOKS, 6, kind=lambda words: words[0]):
        done = support.doctor(*args, "--home", any_home)
        assert done.code in (0, 1, 2), done.err
        assert _everything(any_home) == before, args
    for args in budget.sample(HOMELESS, 3):
        done = support.doctor(*args, env={"HERMES_HOME": str(any_home)})
        assert done.code in (0, 1, 2), done.err
        assert _everything(any_home) == before, args


def test_refused_writes_change_nothing(tmp_path: Path) -> None:
    """Commands that would write, but are not agreed to or name nothing, leave no trace."""
    home = _aged(_sick(tmp_path / "home"))
    before = _everything(home)
    for args in (
        ("undo",),
        ("undo", "no-such-run", "--yes"),
        ("backup", "restore", "no-such"),
        ("backup", "prune", "--keep", "1"),
        ("fix", "--apply", "NO-SUCH"),
        ("fix", "--apply", "CFG-YAML"),
        ("fix", "--apply", "CFG-YAML", "--json"),
    ):
        done = support.doctor(*args, "--home", home)
        assert done.code in (0, 1, 2), done.err
        assert _everything(home) == before, args


def test_a_database_in_use_is_left_alone(tmp_path: Path) -> None:
    """No file appears, disappears or changes while another process holds a database in WAL mode."""
    home = support.healthy(tmp_path / "a" / "home")
    with _held(home / "kanban.db"), _held(home / "state.db"):
        assert (home / "kanban.db-wal").exists()
        assert (home / "state.db-shm").exists()
        _aged(home)
        before = _everything(home)
        for args in budget.sample(LOOKS[:8], 4, kind=lambda words: words[0]):
            done = support.doctor(*args, "--home", home)
            assert done.code in (0, 1), done.err
            assert _everything(home) == before, args
        for check in PLUGINS.checks:
            examine(Probes(Home(home)), [check])
            if budget.everything:
                assert _everything(home) == before, check.id
        assert _everything(home) == before


def test_the_writer_is_not_blocked(tmp_path: Path) -> None:
    """While the tool looks again and again, a writer never meets a lock."""
    home = support.healthy(tmp_path / "home")
    with contextlib.closing(
        sqlite3.connect(home / "kanban.db", isolation_level=None, timeout=0)
    ) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for number in range(budget.tries(12, 40)):
            examine(Probes(Home(home)), PLUGINS.checks)
            db.execute("BEGIN EXCLUSIVE")
            db.execute(
                "INSERT INTO tasks (id, title, status, created_at) VALUES (?, '', '', 1)",
                (f"n{number}",),
            )
            db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


# -- the kernel's own word -----------------------------------------------------------------

_CHANGES = (
    "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,link,linkat,"
    "symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,utime,utimes,futimesat,"
    "utimensat,truncate,ftruncate,fallocate,setxattr,lsetxattr,fsetxattr,removexattr,"
    "lremovexattr,fremovexattr,creat,flock"
)
_OPENS = "open,openat,openat2"
_WRITES = "write,pwrite64,writev,pwritev,sendfile,copy_file_range,mmap"


def _strace() -> str:
    requirements.programs("strace")
    return shutil.which("strace") or "strace"


def _traced(home: Path, args: tuple[str, ...], log: Path) -> list[str]:
    """The system calls of one command that could change something under the home."""
    calls = f"trace={_CHANGES},{_OPENS},{_WRITES}"
    command = [sys.executable, "-m", "hermes_doctor", *args]
    environ = {k: v for k, v in os.environ.items() if k not in ("HERMES_HOME", "SUDO_USER")}
    subprocess.run(
        [_strace(), "-f", "-y", "-qq", "-s", "16", "-e", calls, "-o", str(log), *command],
        env=environ | {"HERMES_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    text = log.read_text(errors="replace")
    assert str(home) in text, "strace saw nothing of the home"
    return [line for line in text.splitlines() if str(home) in line and _alters(line)]


def _alters(line: str) -> bool:
    call = re.search(r"(?:^|\s)(\w+)\(", line)
    if call is None:
        return False
    name = call[1]
    if name in _OPENS.split(","):
        return bool(re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE", line))
    if name == "mmap":
        return "PROT_WRITE" in line and "MAP_SHARED" in line
    if name in _WRITES.split(","):  # what is written to: a descriptor under the home?
        return bool(re.search(rf"{name}\(\d+<[^>]*{re.escape(str(_HOME_NAME))}", line))
    return True


_HOME_NAME = "watched-home"


@pytest.mark.parametrize("word", ["check", "fix", "backup"])
def test_the_kernel_saw_no_write(tmp_path: Path, word: str) -> None:
    """Not one open for writing, rename, removal, chmod, utime or lock on a path of the home."""
    _strace()
    home = _leftovers(_vault(_sick(tmp_path / _HOME_NAME)))
    before = _everything(_aged(home))
    for args in budget.sample([args for args in LOOKS if args[0] == word], 2):
        assert _traced(home, args, tmp_path / "log") == [], args
    after = _everything(home)
    assert {name for name in after if not name.startswith("../")} == {
        name for name in before if not name.startswith("../")
    }


def test_strace_would_see_a_write(tmp_path: Path) -> None:
    """The proof above is worth something: a command that does write is seen."""
    _strace()
    home = _aged(_sick(tmp_path / _HOME_NAME))
    assert _traced(home, ("fix", "--apply", "--yes"), tmp_path / "log")


# -- databases in every state ----------------------------------------------------------------------


def _at_rest(path: Path) -> None:
    """Nothing beside it."""


def _left_by_a_crash(path: Path) -> None:
    """With -wal and -shm."""
    damage.with_log(path)


def _only_a_log(path: Path) -> None:
    """With -wal, and without the index of it."""
    damage.with_log(path, index=False)


def _empty_log(path: Path) -> None:
    """With sidecars of no bytes, whose mode SQLite would set if it could."""
    for suffix in ("-wal", "-shm"):
        support.put(path.with_name(path.name + suffix), b"", 0o644)


def _with_a_journal(path: Path) -> None:
    """With a journal that SQLite would play back and delete."""
    support.put(path.with_name(path.name + "-journal"), _JOURNAL + bytes(4096))


def _no_bytes(path: Path) -> None:
    """An empty file, beside which SQLite would delete the log."""
    damage.with_log(path)
    os.truncate(path, 0)


_JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
STATES = (_at_rest, _left_by_a_crash, _only_a_log, _empty_log, _with_a_journal, _no_bytes)
FAULTS = (None, damage.rows_zeroed, damage.search_structure, damage.cut_off, damage.table_lost)


@pytest.mark.sampled(one_of=5)
@pytest.mark.parametrize("state", STATES, ids=damage.called)
@pytest.mark.parametrize("way", ["memory", "process"])
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_databases_in_every_state(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: damage.Fault,
    way: str,
    deep: bool,
) -> None:
    """Sound or damaged, small or large, quickly or wholly: nothing is left behind."""
    if way == "process":
        monkeypatch.setattr(condition, "SMALL_BYTES", 0)
        monkeypatch.setattr(condition, "SMALL_BYTES_DEEP", 0)
    turn = STATES.index(state) + 2 * deep + (way == "memory")
    chosen = FAULTS if budget.everything else (FAULTS[turn % 5], FAULTS[(turn + 2) % 5])
    for fault in chosen:
        home = support.healthy(tmp_path / damage.called(fault or _at_rest) / ".hermes")
        path = damage.history(home / "state.db", messages=200)
        if fault is not None:
            fault(path)
        with contextlib.suppress(sqlite3.Error):
            state(path)
        (home / "writing.db").unlink(missing_ok=True)
        before = _everything(_aged(home))
        results, _ = examine(Probes(Home(home), deep=deep), PLUGINS.checks)
        assert _everything(home) == before, fault
        assert Status.CRASHED not in {result.status for result in results}


@pytest.mark.sampled
@pytest.mark.parametrize("state", STATES[:4], ids=damage.called)
def test_the_kernel_saw_no_write_to_a_large_database(tmp_path: Path, state: damage.Fault) -> None:
    """SQLite itself, in its own process, opens for reading only and changes no owner or mode."""
    _strace()
    home = support.healthy(tmp_path / _HOME_NAME)
    path = damage.history(home / "state.db", messages=4000)
    assert path.stat().st_size > condition.SMALL_BYTES
    state(path)
    before = _everything(_aged(home))
    both = (("check",), ("check", "--deep"))
    for args in both if budget.everything else (both[STATES.index(state) % 2],):
        assert _traced(home, args, tmp_path / "log") == [], args
    after = _everything(home)
    assert {k: v for k, v in after.items() if k[:3] != "../"} == {
        k: v for k, v in before.items() if k[:3] != "../"
    }
