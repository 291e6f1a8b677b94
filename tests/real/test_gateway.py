"""The doctor beside a real gateway that runs."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import gateway_processes
from tests.conftest import RELEASES, need_release
from tests.helpers import support
from tests.helpers.real.gateways import clean_environment, end, gateway, until
from tests.helpers.real.release_homes import KILLED, ROWS, MakeHome, Patient, lose, machine
from tools import real_home, releases

pytestmark = pytest.mark.real
GATEWAYS = ("0.16.0", "0.19.0")
OLD = "0.13.0"

LARGE = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.create_session("large", "cli", model="test-model")
for n in range(150):
    history.append_message("large", "user", f"{n} " + "some words of a long message " * 400)
history.close()
"""
"""Makes the history large enough for a copy of it to take a while."""
WRITER = """
import os
from pathlib import Path
from hermes_state import SessionDB
home = Path(os.environ["HERMES_HOME"])
history = SessionDB(home / "state.db")
n = 40
while not (home.parent / "enough").exists():
    history.append_message("one", "user", f"message number {n}")
    n += 1
    print(n, flush=True)
history.close()
"""
"""Adds messages, a commit each, and says after each how many there are now."""

LATE = """
import os, sys
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
print("open", flush=True)
sys.stdin.readline()
for n in range(40, 60):
    history.append_message("one", "user", f"message number {n}")
history.close()
"""
"""Opens the history, waits for a word, and adds twenty messages."""
SLOW_CHECK = """
import os
from pathlib import Path
from hermes_doctor.api import Finding, Severity, check

@check(id="slow", group="test", codes=["TEST-SLOW"])
def slow(probes):
    '''Was the slow repair made?'''
    if not Path(os.environ["TEST_FOLDER"], "go").exists():
        yield Finding(
            code="TEST-SLOW", severity=Severity.ERROR, title="not yet", subject="state.db",
            fix="slow",
        )
"""
SLOW_FIX = """
import os, sqlite3, time
from pathlib import Path
from hermes_doctor.api import ReplaceDatabase, Safety, fix

@fix(id="slow", codes=["TEST-SLOW"], safety=Safety.SAFE)
def slow(probes, finding):
    '''Rebuild the history, slowly.'''
    path = probes.home / "state.db"
    yield ReplaceDatabase(path, wait, why="to test", expect=probes.databases.header(path).snapshot)

def wait(copy):
    folder = Path(os.environ["TEST_FOLDER"])
    (folder / "staging").touch()
    while not (folder / "go").exists():
        time.sleep(0.02)
    connection = sqlite3.connect(copy)
    connection.execute("CREATE TABLE slow (n)")
    connection.close()
"""


def pids(home: Path) -> list[int]:
    """The gateways that the probes find for a home."""
    return [found.pid for found in Probes(Home(home.resolve())).gateway.running()]


@contextmanager
def beside(home: Path, *commands: list[str]) -> Iterator[None]:
    """Processes that run beside a gateway, with the same home in their environment."""
    with ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen(
                command, env=clean_environment(home), stdin=subprocess.PIPE, cwd=home
            )
            assert process.stdin is not None
            stack.callback(process.stdin.close)
            stack.callback(end, process)
        yield


# -- who is a gateway, and of which home ---------------------------------------------------


@pytest.mark.wide
def test_each_home_has_its_own_gateway(hermes_home: MakeHome) -> None:
    """Two gateways of two releases: each belongs to its home, and a third home has none."""
    old, new, idle = (hermes_home(version) for version in (*GATEWAYS, OLD))
    with gateway(GATEWAYS[0], old) as first, gateway(GATEWAYS[1], new) as second:
        found = [pids(home) for home in (old, new, idle)]

    assert found == [[first.pid], [second.pid], []]
    assert [pids(home) for home in (old, new, idle)] == [[], [], []]


@pytest.mark.wide
@pytest.mark.parametrize("python", ["absolute", "by name"])
def test_gateway_that_a_service_starts(python: str, hermes_home: MakeHome) -> None:
    """`python -m hermes_cli.main gateway run --replace`, its Python with or without a folder."""
    need_release(OLD)
    patient = Patient(OLD, hermes_home("0.19.0"))
    interpreter = releases.python_of("0.19.0")
    first = str(interpreter) if python == "absolute" else interpreter.name
    command = [first, "-m", "hermes_cli.main", "gateway", "run", "--replace"]
    with gateway("0.19.0", patient.home, command=command) as running:
        found = pids(patient.home)
        told = patient.check().json["hermes"]["version"]

    assert found == [running.pid]
    assert told == "0.19.0"


@pytest.mark.wide
@pytest.mark.parametrize("version", GATEWAYS)
def test_version_is_that_of_the_gateway(version: str, hermes_home: MakeHome) -> None:
    """The running gateway tells, else the last one, whatever `hermes` the PATH has; else that."""
    need_release(OLD)
    patient = Patient(OLD, hermes_home(version))
    with gateway(version, patient.home):
        running = patient.check()
    stopped = patient.check()
    for name in ("gateway.pid", "gateway_state.json"):
        (patient.home / name).unlink(missing_ok=True)
    forgotten = patient.check()

    assert running.json["hermes"]["version"] == version
    assert stopped.json["hermes"]["version"] == version
    assert forgotten.json["hermes"]["version"] == OLD


@pytest.mark.wide
def test_gateway_of_a_profile(hermes_home: MakeHome) -> None:
    """`hermes -p NAME gateway run` works on the profile, not on the root that its environ names."""
    root = hermes_home("0.19.0")
    support.put(root / "profiles" / "coder" / "config.yaml", support.CONFIG)
    with gateway("0.19.0", root, profile="coder") as running:
        found = pids(root / "profiles" / "coder"), pids(root)
        used = gateway_processes.homes_in_use()

    assert found == ([running.pid], [])
    assert (root / "profiles" / "coder").resolve() in used


# -- looking, and what must not be done under a gateway ------------------------------------


@pytest.mark.parametrize("version", GATEWAYS)
def test_one_gateway(version: str, hermes_home: MakeHome, tmp_path: Path) -> None:
    """One gateway, looked at in many ways: at work, standing still, and without its files."""
    patient = Patient(version, hermes_home(version))
    home = patient.home
    for name in ("coder", "writer"):
        support.put(home / "profiles" / name / "config.yaml", support.CONFIG)
    backup = patient.doctor("backup", "create", "--json").json["id"]
    with beside(home, *look_alikes(home)):
        assert pids(home) == []
        with gateway(version, home) as running:
            assert pids(home) == [running.pid]
            is_found_among_all_homes(patient, tmp_path / "nowhere")
            goes_on_meanwhile(patient)
            with running.frozen():
                is_not_changed(patient)
                keeps_its_database(patient, running.pid, backup)
                lose(home / "kanban.db", ("tasks", "session_id"))
                # What this release would heal at a start is an error while a gateway runs on it.
                assert patient.finding("KANBAN-SCHEMA")["severity"] == "error"
            # `hermes gateway status` of another home may delete them; it still holds the lock.
            (home / "gateway.lock").unlink()
            (home / "gateway.pid").unlink()
            assert pids(home) == [running.pid]
    with contextlib.suppress(sqlite3.OperationalError):  # it lacks it still, or was healed
        lose(home / "kanban.db", ("tasks", "session_id"))
    assert patient.finding("KANBAN-SCHEMA")["severity"] == "warning"


def look_alikes(home: Path) -> list[list[str]]:
    """Shells, one-liners and watchers that only speak of a gateway."""
    wait = "import sys; sys.stdin.read()"
    hold = f"lock = open({str(home / 'gateway.lock')!r}, 'a'); {wait}"
    return [
        ["bash", "-c", "read line # hermes gateway run"],
        ["bash", "-c", "read line; : python -m hermes_cli.main gateway run"],
        [sys.executable, "-c", wait, "hermes", "gateway", "run"],
        [sys.executable, "-c", hold, "python", "-m", "hermes_cli.main", "gateway", "run"],
        ["timeout", "60", "cat", "-", "hermes", "gateway", "run"],
    ]


def is_found_among_all_homes(patient: Patient, nowhere: Path) -> None:
    """No home is named and none is usual: the one in use is found, with all its profiles."""
    nowhere.mkdir()
    done = support.doctor("check", "--json", "--all-homes", env=machine(nowhere))
    reports = {report["home"]: report for report in done.json["homes"]}
    root = patient.home.resolve()
    wanted = [str(root), *(str(root / "profiles" / name) for name in ("coder", "writer"))]
    assert set(wanted) <= set(reports)
    assert reports[wanted[0]]["hermes"]["version"] == patient.version


def goes_on_meanwhile(patient: Patient) -> None:
    """The gateway goes on meanwhile: no file comes or goes but its own, nothing else changes."""
    own = ("logs/", "cron/", "state/", "gateway", "kanban", "state.db", "response_store.db")
    before = support.contents(patient.home)
    done = [patient.check() for _ in range(3)]
    after = support.contents(patient.home)
    assert [one.code for one in done] == [0, 0, 0]
    changed = {name for name in before.keys() | after if before.get(name) != after.get(name)}
    assert [name for name in sorted(changed) if not name.startswith(own)] == []
    assert {facts[1:3] for facts in after.values()} == {facts[1:3] for facts in before.values()}


def is_not_changed(patient: Patient) -> None:
    """Not a byte, mode, owner or time of any file while the gateway holds its files and locks."""
    before = support.tree(patient.home)
    done = patient.check()
    after = support.tree(patient.home)
    loud = {one["code"] for one in done.json["findings"] if one["severity"] != "info"}
    assert loud - {"GW-UNSUPERVISED"} == {"GW-SUSPENDED"}  # as it is, and nothing else
    assert after == before


def keeps_its_database(patient: Patient, pid: int, backup: str) -> None:
    """Where the gateway must not be stopped nothing is changed; for a fix and for a restore."""
    inside = patient.env | {"_HERMES_GATEWAY": "1"}
    options = ("--yes", "--home", patient.home)
    path = patient.home / "state.db"
    with contextlib.closing(sqlite3.connect(path)) as db:  # else the log has the first page, too
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    begin = path.read_bytes()[:16]
    support.clobber(path)
    before = support.tree(patient.home, times=False, vault=True)
    fixed = support.doctor("fix", "DB-NOTADB", "--apply", *options, env=inside)
    restored = support.doctor("backup", "restore", backup, "state.db", *options, env=inside)
    after = support.tree(patient.home, times=False, vault=True)
    support.clobber(path, begin)

    assert fixed.code == 1
    assert "inside the gateway" in " ".join(fixed.out.split())
    assert restored.code == 2
    assert len(restored.err.splitlines()) == 1
    for one in (fixed.out, restored.err):
        assert f"process {pid}" in " ".join(one.split())
        assert "Traceback" not in one
    assert after == before


# -- programs that open the database during a repair ---------------------------------------


@contextmanager
def staging(patient: Patient, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A repair of state.db that stands still while its copy is made, until `go` is there."""
    for kind, text in (("checks", SLOW_CHECK), ("fixes", SLOW_FIX)):
        support.put(folder / "plugins" / kind / "slow.py", text)
    for place in (folder / "plugins", *(folder / "plugins").iterdir()):
        place.chmod(0o700)
    options = ["--plugins", str(folder / "plugins"), "--home", str(patient.home), "--yes"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", "fix", "TEST-SLOW", "--apply", *options],
        env=os.environ | patient.env | {"TEST_FOLDER": str(folder), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until(lambda: (folder / "staging").exists() or process.poll() is not None, "the staging")
        assert process.poll() is None, process.communicate()[0]
        yield process
    finally:
        (folder / "go").touch()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def test_writer_that_comes_meanwhile(hermes_home: MakeHome, tmp_path: Path) -> None:
    """Hermes opens the database while its new copy is made: not one of its rows gets lost."""
    patient = Patient("0.19.0", hermes_home("0.19.0"))
    with staging(patient, tmp_path) as repair:
        writer = subprocess.Popen(
            [str(releases.python_of("0.19.0")), "-I", "-c", LATE],
            env=clean_environment(patient.home),
            cwd=patient.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert writer.stdin is not None
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"open\n"
            (tmp_path / "go").touch()
            repair.wait(30)
            writer.communicate(b"write\n", 30)
        finally:
            end(writer)

    assert writer.returncode == 0
    assert patient.ask(ROWS).splitlines() == [f"message number {n}" for n in range(60)]


@pytest.mark.wide
def test_gateway_that_starts_meanwhile(hermes_home: MakeHome, tmp_path: Path) -> None:
    """A gateway that comes up while the copy is made must not be left with a deleted database."""
    patient = Patient("0.19.0", hermes_home("0.19.0"))
    with staging(patient, tmp_path) as repair, gateway("0.19.0", patient.home) as running:
        (tmp_path / "go").touch()
        repair.wait(30)
        held = {
            fd.stat().st_ino
            for fd in Path(f"/proc/{running.pid}/fd").iterdir()
            if os.readlink(fd).removesuffix(" (deleted)").endswith("/state.db")
        }
        there = (patient.home / "state.db").stat().st_ino

    assert held == {there}


# -- backups -------------------------------------------------------------------------------


@pytest.mark.disk  # in memory the writer never waits
@pytest.mark.parametrize("version", GATEWAYS)
def test_backup_under_a_writer(version: str, hermes_home: MakeHome, tmp_path: Path) -> None:
    """A writer never fails, and every row that it had committed before is in the sound copy."""
    patient = Patient(version, hermes_home(version))
    home = patient.home
    real_home.run(version, home, LARGE)
    said = tmp_path / "said"

    def committed() -> int:
        return int(said.read_text().rpartition("\n")[0].rpartition("\n")[2] or 0)

    with gateway(version, home), said.open("wb") as output:
        writer = subprocess.Popen(
            [str(releases.python_of(version)), "-I", "-c", WRITER],
            env=clean_environment(home),
            cwd=home,
            stdout=output,
        )
        try:
            until(lambda: committed() > 60, "the writer")
            before = committed()
            made = patient.doctor("backup", "create", "--json")
            assert committed() > before  # it went on all the while
            assert writer.poll() is None
            (tmp_path / "enough").touch()
            assert writer.wait(30) == 0
        finally:
            end(writer)
    every = committed()
    assert made.code == 0, made
    assert patient.ask(ROWS).splitlines() == [f"message number {n}" for n in range(every)]

    folder = Path(made.json["folder"])
    entries = json.loads((folder / "manifest.json").read_bytes())["entries"]
    (entry,) = [one for one in entries if one["path"] == "state.db"]
    assert (entry["method"], entry["integrity"]) == ("sqlite", "ok")
    assert patient.doctor("backup", "verify", made.json["id"]).code == 0

    restored = patient.doctor("backup", "restore", made.json["id"], "--yes")
    assert restored.code == 0, restored
    rows = patient.ask(ROWS).splitlines()
    assert before <= len(rows) <= every
    assert rows == [f"message number {n}" for n in range(len(rows))]
    assert patient.check("--only", "databases").code == 0


@pytest.mark.parametrize("version", RELEASES)
def test_backup_at_rest(version: str, hermes_home: MakeHome) -> None:
    """Nobody has it open: database, log and index are copied byte for byte and left alone."""
    patient = Patient(version, hermes_home(version))
    with pytest.raises(RuntimeError):
        real_home.run(version, patient.home, KILLED)
    before = support.contents(patient.home)

    made = patient.doctor("backup", "create", "--json")

    assert made.code == 0, made
    assert made.json["hermes"] == version
    for name in ("state.db", "state.db-wal", "state.db-shm", "kanban.db"):
        copy = Path(made.json["folder"]) / "files" / name
        assert copy.read_bytes() == (patient.home / name).read_bytes()
    assert support.contents(patient.home) == before
