"""Whole runs from the command line: what they keep, when they refuse, and how they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system.files import snapshot
from tests.helpers import crash_server, support
from tests.helpers.crash_server import Cut, Server
from tests.helpers.warm_server import ROOT

pytestmark = pytest.mark.disk
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="a home of another user needs root")
BROKEN = support.CONFIG.replace("  default:", "\tdefault:")


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving()


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    """A home with a fault of every kind, under a path with hard things in it."""
    return crash_server.sick(tmp_path / "ein Ordner mit 'Ünïcode' 家 $HOME" / "home")


def fixed(server: Server, home: Path) -> str:
    """Fix everything; the run's id."""
    done = server("fix", "--apply", "--yes", "--json", "--home", home)
    assert done.code == 0, done.said
    (run,) = done.json["repair"]["runs"]
    return str(run["run"])


# -- what is kept --------------------------------------------------------------------------


def test_there_and_back(server: Server, sick: Path) -> None:
    """A fix and its undo leave every byte, mode, owner and time as they were."""
    before, times = crash_server.state(sick), crash_server.modified(sick)
    fixed(server, sick)
    assert server("check", "--json", "--home", sick).json["findings"] == []
    assert crash_server.leftovers(sick) == []
    assert crash_server.wide(sick / "backups" / "doctor") == []
    undone = server("undo", "--yes", "--home", sick)
    assert undone.code == 0, undone.said
    assert crash_server.state(sick) == before
    assert crash_server.modified(sick) == times
    assert crash_server.wide(sick / "backups" / "doctor") == []


def test_applying_twice_is_applying_once(server: Server, sick: Path) -> None:
    """The second fix finds nothing to do, writes nothing and makes no run."""
    fixed(server, sick)
    after = crash_server.state(sick, times=True, vault=True)
    again = server("fix", "--apply", "--yes", "--home", sick)
    assert again.code == 0 and "nothing to fix" in again.said
    assert not any(call.effect for call in again.calls)
    assert crash_server.state(sick, times=True, vault=True) == after


def test_the_plan_writes_nothing(server: Server, sick: Path) -> None:
    """`fix` without --apply changes nothing at all."""
    before = crash_server.state(sick, times=True, vault=True)
    shown = server("fix", "--home", sick)
    assert shown.code == 0 and shown.calls == ()
    assert crash_server.state(sick, times=True, vault=True) == before


def test_a_symlink_stays_one(server: Server, tmp_path: Path) -> None:
    """config.yaml that leads elsewhere: the link stays, what it leads to is replaced."""
    home = crash_server.sick(tmp_path / "home")
    real = support.put(tmp_path / "else where" / "real.yaml", BROKEN, 0o640)
    (home / "config.yaml").unlink()
    (home / "config.yaml").symlink_to(Path("..") / "else where" / "real.yaml")
    link = snapshot(home / "config.yaml")
    fixed(server, home)
    assert os.readlink(home / "config.yaml") == "../else where/real.yaml"
    assert snapshot(home / "config.yaml") == link
    assert real.read_text() == support.CONFIG and not real.is_symlink()
    assert real.stat().st_mode & 0o7777 == 0o640
    assert server("undo", "--yes", "--home", home).code == 0
    assert real.read_text() == BROKEN
    assert snapshot(home / "config.yaml") == link
    assert sorted(path.name for path in real.parent.iterdir()) == ["real.yaml"]


def test_attributes_are_kept(server: Server, sick: Path) -> None:
    """Extended attributes survive the fix and the undo."""
    names = ("config.yaml", ".env", "kanban.db")
    try:
        for name in names:
            os.setxattr(sick / name, "user.note", f"of {name}".encode())
    except OSError:
        pytest.skip("this disk has no extended attributes")
    fixed(server, sick)
    for _ in range(2):
        for name in names:
            assert os.getxattr(sick / name, "user.note") == f"of {name}".encode()
        server("undo", "--yes", "--home", sick)


@pytest.mark.needs("setfacl")
def test_an_access_list_is_kept(server: Server, sick: Path) -> None:
    """An access list of the old file is the new one's."""
    path = sick / "config.yaml"
    granting = ["setfacl", "-m", "u:12345:r", str(path)]
    if subprocess.run(granting, capture_output=True, check=False).returncode:
        pytest.skip("this disk has no access lists")
    before = os.getxattr(path, "system.posix_acl_access")
    mode = path.stat().st_mode
    fixed(server, sick)
    assert os.getxattr(path, "system.posix_acl_access") == before
    assert path.stat().st_mode == mode


def test_line_endings_are_kept(server: Server, sick: Path) -> None:
    """The mark before .env goes; its line ends, its last line and its odd bytes stay."""
    text = "A=1\r\n# Schlüssel 鍵\r\n\r\nB='x y'\nC=3\r"
    (sick / ".env").write_bytes(b"\xef\xbb\xbf" + text.encode())
    fixed(server, sick)
    assert (sick / ".env").read_bytes() == text.encode()


def test_a_vault_elsewhere(server: Server, sick: Path, tmp_path: Path) -> None:
    """With --vault the backup lies there, private, and undo finds it."""
    before = crash_server.state(sick)
    vault = tmp_path / "other place" / "vault"
    done = server("fix", "--apply", "--yes", "--home", sick, "--vault", vault)
    assert done.code == 0, done.said
    assert len(list(vault.glob("*/manifest.json"))) == 1
    assert crash_server.wide(vault) == []
    assert server("undo", "--yes", "--home", sick).code == 0
    assert crash_server.state(sick) == before


@root_only
def test_root_leaves_nothing_of_its_own(server: Server, sick: Path) -> None:
    """In a home of another user nothing is root's after any command."""
    crash_server.chown(sick)
    before = crash_server.state(sick)
    for command in (
        ("check",),
        ("fix",),
        ("fix", "--apply", "--yes"),
        ("undo", "--yes"),
        ("backup", "create"),
        ("fix", "--apply", "--yes"),
        ("backup", "verify", "--all"),
        ("backup", "restore", "ID", "--yes"),
        ("backup", "prune", "--keep", "1", "--yes"),
    ):
        made = server("backup", "list", "--json", "--home", sick).json["backups"]
        by_hand = [one["id"] for one in made if one["reason"] == "by hand"]
        args = [by_hand[-1] if word == "ID" else word for word in command]
        done = server(*args, "--home", sick)
        assert done.code in (0, 1), done.said
        assert crash_server.strangers(sick) == [], command
        assert crash_server.wide(sick / "backups" / "doctor") == [], command
    assert crash_server.state(sick) == before


@root_only
def test_root_follows_no_link_to_a_file_of_others(server: Server, tmp_path: Path) -> None:
    """A symlink in another user's home that leads to root's file does not make root change it."""
    home = crash_server.chown(crash_server.sick(tmp_path / "home"))
    precious = support.put(tmp_path / "precious.yaml", BROKEN)
    (home / "config.yaml").unlink()
    (home / "config.yaml").symlink_to(precious)
    refused = server("fix", "CFG-YAML", "--apply", "--yes", "--home", home)
    assert refused.code in (1, 2), refused.said
    assert precious.read_text() == BROKEN


@root_only
def test_the_owner_and_group_are_kept(server: Server, sick: Path) -> None:
    """Each replaced file keeps its own owner and group, whatever the home's are."""
    os.chown(sick / "config.yaml", 11111, 22222)
    os.chown(sick / "kanban.db", 33333, 0)
    fixed(server, sick)
    for name, owner in {"config.yaml": (11111, 22222), "kanban.db": (33333, 0)}.items():
        st = (sick / name).stat()
        assert (st.st_uid, st.st_gid) == owner


# -- undo ----------------------------------------------------------------------------------


def test_undo_of_an_edited_file(server: Server, sick: Path) -> None:
    """An edit since the run is not taken away; with --force it goes to the vault first."""
    before = crash_server.state(sick)
    run = fixed(server, sick)
    (sick / "config.yaml").write_text("edited: since\n")
    edited = crash_server.state(sick)
    refused = server("undo", "--yes", "--home", sick)
    assert refused.code == 2 and "config.yaml" in refused.said and "--force" in refused.said
    assert crash_server.state(sick) == edited
    forced = server("undo", "--yes", "--force", "--json", "--home", sick)
    assert forced.code == 0, forced.said
    assert crash_server.state(sick) == before
    kept = Path(forced.json["backup"]) / "files" / "config.yaml"
    assert kept.read_text() == "edited: since\n"
    back = server("undo", forced.json["run"], "--yes", "--home", sick)
    assert back.code == 0, back.said
    assert crash_server.state(sick) == edited
    assert run != forced.json["run"]


def test_undo_of_undo(server: Server, sick: Path) -> None:
    """An undo can be undone, and that as well."""
    before = crash_server.state(sick)
    fixed(server, sick)
    after = crash_server.state(sick)
    for n in range(4):
        runs = crash_server.journals(sick)
        done = server("undo", runs[-1]["id"], "--yes", "--home", sick)
        assert done.code == 0, done.said
        assert crash_server.state(sick) == (after if n % 2 else before)
        assert server("backup", "verify", "--all", "--home", sick).code == 0


def test_undo_twice(server: Server, sick: Path) -> None:
    """A run that is undone is not undone again."""
    before = crash_server.state(sick)
    run = fixed(server, sick)
    assert server("undo", "--yes", "--home", sick).code == 0
    for args in ((), (run,)):
        again = server("undo", *args, "--yes", "--home", sick)
        assert again.code == 2, again.said
        assert crash_server.state(sick) == before


def test_undo_from_a_damaged_backup(server: Server, sick: Path) -> None:
    """One flipped bit in the backup stops the undo before it changes anything."""
    run = fixed(server, sick)
    after = crash_server.state(sick)
    support.clobber(sick / "backups" / "doctor" / run / "files" / "kanban.db", b"\x01", at=999)
    refused = server("undo", "--yes", "--home", sick)
    assert refused.code == 2 and "damaged" in refused.said
    assert crash_server.state(sick) == after


def test_runs_in_one_second_are_in_order(server: Server, sick: Path) -> None:
    """The last of several quick runs is the one that undo takes back."""
    for n in range(6):
        support.put(sick / ".env", b"\xef\xbb\xbf" + f"N={n}\n".encode(), 0o600)
        done = server("fix", "ENV-BOM", "--apply", "--yes", "--home", sick)
        assert done.code == 0, done.said
    undone = server("undo", "--yes", "--home", sick)
    assert undone.code == 0, undone.said
    assert (sick / ".env").read_bytes() == b"\xef\xbb\xbfN=5\n"


# -- signals -------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_at_any_moment(name: str, server: Server, sick: Path, tmp_path: Path) -> None:
    """A signal at any write takes everything back, with exit code 130 and one line."""
    template = crash_server.clone(sick, tmp_path / "template")
    before, times = crash_server.state(sick), crash_server.modified(sick)
    calls = server("fix", "--apply", "--yes", "--home", sick).calls
    first = {"SIGINT": 0, "SIGTERM": 3, "SIGHUP": 6}[name]
    for n in range(first, len(calls), 9):
        shutil.rmtree(sick)
        crash_server.clone(template, sick)
        done = server("fix", "--apply", "--yes", "--home", sick, cuts=(Cut(n, name),))
        where = f"{name} at {calls[n]} ({n}): {done.said}"
        assert done.code == 130, where
        assert "Traceback" not in done.said and "nterrupted" in done.said, where
        assert crash_server.state(sick) == before, where
        assert crash_server.modified(sick) == times, where
        assert crash_server.leftovers(sick) == [], where
        unended = [r for r in crash_server.journals(sick) if r["state"] not in crash_server.FINAL]
        assert unended == [], where


def test_two_signals(server: Server, sick: Path, tmp_path: Path) -> None:
    """A second Ctrl-C while the first one is being obeyed changes nothing about that."""
    template = crash_server.clone(sick, tmp_path / "template")
    before = crash_server.state(sick)
    calls = server("fix", "--apply", "--yes", "--home", sick).calls
    for n in range(0, len(calls) - 3, 23):
        shutil.rmtree(sick)
        crash_server.clone(template, sick)
        cuts = (Cut(n, "SIGINT"), Cut(n + 1, "SIGTERM"), Cut(n + 3, "SIGINT"))
        done = server("fix", "--apply", "--yes", "--home", sick, cuts=cuts)
        assert done.code == 130, f"{n}: {done.said}"
        assert crash_server.state(sick) == before, f"{n}: {done.said}"
        assert crash_server.leftovers(sick) == [], f"{n}: {done.said}"


SLOW = '''
from hermes_doctor.api import Finding, ReplaceDatabase, Safety, Severity, check, fix
import time

@check(id="slow", group="test", codes=["SLOW"])
def slow(probes):
    """Is it slow?"""
    if not (probes.home / "cured").exists():
        yield Finding("SLOW", Severity.ERROR, "it is slow", subject="state.db", fix="slowly")
'''
SLOWLY = '''
from hermes_doctor.api import ReplaceDatabase, Safety, fix, snapshot
import time

@fix(id="slowly", codes=["SLOW"], safety=Safety.SAFE)
def slowly(probes, finding):
    """Take a long time."""
    def rebuild(copy):
        (probes.home / "begun").touch()
        time.sleep(600)
    path = probes.home / "state.db"
    yield ReplaceDatabase(path, rebuild, "a test", snapshot(path))
'''


@pytest.fixture
def at_work(home: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A real run that is busy for long, started by this test."""
    plugins = tmp_path / "plugins"
    support.put(plugins / "checks" / "slow.py", SLOW)
    support.put(plugins / "fixes" / "slowly.py", SLOWLY)
    for folder in (plugins, plugins / "checks", plugins / "fixes"):
        folder.chmod(0o700)
    options = ["--apply", "--yes", "--home", str(home), "--plugins", str(plugins)]
    with subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", "fix", "SLOW", *options],
        cwd=ROOT,
        env=os.environ | {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        limit = time.monotonic() + 200
        while not (home / "begun").exists() and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.02)
        (home / "begun").unlink()
        yield process
        process.kill()
        process.wait(10)


def test_two_at_once(server: Server, home: Path, at_work: subprocess.Popen[str]) -> None:
    """While one run works, a second is refused in one line, and check calls nothing cut off."""
    frozen = crash_server.state(home, times=True, vault=True)
    for command in (
        ("fix", "--apply", "--yes"),
        ("undo", "--yes"),
        ("backup", "create"),
        ("backup", "restore", "any", "--yes"),
        ("backup", "prune", "--yes"),
    ):
        refused = server(*command, "--home", home)
        assert refused.code == 2, refused.said
        assert str(at_work.pid) in refused.said and refused.err.count("hermes-doctor:") == 1
    assert "RUN-CUTOFF" not in server("check", "--json", "--home", home).out
    assert "interrupted" not in server("fix", "--home", home).said
    assert crash_server.state(home, times=True, vault=True) == frozen


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_from_outside(
    number: signal.Signals, home: Path, at_work: subprocess.Popen[str]
) -> None:
    """A signal to a run that works on a copy ends it at once, with nothing changed."""
    before = crash_server.state(home, leftovers=False)
    at_work.send_signal(number)
    _, err = at_work.communicate(timeout=200)
    assert at_work.returncode == 130, err
    assert "Interrupted" in err and "Traceback" not in err
    assert crash_server.state(home) == before and crash_server.leftovers(home) == []


# -- rounds --------------------------------------------------------------------------------

TWICE = '''
from hermes_doctor.api import Finding, Severity, check

@check(id="twice", group="test", codes=["ONE", "TWO"])
def twice(probes):
    """Are both lines there?"""
    text = (probes.home / "notes").read_text()
    for code in ("ONE", "TWO"):
        if code not in text:
            yield Finding(code, Severity.ERROR, "a line is missing", "notes", fix="add-line")
'''
ADD = '''
from hermes_doctor.api import ReplaceFile, Safety, fix, snapshot

@fix(id="add-line", codes=["ONE", "TWO"], safety=Safety.SAFE)
def add_line(probes, finding):
    """Add the line."""
    path = probes.home / "notes"
    before = path.read_bytes()
    data = before + finding.code.encode() + b"\\n"
    yield ReplaceFile(path, data, "a test", snapshot(path), before)
'''


def test_two_fixes_of_one_file(server: Server, home: Path, tmp_path: Path) -> None:
    """The second of two that rewrite one file has its turn in a second round; one undo for both."""
    plugins = tmp_path / "plugins"
    support.put(plugins / "checks" / "twice.py", TWICE)
    support.put(plugins / "fixes" / "add_line.py", ADD)
    for folder in (plugins, plugins / "checks", plugins / "fixes"):
        folder.chmod(0o700)
    support.put(home / "notes", "")
    done = server("fix", "--apply", "--yes", "--json", "--home", home, "--plugins", plugins)
    assert (home / "notes").read_text() == "ONE\nTWO\n", done.said
    first, second = done.json["repair"]["runs"]
    assert [item["outcome"] for item in first["items"]] == ["verified", "left"]
    assert [item["outcome"] for item in second["items"]] == ["verified"]
    assert done.code == 0
    assert server("undo", "--yes", "--home", home).code == 0
    assert (home / "notes").read_text() == ""
