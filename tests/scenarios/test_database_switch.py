"""A database is switched in one instant: whoever opens it, at whatever moment, sees every row.

200 rows are only in the write-ahead log. A run is killed at a system call that changes a name,
a writer opens the database at once, counts the rows and commits one more, the next command ends
the run, and the rows are counted again. Not one may be missing.

`HERMES_DOCTOR_EVERY_KILL=1` kills at every such call. Else only the calls that switch files of
the home count, and some of those that remove files in the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers import budget, crash_server, damage
from tests.helpers.crash_server import Call, Cut, Ended, Server

ROWS = 200
NAMES = ("rename", "exchange", "link", "unlink", "symlink", "rmdir", "remove", "replace")
EVERY = bool(os.environ.get("HERMES_DOCTOR_EVERY_KILL"))
WRITER = """
import os, sqlite3, sys
path, count, insert, how, *told = sys.argv[1:]
db = sqlite3.connect(path, isolation_level=None, timeout=0 if told else 5)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("BEGIN IMMEDIATE")
print(db.execute(count).fetchone()[0])
db.execute(insert)
db.execute("COMMIT")
sys.stdout.flush()
if told:
    open(told[0], "w").close()
if how == "killed":
    os._exit(0)  # its log stays
db.close()
"""
"""A Hermes that is started at once, and is killed or ends in order."""


@dataclass(frozen=True)
class Kind:
    """A database of a home and what is done to it."""

    name: str
    code: str
    make: Callable[[Path], object]
    count: str
    insert: str
    find: str


def board(path: Path) -> None:
    """A sound kanban database that lacks a column, as before an update of Hermes."""
    crash_server.lacking(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    crash_server.logged(
        path,
        "INSERT INTO tasks (id, title, status, created_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION "
        f"ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT 'log' || i, hex(randomblob(40)), "
        "'todo', i FROM n",
    )


def history(hurt: Callable[[Path], None], *, index: bool = True) -> Callable[[Path], None]:
    """A damaged message history, to which messages were added since."""

    def make(path: Path) -> None:
        damage.history(path, 300)
        hurt(path)
        damage.with_log(path, ROWS, at_once=50, index=index)
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).chmod(0o600)

    return make


MESSAGES = ("state.db", "SELECT count(*) FROM messages WHERE id > 300 AND timestamp < 2e4")
ADD = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', 'x', 3e4)"
ADDED = "SELECT count(*) FROM messages WHERE id > 300 AND timestamp = 3e4"
KINDS = {
    "schema": Kind(
        "kanban.db",
        "KANBAN-SCHEMA",
        board,
        "SELECT count(*) FROM tasks WHERE id LIKE 'log%'",
        "INSERT INTO tasks (id, title, status, created_at) VALUES ('since', 'since', 'todo', 2)",
        "SELECT count(*) FROM tasks WHERE id = 'since'",
    ),
    "search": Kind(
        MESSAGES[0], "DB-FTS-CORRUPT", history(damage.search_lacks_rows), MESSAGES[1], ADD, ADDED
    ),
    "salvage": Kind(
        MESSAGES[0], "DB-MALFORMED", history(damage.rows_zeroed), MESSAGES[1], ADD, ADDED
    ),
}


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving(alone=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the home is each time: receipts name their vault by its path."""
    return tmp_path / "home"


def made(home: Path, kind: Kind) -> Path:
    """A home with that database."""
    from tests.helpers import support

    support.healthy(home)
    for path in home.glob(f"{kind.name}*"):
        path.unlink()
    kind.make(home / kind.name)
    return home


def put(template: Path, home: Path) -> Path:
    """The home as the template has it."""
    shutil.rmtree(home, ignore_errors=True)
    return crash_server.clone(template, home)


def ask(path: Path, sql: str) -> int:
    """One number out of a database, as the next Hermes will see it."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return int(db.execute(sql).fetchone()[0])


def write(home: Path, kind: Kind, how: str) -> int:
    """Let a writer open the database now; how many rows of the log it saw."""
    words = [str(home / kind.name), kind.count, kind.insert, how]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", WRITER, *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


def moments(calls: Sequence[Call], step: int = 1) -> list[int]:
    """Where to kill: at every exchange, and at every `step`-th other call that changes a name.

    Each exchange comes with the calls before and after it, so that the instants on both sides of
    it are always tried. Without exchanges, the renames that switch the files take their place.
    """
    found = [n for n, call in enumerate(calls) if call.name in NAMES and call.effect]
    if EVERY:
        return found
    inside = [n for n in found if crash_server.MARK in calls[n].path]
    removals = [n for n in inside if calls[n].name == "unlink"]
    switching = [n for n in inside if n not in removals]
    exchanges = [n for n in switching if calls[n].name == "exchange"]
    exchanges = exchanges or [n for n in switching if calls[n].name in ("rename", "replace")]
    around = {n for at in exchanges for n in (at - 1, at, at + 1)}
    rest = sorted({*switching, switching[-1] + 1, *removals[-2:]} - around)
    return sorted({*around, *rest[::step]})


@pytest.mark.skipif(EVERY, reason="every moment is tried")
def test_moments() -> None:
    """However few kills are sampled, those around an exchange are among them."""
    mark = f"/home/{crash_server.MARK}"
    names = ["write", "rename", "fsync", "exchange", "fsync", "rename", "rename", "unlink"]
    calls = [Call(name, f"{mark}{n}", "", name != "fsync") for n, name in enumerate(names)]

    assert {2, 3, 4} <= set(moments(calls, step=100))
    assert set(moments(calls, step=100)) < set(moments(calls))


def fix(kind: Kind) -> tuple[str, ...]:
    """The command that repairs it; a quick look need not find each damaged page."""
    return ("fix", kind.code, "--deep", "--apply", "--yes")


def finish(server: Server, home: Path, kind: Kind) -> Ended:
    """The next command."""
    return server(*fix(kind), "--home", home)


def survive(
    server: Server,
    template: Path,
    home: Path,
    kind: Kind,
    command: Sequence[str],
    cuts: Sequence[Cut] = (),
    allowed: Sequence[int] = (ROWS,),
    step: int = 1,
) -> int:
    """Kill the command everywhere; how often. Every row must be there each time."""
    put(template, home)
    whole = server(*command, "--home", home, cuts=cuts)
    assert whole.code == 0, whole.said
    assert ask(home / kind.name, kind.count) == allowed[0]
    kills = moments(whole.calls, step)
    names = [call.name for call in whole.calls]
    around = {n for at, name in enumerate(names) if name == "exchange" for n in (at, at + 1)}
    sample = budget.sample(kills, 4, lambda n: n if n in around else -1)
    for number, n in enumerate(kills if EVERY else sample):
        put(template, home)
        ended = server(*command, "--home", home, cuts=(Cut(n, "kill"), *cuts))
        assert ended.code == -9, ended.said
        where = f"killed before {whole.calls[n]}"
        seen = write(home, kind, ("killed", "closed")[number % 2])
        assert seen in allowed, f"{where}: a writer saw {seen} rows"
        done = finish(server, home, kind)
        assert "bug in" not in done.said and "Traceback" not in done.said, f"{where}: {done.said}"
        assert ask(home / kind.name, kind.count) == seen, f"{where}: {done.said}"
        assert ask(home / kind.name, kind.find) == 1, f"{where}: {done.said}"
        assert ask(home / kind.name, "SELECT 'ok' = integrity_check FROM pragma_integrity_check")
        assert done.code == 0, f"{where}: {done.said}"
        assert "only in part" not in done.said, f"{where}: {done.said}"
        assert crash_server.leftovers(home) == [], where
        assert all(run["state"] in crash_server.FINAL for run in crash_server.journals(home)), where
    if EVERY:
        sys.stderr.write(f"{' '.join(command[:2])}: killed {len(kills)} times\n")
    return len(kills)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_fix(kind: Kind, server: Server, place: Path, tmp_path: Path) -> None:
    """A fix of a sound database, of a search index, and one that saves rows."""
    template = made(tmp_path / "template", kind)
    step = {"kanban.db": 1}.get(kind.name, 4)  # the others take longer
    assert survive(server, template, place, kind, fix(kind), step=step) > 2


@pytest.mark.sampled
@pytest.mark.parametrize("links", [True, False], ids=["links", "no-links"])
def test_without_exchange(links: bool, server: Server, place: Path, tmp_path: Path) -> None:
    """The same on a file system that cannot exchange names, or has no hard links either."""
    kind = KINDS["schema"]
    template = made(tmp_path / "template", kind)
    bare = [Cut(-1, "no-renameat2")]
    bare += [] if links else [Cut(0, "EPERM", only=("link",), lasting=True)]
    assert survive(server, template, place, kind, fix(kind), cuts=bare, step=2) > 2


def test_an_undo(server: Server, place: Path, tmp_path: Path) -> None:
    """An undo puts a database and its log back."""
    kind = KINDS["schema"]
    home = put(made(tmp_path / "sick", kind), place)
    assert finish(server, home, kind).code == 0
    template = crash_server.clone(home, tmp_path / "template")
    assert survive(server, template, place, kind, ("undo", "--yes")) > 5


@pytest.mark.sampled
@pytest.mark.parametrize("since", [True, False], ids=["log-since", "no-log-since"])
def test_a_restore(since: bool, server: Server, place: Path, tmp_path: Path) -> None:
    """A restore replaces one database and its log by another one and its log."""
    kind = KINDS["schema"]
    home = put(made(tmp_path / "sick", kind), place)
    backup = server("backup", "create", "--json", "--home", home).json["id"]
    (home / "kanban.db-wal").unlink()
    (home / "kanban.db-shm").unlink()
    allowed = [ROWS, 0]
    if since:
        crash_server.logged(
            home / "kanban.db",
            "INSERT INTO tasks (id, title, status, created_at) WITH RECURSIVE n(i) AS (SELECT 1 "
            "UNION ALL SELECT i + 1 FROM n WHERE i < 77) SELECT 'log' || i, 'b', 'todo', i FROM n",
        )
        allowed = [ROWS, 77]
    template = crash_server.clone(home, tmp_path / "template")
    command = ("backup", "restore", backup, "kanban.db", "--yes")
    assert survive(server, template, place, kind, command, allowed=allowed) > 5


def test_a_recovery(server: Server, place: Path, tmp_path: Path) -> None:
    """The recovery of a fix that was killed after the switch is killed in turn."""
    kind = KINDS["schema"]
    sick = made(tmp_path / "sick", kind)
    calls = server(*fix(kind), "--home", put(sick, place)).calls
    last = max(n for n, call in enumerate(calls) if call.name == "exchange")
    put(sick, place)
    assert server(*fix(kind), "--home", place, cuts=(Cut(last + 1, "kill"),)).code == -9
    template = crash_server.clone(place, tmp_path / "template")
    assert survive(server, template, place, kind, ("undo", "--yes")) > 5


def interrupt(
    server: Server,
    template: Path,
    home: Path,
    kind: Kind,
    command: Sequence[str],
    cuts: Sequence[Cut] = (),
    since: int = 0,
) -> int:
    """Let a writer come at every call from number `since` on; how often it could commit a row.

    The writer is kept out by our locks, or its row is there afterwards.
    """
    whole = server(*command, "--home", put(template, home), cuts=cuts)
    told = home.with_name("told")
    words = [sys.executable, "-I", "-S", "-c", WRITER]
    words += [str(home / kind.name), kind.count, kind.insert, "closed", str(told)]
    got_in = 0
    for n in moments(whole.calls):
        if n <= since:
            continue
        put(template, home)
        told.unlink(missing_ok=True)
        writer = Cut(n, f"run:{json.dumps(words)}")
        ended = server(*command, "--home", home, cuts=(*cuts, writer))
        where = f"before {whole.calls[n]}: {ended.said}"
        assert ask(home / kind.name, kind.count) == ROWS, where
        assert ask(home / kind.name, kind.find) == told.exists(), where
        assert crash_server.leftovers(home) == [], where
        assert list(home.glob("*.kept-*")) == [], where
        got_in += told.exists()
    return got_in


def test_a_writer_while_it_is_switched(server: Server, place: Path, tmp_path: Path) -> None:
    """A writer that comes in the middle of a run loses nothing."""
    kind = KINDS["schema"]
    template = made(tmp_path / "template", kind)
    assert interrupt(server, template, place, kind, fix(kind)) > 0


@pytest.mark.sampled
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_a_writer_while_it_is_rolled_back(
    last: bool, server: Server, place: Path, tmp_path: Path
) -> None:
    """A run that fails in the middle of its switch keeps its locks until the old files are back.

    A writer that came in between would write to a log that the roll back replaces.
    """
    kind = KINDS["schema"]
    template = made(tmp_path / "template", kind)
    calls = server(*fix(kind), "--home", put(template, place)).calls
    exchanges = [n for n, call in enumerate(calls) if call.name == "exchange"]
    at = exchanges[-1 if last else 0]
    failing = Cut(at, "EIO")
    ended = server(*fix(kind), "--home", put(template, place), cuts=(failing,))
    assert ended.code == 2 and len(ended.calls) > at + 3, ended.said
    interrupt(server, template, place, kind, fix(kind), cuts=(failing,), since=at)


def test_a_writer_while_it_is_recovered(server: Server, place: Path, tmp_path: Path) -> None:
    """The recovery of a killed run locks the database before it looks whether anybody used it."""
    kind = KINDS["schema"]
    sick = made(tmp_path / "sick", kind)
    calls = server(*fix(kind), "--home", put(sick, place)).calls
    last = max(n for n, call in enumerate(calls) if call.name == "exchange")
    put(sick, place)
    assert server(*fix(kind), "--home", place, cuts=(Cut(last + 1, "kill"),)).code == -9
    template = crash_server.clone(place, tmp_path / "template")
    assert interrupt(server, template, place, kind, ("undo", "--yes")) > 0
