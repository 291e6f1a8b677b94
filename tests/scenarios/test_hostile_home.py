"""Homes as an accident or an enemy leaves them: looking ends soon, says so, and changes nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import sqlite3
import stat
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.system import limits
from hermes_doctor.diagnosis.examination import report as reports
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.render import document as documents, repair, report as render_report
from hermes_doctor.repair.transaction import plan, recovery
from tests.helpers import budget, support
from tests.helpers.support import Done
from tests.sqlite.test_reader import hot_journal

NOBODY = 65534
SECONDS = 12.0
"""Far more than the tool's own limits add up to, far less than a hang; of an idle machine."""

READ = (
    "config.yaml",
    ".env",
    "state.db",
    "kanban.db",
    "kanban/boards/one/kanban.db",
    "cron/executions.db",
    "response_store.db",
    "backups/doctor/runs/20261115-030000-0001/run.json",
)
"""The files that a check reads: one that cannot be read leaves a question open."""

SEEN = (
    "auth.json",
    "webhook_subscriptions.json",
    "state.db-wal",
    "state.db-shm",
    "kanban.db-wal",
    "kanban.db-shm",
    "kanban.db-journal",
    "gateway.lock",
    "gateway.pid",
    "gateway_state.json",
    "config.yaml.bak",
    "state-snapshots/one/config.yaml",
    "state-snapshots/one/.env",
    "backups/old.zip",
    "backups/doctor/20261115-030000-0002/manifest.json",
    "backups/doctor/20261115-030000-0002/files/config.yaml",
    "hermes-agent/pyproject.toml",
    "hermes-agent/venv/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info",
)
"""The files that are looked at where they are there; without them there is still an answer."""

FOLDERS = (
    "kanban",
    "kanban/boards",
    "kanban/boards/one",
    "cron",
    "gateway",
    "state-snapshots",
    "backups",
    "backups/doctor",
    "backups/doctor/runs",
    "backups/doctor/runs/20261115-030000-0001",
    "logs",
    "profiles",
    "hermes-agent",
    "hermes-agent/venv/lib",
)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _circle(path: Path) -> None:
    other = path.with_name(path.name + ".other")
    path.symlink_to(other)
    other.symlink_to(path)


def _dangling(path: Path) -> None:
    path.symlink_to("/no/such/place")


def _folder(path: Path) -> None:
    (path / "inner").mkdir(parents=True)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")  # the path itself may be too long
        finally:
            os.close(folder)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _null(path: Path) -> None:
    path.symlink_to("/dev/null")


def _process(path: Path) -> None:
    path.symlink_to("/proc/self/mem")


def _gigantic(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS: dict[str, Callable[[Path], None]] = {
    "a loop": _loop,
    "a circle": _circle,
    "dangling": _dangling,
    "a folder": _folder,
    "a fifo": _fifo,
    "a socket": _socket,
    "a device": _device,
    "null": _null,
    "memory": _process,
    "gigantic": _gigantic,
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed to others."""
    with support.reachable_folder() as folder:
        yield folder


def full(home: Path) -> Path:
    """A home without a fault that has every file that the tool reads."""
    support.healthy(home)
    support.put(home / "config.yaml.bak", support.CONFIG + "# older\n")
    support.put(home / "state-snapshots" / "one" / "config.yaml", support.CONFIG + "# oldest\n")
    support.put(home / "state-snapshots" / "one" / ".env", support.ENV)
    support.board(home / "kanban" / "boards" / "one" / "kanban.db")
    for name in ("response_store.db", "cron/executions.db"):
        support.remembered(home / name, _empty, name)
    support.put(home / "gateway.lock", "{}")
    (home / "backups").mkdir(mode=0o700)
    with zipfile.ZipFile(home / "backups" / "old.zip", "w") as archive:
        archive.writestr("config.yaml", support.CONFIG + "# zipped\n")
    (home / "backups" / "old.zip").chmod(0o600)
    journal(home, "20261115-030000-0001", state="done")
    return home


def _empty(path: Path, name: str) -> None:
    support.made(name, path).close()


def journal(home: Path, name: str, **said: object) -> Path:
    """A receipt of a run."""
    values: dict[str, object] = {
        "schema": "hermes-doctor/run/1",
        "id": name,
        "kind": "fix",
        "home": str(home),
        "vault": str(home / "backups" / "doctor"),
        "started_at": "2026-11-15T03:00:00+00:00",
        "state": "committing",
        "items": [],
        "paths": [],
    }
    path = home / "backups" / "doctor" / "runs" / name / "run.json"
    return support.put(path, json.dumps(values | said))


def break_config(home: Path) -> None:
    """A fault whose finding needs all the places where copies lie."""
    support.put(home / "config.yaml", "model:\n  provider: [\n")


def facts(home: Path) -> dict[str, tuple[Any, ...]]:
    """Every path with kind, size, mode and times, by lstat alone: some cannot be read, or end."""
    found = {}
    for base, folders, files in os.walk(os.fsencode(home)):
        for name in (b".", *folders, *files):
            path = os.path.join(base, name)
            try:
                st = os.lstat(path)
            except PermissionError:  # in a folder that may be listed and not entered
                continue
            small = stat.S_ISREG(st.st_mode) and st.st_size < 1 << 20
            small = small and os.access(path, os.R_OK)
            with open(path, "rb") if small else contextlib.nullcontext() as file:
                content = hashlib.sha256(file.read()).digest() if file else None
            found[os.fsdecode(path)] = (
                st.st_mode,
                st.st_uid,
                st.st_size,
                st.st_mtime_ns,
                st.st_ctime_ns,
                content,
            )
    return found


def look(home: Path, run: Callable[..., Done] = support.doctor) -> dict[str, Any]:
    """Check and plan: soon, without a traceback, without a write; the document of the check."""
    before = facts(home)
    document: dict[str, Any] = {}
    every = (("check", "--json"), ("check",), ("fix", "--json"), ("fix",))
    both = run is not support.doctor or not budget.everything
    for args in (every[0], every[3]) if both else every:
        started = time.monotonic()
        done = run(*args, "--home", home, timeout=240)
        seconds = time.monotonic() - started
        assert seconds < limits.stretch(SECONDS), f"{args} took {seconds:.1f} s"
        assert "Traceback" not in done.err, done.err
        assert "bug in hermes-doctor" not in done.out + done.err, done.out[-600:] + done.err
        assert done.code in (0, 1), f"{args}: {done.out[-300:]}{done.err}"
        assert "\x1b" not in done.out
        if "--json" in args:
            assert done.json["schema"] == "hermes-doctor/report/1"
        document = document or done.json
        assert facts(home) == before, f"{args} changed something"
    return answered(document)


def answered(document: dict[str, Any]) -> dict[str, Any]:
    """Insist that no check crashed, and that each gives a reason for what it could not say."""
    for check in document["checks"]:
        assert check["status"] != "crashed", check
        assert check["reason"] or check["status"] in ("ok", "problem"), check
    return document


PLUGINS = load.load()


def look_here(home: Path) -> dict[str, Any]:
    """The same without a process of its own: examine, plan, and render in every way."""
    started = time.monotonic()
    probes = Probes(Home(home))
    report = reports.report(probes, PLUGINS, PLUGINS.checks)
    planned = plan.plan(probes, PLUGINS, report.findings)
    recovery.interrupted_run_messages(Home(home), "")
    lines = [*render_report.lines(report), *repair.plan_lines(planned, Path("/h"), "")]
    for line in lines:
        assert not any(ord(char) < 32 for char in line.text), line.text
        line.text.encode("utf-8")
    json.loads(
        documents.dump({"plan": repair.plan_document(planned, lambda one: one.finding.code)})
    )
    assert time.monotonic() - started < limits.stretch(SECONDS)
    made: dict[str, Any] = json.loads(documents.dump(documents.of_report(report)))
    return answered(made)


def unsettled(document: dict[str, Any]) -> list[str]:
    """The checks that did not say that all is well."""
    return [check["id"] for check in document["checks"] if check["status"] not in ("ok", "skipped")]


def replace(home: Path, name: str, kind: str) -> Path:
    """Put something else in a file's or a folder's place."""
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    return path


@pytest.mark.sampled(one_of=3)
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_none(place: Path, name: str, kind: str) -> None:
    """Something else in the place of a file that is read: an open question or a finding, not ok."""
    home = full(place / "home")
    replace(home, name, kind)
    before = facts(home)
    document = look_here(home)
    assert facts(home) == before
    assert unsettled(document), "everything is said to be in order"


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_none(place: Path, kind: str) -> None:
    """The same in the place of all of them at once, through the real command."""
    home = full(place / "home")
    for name in READ:
        replace(home, name, kind)
    document = look(home)
    assert unsettled(document), "everything is said to be in order"


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_other_files_that_are_none(place: Path, kind: str) -> None:
    """Something else in the place of all the files that only help: the answers are still there."""
    home = full(place / "home")
    for name in SEEN:
        replace(home, name, kind)
    break_config(home)
    document = look(home)
    assert "CFG-YAML" in [finding["code"] for finding in document["findings"]]


@pytest.mark.sampled(one_of=5)
@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("kind", ["a file", *KINDS])
def test_a_folder_that_is_none(place: Path, name: str, kind: str) -> None:
    """Something else in the place of a folder never hides a fault that lies elsewhere."""
    home = full(place / "home")
    break_config(home)
    if kind == "a file":
        shutil.rmtree(home / name, ignore_errors=True)
        support.put(home / name, "a file")
    else:
        replace(home, name, kind)
    before = facts(home)
    document = look_here(home)
    assert facts(home) == before
    assert "CFG-YAML" in [finding["code"] for finding in document["findings"]]


# -- another user --------------------------------------------------------------------------


def as_nobody(*args: str | Path, timeout: float = 60) -> Done:
    """The command, run by a user without any rights."""
    if os.geteuid() != 0:
        return support.doctor(*args, timeout=timeout)
    return support.doctor(*args, env={"HOME": "/nonexistent"}, user=NOBODY, timeout=timeout)


def given(home: Path) -> Path:
    """The home, owned by the user without rights."""
    if os.geteuid() == 0:
        for base, folders, files in os.walk(home):
            for name in (".", *folders, *files):
                os.chown(os.path.join(base, name), NOBODY, NOBODY, follow_symlinks=False)
    return home


def test_another_user_sees_a_healthy_home(place: Path) -> None:
    """The harness works: a user without rights examines his own home and all is well.

    But for what concerns a gateway: into one of root's, which another test may be running just
    now, he cannot look, so that it might be his.
    """
    document = look(given(full(place / "home")), as_nobody)
    unsure = unsettled(document)
    reasons = {check["id"]: check["reason"] for check in document["checks"]}
    assert {id for id in unsure if UNSEEN not in (reasons[id] or "")} == set()


@pytest.mark.sampled
@pytest.mark.parametrize("name", READ)
def test_a_file_that_may_not_be_read(place: Path, name: str) -> None:
    """An unreadable file is an open question, with the reason."""
    home = given(full(place / "home"))
    (home / name).chmod(0)
    document = look(home, as_nobody)
    assert unsettled(document)
    reasons = " ".join(check["reason"] or "" for check in document["checks"])
    assert "permission denied" in reasons or "cannot be read" in reasons


UNSEEN = "you may not see which home it uses"
_CLOSED = [
    *((name, 0) for name in FOLDERS if "hermes-agent" not in name),
    *((name, 0o400) for name in ("kanban/boards", "state-snapshots", "backups/doctor/runs")),
    *((name, 0o100) for name in ("kanban/boards", "state-snapshots", "backups/doctor/runs")),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "mode"), _CLOSED)
def test_a_folder_that_may_not_be_entered(place: Path, name: str, mode: int) -> None:
    """A closed folder never hides a fault that lies elsewhere, and is never said to be in order."""
    home = full(place / "home")
    break_config(home)
    support.clobber(home / "state.db")
    (home / name).mkdir(parents=True, exist_ok=True)
    given(home)
    (home / name).chmod(mode)
    document = look(home, as_nobody)
    codes = {finding["code"] for finding in document["findings"]}
    assert {"CFG-YAML", "DB-NOTADB"} <= codes
    if name in ("kanban/boards/one", "cron", "backups/doctor/runs", "kanban/boards"):
        assert any(check["reason"] for check in document["checks"])


def test_a_home_that_belongs_to_another(place: Path) -> None:
    """A home of somebody else with closed files: open questions, nothing written."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a home to another user")
    home = full(place / "home")
    home.chmod(0o755)
    document = look(home, as_nobody)
    assert unsettled(document)
    assert document["summary"]["status"] != "ok"


def test_a_home_that_may_not_be_written(place: Path) -> None:
    """A read-only home is examined like any other; a repair is refused in one line."""
    home = full(place / "home")
    break_config(home)
    given(home)
    for path in (home, home / "backups", home / "backups" / "doctor"):
        path.chmod(0o500)
    look(home, as_nobody)
    before = facts(home)
    for args in (("fix", "--apply", "--yes"), ("backup", "create"), ("undo", "--yes")):
        done = as_nobody(*args, "--home", home)
        assert done.code == 2, done.out
        assert done.err.startswith("hermes-doctor: ")
        assert "is a bug" not in done.err
        assert facts(home) == before


def test_a_user_without_a_name_or_a_home(place: Path) -> None:
    """A container runs under a number that nobody knows, without HOME: that is no obstacle."""
    home = full(place / "home")
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for base, folders, files in os.walk(home):
        for name in (".", *folders, *files):
            os.chown(os.path.join(base, name), 54321, 54321)
    for args in (("check",), ("check", "--json"), ("fix",), ("backup", "list")):
        done = support.doctor(*args, "--home", home, env={"HOME": None}, user=54321)
        assert done.code == 0 or UNSEEN in done.out, done.out[-300:] + done.err


# -- names, numbers, times -----------------------------------------------------------------

NAMES = (
    b"new\nline",
    b"esc\x1b[31mred\x1b]0;title\x07",
    b"\xff\xfe\x80",
    "\u202egnp".encode(),
    b" ",
)


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_that_steer_a_terminal(place: Path, name: bytes) -> None:
    """Odd names of boards, runs, copies and zips are shown harmlessly and are valid JSON."""
    home = full(place / "home")
    root = os.fsencode(home)
    for folder in (b"kanban/boards", b"state-snapshots", b"backups/doctor", b"backups/doctor/runs"):
        os.makedirs(os.path.join(root, folder, name))
    odd = Path(os.fsdecode(os.path.join(root, b"kanban/boards", name, b"kanban.db")))
    shutil.copy(support.board(place / "made.db", without=(("tasks", "session_id"),)), odd)
    support.clobber(Path(shutil.copy(odd, home / "projects.db")))
    Path(os.fsdecode(os.path.join(root, b"backups", name + b".zip"))).write_bytes(b"PK")
    Path(os.fsdecode(os.path.join(root, b"config.yaml." + name))).write_text(support.CONFIG + "#\n")
    run = Path(os.fsdecode(os.path.join(root, b"backups/doctor/runs", name, b"run.json")))
    run.write_text('{"state": "\\u001b[31m\\ud800\\u202e", "started_at": "\\ud800"}')
    break_config(home)
    document = look(home)
    codes = {finding["code"] for finding in document["findings"]}
    assert {"CFG-YAML", "KANBAN-SCHEMA", "PERM-SECRETS"} <= codes
    ended = {check["id"]: check["status"] for check in document["checks"]}
    assert ended["unfinished-runs"] == "unknown"


def test_thousands_of_entries(place: Path) -> None:
    """Snapshots, runs, zips and profiles by the thousand: still an answer, still soon."""
    home = full(place / "home")
    break_config(home)
    for number in range(budget.tries(300, 1000)):
        if number % 5 == 0:  # each is looked for in each snapshot
            (home / "kanban" / "boards" / f"b{number}").mkdir()
        (home / "state-snapshots" / f"s{number}").mkdir()
        (home / "backups" / f"z{number}.zip").write_bytes(b"PK\x05\x06" + b"\0" * 18)
        (home / "backups" / f"z{number}.zip").chmod(0o600)
        (home / "backups" / "doctor" / "runs" / f"r{number}").mkdir()
        (home / f"config.yaml.{number}").write_text("a: 1\n")
        (home / "profiles" / f"p{number}").mkdir(parents=True)
    document = look(home)
    assert "CFG-YAML" in [finding["code"] for finding in document["findings"]]


def test_more_entries_than_are_read(place: Path) -> None:
    """A home with too many names to list them still tells that its configuration is broken."""
    home = full(place / "home")
    break_config(home)
    for number in range(20_050):
        (home / f"n{number}").touch()
    document = look_here(home)
    assert "CFG-YAML" in [finding["code"] for finding in document["findings"]]


@pytest.mark.sampled
@pytest.mark.parametrize("seconds", [-(2**31), -1, 2**33, 2**40, 2**55])
def test_times_out_of_range(place: Path, seconds: int) -> None:
    """A file from before 1970 or from the year 36812 is a file like any other."""
    shared = Path("/dev/shm")  # a file system that keeps such times, where there is one
    base = Path(tempfile.mkdtemp(dir=shared)) if os.access(shared, os.W_OK) else place / "inner"
    try:
        home = full(base / "home")
        break_config(home)
        for path in home.rglob("*"):
            with contextlib.suppress(OSError, OverflowError):
                os.utime(path, (seconds, seconds))
        document = look(home)
        assert "CFG-YAML" in [finding["code"] for finding in document["findings"]]
    finally:
        if base.is_relative_to(shared):
            shutil.rmtree(base)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "started",
    ["0001-01-01T00:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "5", "", 7],
)
def test_receipts_from_out_of_time(place: Path, started: object) -> None:
    """A cut-off run whose time is nonsense is still told of."""
    home = full(place / "home")
    journal(home, "20261115-030000-0009", started_at=started)
    document = look(home)
    assert [finding["code"] for finding in document["findings"]] == ["RUN-CUTOFF"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", ["with spaces", "ünïcödé-家", "quote'\"$(x)", "-dash", "new\nline"]
)
def test_where_a_home_lies(place: Path, name: str) -> None:
    """A home with an odd path is examined, repaired and given back like any other."""
    home = full(place / name / "home")
    break_config(home)
    look_here(home)
    before = support.contents(home)
    for args in (("backup", "create"), ("fix", "--apply", "--yes"), ("undo", "--yes")):
        done = support.doctor(*args, "--home", home)
        assert done.code == 0, done.out + done.err
    assert support.contents(home) == before


def test_a_home_behind_a_symlink(place: Path) -> None:
    """The home may be a symlink, to a folder or to another symlink."""
    home = full(place / "real")
    break_config(home)
    (place / "one").symlink_to("real")
    (place / "two").symlink_to(place / "one")
    look_here(place / "two")
    done = support.doctor("fix", "--apply", "--yes", "--home", place / "two")
    assert done.code == 0, done.out + done.err
    assert (place / "two").is_symlink()
    assert support.doctor("undo", "--yes", "--home", place / "one").code == 0


@pytest.mark.parametrize("kind", [*KINDS, "nothing", "a closed folder", "an empty folder"])
def test_no_home_at_all(place: Path, kind: str) -> None:
    """A home that is none: one clear line, exit 2, and a valid document."""
    home = place / "home"
    if kind in KINDS and kind != "a folder":
        KINDS[kind](home)
    elif kind == "a closed folder":
        support.healthy(home)
        given(home).chmod(0)
    elif kind != "nothing":
        home.mkdir()
    run = as_nobody if kind == "a closed folder" else support.doctor
    for args in (("check",), ("fix", "--apply"), ("backup", "list")):
        done = run(*args, "--home", home)
        assert done.code == 2
        assert done.out == ""
        assert len(done.err.splitlines()) == 1, done.err
        assert "is a bug" not in done.err
        told = run(*args, "--json", "--home", home)
        assert told.code == 2
        assert told.json["error"]["exit_code"] == 2


def test_all_homes_with_odd_profiles(place: Path) -> None:
    """Profiles that are loops, pipes, files or closed: the others are examined."""
    home = full(place / "home")
    for number, kind in enumerate(KINDS):
        (home / "profiles").mkdir(exist_ok=True)
        KINDS[kind](home / "profiles" / f"p{number}")
    support.put(home / "profiles" / "good" / "config.yaml", support.CONFIG)
    given(home)
    (home / "profiles" / "closed").mkdir(mode=0)
    for mode in (0o700, 0o600, 0o100, 0o000):
        (home / "profiles").chmod(mode)
        done = as_nobody("check", "--all-homes", "--json", "--home", home)
        assert done.code in (0, 1), done.out
        assert str(home) in [one["home"] for one in done.json["homes"]]


# -- content that takes for ever -----------------------------------------------------------


def _merge_bomb(levels: int = 12, width: int = 10) -> str:
    """A few lines that YAML's merge key blows up to width to the power of levels."""
    lines = [
        f"l{level}: &l{level} {{<<: [{', '.join([f'*l{level - 1}'] * width)}]}}"
        for level in range(1, levels)
    ]
    return "\n".join(["l0: &l0 {a: 1}", *lines]) + "\n"


def _limited() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["config.yaml", "config.yaml.bak"])
def test_a_merge_bomb(place: Path, name: str) -> None:
    """A configuration that explodes when it is built takes neither the time nor the memory."""
    home = full(place / "home")
    break_config(home)
    support.put(home / name, _merge_bomb())
    started = time.monotonic()
    done = support.spawned("check", "--json", "--home", home, preexec_fn=_limited)
    assert time.monotonic() - started < limits.stretch(SECONDS)
    assert unsettled(answered(done.json)) == ["config-yaml"]
    assert done.codes == ["CFG-YAML"], done.out


@pytest.mark.parametrize("lines", [2_000, pytest.param(20_000, marks=pytest.mark.wide)])
def test_a_diff_of_two_long_files(place: Path, lines: int) -> None:
    """The plan shows the difference of two files that have everything in another order, soon."""
    home = full(place / "home")
    dice = random.Random(1)
    keys = [f"k{number}: 1" for number in range(lines)]
    dice.shuffle(keys)
    support.put(home / "config.yaml.bak", "\n".join(keys) + "\n")
    dice.shuffle(keys)
    support.put(home / "config.yaml", "\n".join(keys) + "\n\tx: [\n")
    started = time.monotonic()
    done = support.doctor("fix", "--home", home, timeout=240)
    assert time.monotonic() - started < limits.stretch(SECONDS)
    assert done.code == 0


def test_a_gigantic_zip(place: Path) -> None:
    """A zip whose list of contents claims to fill a terabyte is not read into memory."""
    home = full(place / "home")
    break_config(home)
    end = bytes.fromhex("504b0506000000000100010000000000000000000000")
    huge = (1 << 32) - 2
    path = home / "backups" / "huge.zip"
    with path.open("wb") as file:
        file.truncate(huge)
        file.seek(huge)
        file.write(end[:12] + huge.to_bytes(4, "little") + b"\0" * 4 + b"\0\0")
    path.chmod(0o600)
    done = support.spawned("check", "--json", "--home", home, preexec_fn=_limited, timeout=240)
    assert done.code == 1, done.out[-500:] + done.err
    assert "CFG-YAML" in done.codes


# -- what a crash left, what an enemy wrote ------------------------------------------------


def test_a_repair_does_not_lose_a_hot_journal(place: Path) -> None:
    """Half a transaction is in the database: repairing it must not make that half permanent."""
    home = full(place / "home")
    path = home / "kanban.db"
    path.unlink()
    support.board(path, without=(("tasks", "session_id"),))
    before = path.read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM tasks")
    hot_journal(path, before).chmod(0o600)
    done = support.doctor("fix", "--apply", "--yes", "--home", home)
    assert done.code in (0, 1), done.err
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT id FROM tasks").fetchall() == [("t1",)], done.out


def _forged(home: Path, id: str, path: str, data: bytes) -> Path:
    """A backup that anybody can make: the seal is a hash, not a signature."""
    folder = home / "backups" / "doctor" / id
    name = f"outside{path}" if path.startswith("/") else f"files/{path}"
    support.put(folder / name, data)
    entry = {
        "path": path,
        "kind": "file",
        "size": len(data),
        "mode": 0o755,
        "uid": 0,
        "gid": 0,
        "mtime_ns": 0,
        "sha256": hashlib.sha256(data).hexdigest(),
        "target": None,
        "xattrs": {},
        "method": "bytes",
        "integrity": None,
    }
    document: dict[str, Any] = {
        "schema": "hermes-doctor/backup/1",
        "id": id,
        "created_at": "2026-11-15T03:00:00+00:00",
        "home": str(home),
        "reason": "forged",
        "tool": "0",
        "hermes": None,
        "entries": [entry],
    }
    body = json.dumps(document, sort_keys=True, indent=1).encode() + b"\n"
    document["seal"] = hashlib.sha256(body).hexdigest()
    text = json.dumps(document, sort_keys=True, indent=1) + "\n"
    support.put(folder / "manifest.json", text)
    return folder


ID = "20261115-030000-0666"


@pytest.mark.parametrize("way", ["../victim", "cron/../../victim", "absolute", "through a link"])
@pytest.mark.parametrize("there", [True, False])
def test_a_forged_backup_reaches_nothing_outside(place: Path, way: str, there: bool) -> None:
    """The home's owner cannot make root write outside the home by a backup of his own making."""
    if os.geteuid() != 0:
        pytest.skip("only root has something to lose here")
    home, victim = full(place / "home"), place / "victim"
    name = str(victim) if way == "absolute" else way
    if way == "through a link":
        shutil.rmtree(home / "cron")
        (home / "cron").symlink_to(place)
        name = "cron/victim"
    if there:
        victim.write_text("root's own")
    _forged(home, ID, name, b"the enemy's")
    given(home)
    done = support.doctor("backup", "restore", ID, "--yes", "--home", home)
    assert "is a bug" not in done.err, done.err
    assert (victim.read_text() if there else victim.exists()) == ("root's own" if there else False)


@pytest.mark.parametrize("way", ["../victim", "absolute"])
def test_a_forged_receipt_reaches_nothing_outside(place: Path, way: str) -> None:
    """Nor by the receipt of a run that seems to have been cut off half-way."""
    if os.geteuid() != 0:
        pytest.skip("only root has something to lose here")
    home, victim = full(place / "home"), place / "victim"
    victim.write_text("root's own")
    st = victim.stat()
    name = str(victim) if way == "absolute" else way
    _forged(home, ID, name, b"the enemy's")
    after = {
        "kind": "file",
        "sha256": hashlib.sha256(b"root's own").hexdigest(),
        "mode": stat.S_IMODE(st.st_mode),
        "uid": st.st_uid,
        "gid": st.st_gid,
    }
    before = after | {"sha256": hashlib.sha256(b"the enemy's").hexdigest()}
    record = {"path": name, "before": before, "after": after}
    journal(home, ID, state="committing", paths=[record])
    given(home)
    done = support.doctor("fix", "--apply", "--yes", "--home", home)
    assert "is a bug" not in done.err, done.err
    assert victim.read_text() == "root's own"


def test_a_forged_receipt_removes_and_makes_nothing_outside(place: Path) -> None:
    """A receipt's id and vault are names, not paths: nothing outside is removed or made."""
    home, victim = full(place / "home"), place / "victim"
    support.put(victim / "run.partial" / "precious", "root's own")
    journal(home, "20261115-030000-0007", state="staging", vault=str(victim), id="run")
    journal(home, "20261115-030000-0008", state="staging", id="../../../../victim/made")
    done = support.doctor("fix", "--apply", "--yes", "--home", home)
    assert "is a bug" not in done.err, done.err
    assert (victim / "run.partial" / "precious").exists()
    assert not (victim / "made").exists()


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["backups", "backups/doctor", "backups/doctor/runs"])
def test_a_vault_that_leads_elsewhere(place: Path, name: str) -> None:
    """Root does not follow a user's symlink to make folders in places of others."""
    if os.geteuid() != 0:
        pytest.skip("only root has something to lose here")
    home, victim = full(place / "home"), place / "victim"
    victim.mkdir(mode=0o755)
    break_config(home)
    shutil.rmtree(home / name)
    (home / name).symlink_to(victim)
    given(home)
    for args in (("fix", "--apply", "--yes"), ("backup", "create")):
        done = support.doctor(*args, "--home", home)
        assert "is a bug" not in done.err
    assert list(victim.iterdir()) == []


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["a loop", "dangling", "a folder", "a fifo", "null"])
def test_one_bad_manifest_hides_no_backup(place: Path, kind: str) -> None:
    """A backup that cannot be read is listed as damaged, beside those that can."""
    home = support.healthy(place / "home")
    assert support.doctor("backup", "create", "--home", home).code == 0
    (good,) = (path.name for path in home.glob("backups/doctor/2*"))
    replace(home, f"backups/doctor/{ID}/manifest.json", kind)
    listed = support.doctor("backup", "list", "--json", "--home", home)
    assert listed.code == 0, listed.out
    assert {one["id"] for one in listed.json["backups"]} == {good, ID}
    verified = support.doctor("backup", "verify", "--all", "--json", "--home", home)
    assert verified.code == 1
    assert {one["id"]: one["whole"] for one in verified.json["backups"]} == {good: True, ID: False}
    assert support.doctor("backup", "prune", "--yes", "--home", home).code == 0
    assert (home / "backups" / "doctor" / good).exists()


def test_a_database_that_is_a_link_to_the_root_folder(home: Path) -> None:
    """It cannot be checked, and no check crashes over it."""
    (home / "kanban.db").unlink()
    (home / "kanban.db").symlink_to("/")

    done = support.check(home)

    assert [one for one in done.json["checks"] if one["status"] == "crashed"] == []
