"""Backups elsewhere by the real restic and rsync: sent, checked, brought back the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from signal import SIGKILL, SIGTERM
from types import SimpleNamespace

import pytest

from hermes_doctor.backup.vault import blocks, engines, unchanged
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from tests.cli.test_commands import IMPATIENT, plain, terminal
from tests.helpers import support
from tests.helpers.database_writer import back_up
from tests.helpers.real.gateways import until

PASSWORD = "zQcanary-password"
restic = pytest.mark.needs("restic")
rsync = pytest.mark.needs("rsync")


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two backups, the second of which shares and has a file in blocks."""
    monkeypatch.setattr(blocks, "MIN_SIZE", 65536)
    monkeypatch.setattr(unchanged, "SETTLED", 0)
    support.put(home / "long", os.urandom(200_000))
    back_up(home)
    support.clobber(home / "long", b"changed", 100_000)
    made = back_up(home)
    assert made.shares
    assert any(entry.blocks for entry in made.entries)
    return home


@restic
def test_restic(home: Path, tmp_path: Path) -> None:
    """Sent and checked, listed, brought back into an empty vault, and restored from there."""
    env = {"RESTIC_PASSWORD": PASSWORD, "RESTIC_CACHE_DIR": str(tmp_path / "cache")}
    repository = str(tmp_path / "repository")

    def doctor(word: str, *args: str | Path) -> support.Done:
        options = ("--restic", repository, "--home", home)
        return support.doctor("backup", word, *args, *options, env=env)

    missing = doctor("push")
    assert missing.code == 2
    assert "restic backup failed" in missing.err
    assert "If the repository is new: add --init" in missing.err
    sent = doctor("push", "--init")
    assert sent.code == 0, sent.err
    assert "checked by restic" in sent.out
    newest = Vault(Home(home)).ids()[-1]
    assert newest in doctor("list").out
    saved = support.contents(home)
    shutil.rmtree(home / "backups")
    support.put(home / "long", "lost")

    back = doctor("pull", "--json")

    assert back.code == 0, back.err
    id = back.json["id"]
    assert support.doctor("backup", "verify", "--deep", id, "--home", home).code == 0
    assert support.doctor("backup", "restore", id, "--yes", "--home", home).code == 0
    assert support.contents(home) == saved
    assert "The repository has no backup 'nonsense'" in doctor("pull", "nonsense").err
    assert PASSWORD not in sent.out + sent.err + back.out


def locks(repository: Path, env: dict[str, str]) -> int:
    """How many locks a repository has."""
    words = ["restic", "-r", str(repository), "list", "locks", "--no-lock"]
    found = subprocess.run(words, env={**os.environ, **env}, capture_output=True, check=True)
    return len(found.stdout.split())


@restic
@pytest.mark.parametrize("dead", [True, False])
def test_a_lock_that_restic_left(home: Path, tmp_path: Path, dead: bool) -> None:
    """One of a killed restic is removed, and a line says so; one that is at work is left alone."""
    env = {"RESTIC_PASSWORD": PASSWORD, "RESTIC_CACHE_DIR": str(tmp_path / "cache")}
    repository = tmp_path / "repository"
    words = ("backup", "push", "--restic", repository, "--home", home)
    assert support.doctor(*words, "--init", env=env).code == 0
    slow = ["restic", "-r", str(repository), "backup", "--stdin", "-q"]
    process = subprocess.Popen(slow, env={**os.environ, **env}, stdin=subprocess.PIPE)
    until(lambda: locks(repository, env) > 0, "a lock")
    if dead:
        process.kill()
        process.wait()

    done = support.doctor(*words, env=env)

    try:
        if dead:
            assert done.code == 0, done.err
            assert "Removed 1 lock of restic, left by processes that no longer run." in done.err
            assert locks(repository, env) == 0
            assert support.doctor(*words, env=env).err == ""
        else:
            assert done.code == 2
            assert "already locked" in done.err
            assert locks(repository, env) == 1
    finally:
        process.kill()
        process.communicate()


@restic
def test_restic_without_a_password(home: Path, tmp_path: Path) -> None:
    """One line says what it needs; nothing hangs at a question that nobody sees."""
    unset = dict.fromkeys(("RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND"))
    done = support.doctor("backup", "push", "--restic", tmp_path / "r", "--home", home, env=unset)

    assert done.code == 2
    assert "RESTIC_PASSWORD_FILE" in done.err


@rsync
def test_rsync(home: Path, tmp_path: Path) -> None:
    """All backups, sharing what they share here; the place is a vault then."""
    support.put(home / "backups" / "doctor" / "20200101-000000-000aa.partial" / "home", "x")
    there = tmp_path / "there"

    for _ in range(2):
        done = support.doctor("backup", "push", "--rsync", there, "--home", home)
        assert done.code == 0, done.err

    vault = Vault(Home(home), there)
    ids = Vault(Home(home)).ids()
    assert sorted(os.listdir(there)) == ids
    for id in ids:
        assert vault.verify(vault.load(id)) == []
    one, two = (there / id / "files" / ".env" for id in ids)
    assert one.stat().st_ino == two.stat().st_ino


@pytest.mark.parametrize("option", ["restic", "rsync"])
@pytest.mark.parametrize("place", ["", "copies", "cron"])
def test_not_into_a_home(home: Path, option: str, place: str) -> None:
    """What is meant to be elsewhere would be lost with it, and Hermes would find strange files."""
    (home / "cron").mkdir(exist_ok=True)
    before = support.contents(home)

    done = support.doctor("backup", "push", f"--{option}", home / place, "--home", home)

    assert done.code == 2
    assert "inside the Hermes home" in done.err
    assert support.contents(home) == before


def test_where_to(home: Path, tmp_path: Path) -> None:
    """Neither or both is nothing; and a program that is not there is named."""
    (tmp_path / "bin").mkdir()
    bare = {"PATH": str(tmp_path / "bin")}
    assert "No destination given" in support.doctor("backup", "push", "--home", home).err
    for option in ("restic", "rsync"):
        words = ("backup", "push", f"--{option}", "x", "--home", home)
        assert f"{option} is needed but not installed" in support.doctor(*words, env=bare).err
    assert (
        "not a valid destination"
        in support.doctor("backup", "push", "--rsync", "-e sh", "--home", home).err
    )


def impatient(home: Path, tmp_path: Path, *args: str | Path) -> str:
    """What a command shows on a terminal where no work is too short for a bar."""
    env = {"RESTIC_PASSWORD": PASSWORD, "RESTIC_CACHE_DIR": str(tmp_path / "cache")}
    words = ("backup", *args, "--home", home)
    code, text = terminal(*words, command=IMPATIENT, columns=200, **env)
    assert code == 0, text
    return plain(text)


@restic
def test_how_far_restic_is(home: Path, tmp_path: Path) -> None:
    """Each part of the work is named on a terminal; in a pipe nothing is."""
    where = ("--restic", tmp_path / "repository")
    sent = impatient(home, tmp_path, "push", "--init", *where)
    assert "restic is checking the repository" in sent
    brought = impatient(home, tmp_path, "pull", *where)
    assert "restic is fetching the backup" in brought
    assert "importing the backup" in brought
    env = {"RESTIC_PASSWORD": PASSWORD, "RESTIC_CACHE_DIR": str(tmp_path / "cache")}
    assert support.doctor("backup", "push", *where, "--home", home, env=env).err == ""


@rsync
def test_how_far_rsync_is(home: Path, tmp_path: Path) -> None:
    """The same for rsync, which tells a share of the whole."""
    sent = impatient(home, tmp_path, "push", "--rsync", tmp_path / "there")
    assert "rsync is sending the backups" in sent
    assert "rsync is comparing the files" in sent


@pytest.mark.needs("age", "age-keygen")
def test_how_far_an_export_is(home: Path, tmp_path: Path) -> None:
    """And for age, which is told as much as it has taken."""
    key = subprocess.run(["age-keygen"], capture_output=True, text=True, check=True).stdout
    public = next(word for word in key.split() if word.startswith("age1"))
    words = ("export", "--to", tmp_path / "a.age", "--encrypt-to", public)
    assert "encrypting" in impatient(home, tmp_path, *words)


@restic
def test_the_password_is_asked_for(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By us, once for all that restic is called for: its own question nobody would see."""
    answers = iter([PASSWORD, "a slip", PASSWORD, PASSWORD])
    monkeypatch.setattr(engines, "getpass", lambda _: next(answers))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("RESTIC_PASSWORD", "RESTIC_PASSWORD_FILE", "RESTIC_PASSWORD_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Trouble, match="two passwords"):
        engines.Restic(str(tmp_path / "repository")).make()
    repository = engines.Restic(str(tmp_path / "repository"))
    repository.make()
    newest = Vault(Home(home)).newest()
    assert newest is not None

    assert repository.push(newest.folder.parent, newest.id)
    assert [id for id, _, _ in repository.list_backups()] == [newest.id]


SLOW = """#!{python}
import os, signal, sys, time
def end(*_):
    open({said!r}, "w").write("ended")
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
if "snapshots" in sys.argv:
    print('[{{"tags": ["hermes-doctor", "x"], "short_id": "x", "time": "now"}}]')
    sys.exit()
if "--target" in sys.argv:
    folder = sys.argv[sys.argv.index("--target") + 1]
    open(os.path.join(folder, "secret"), "w").close()
open({began!r}, "w").close()
time.sleep(600)
"""
"""A restic that takes for ever."""


@pytest.mark.sampled
@pytest.mark.parametrize("signal", [SIGTERM, SIGKILL])
@pytest.mark.parametrize("command", ["push", "pull"])
def test_ended_in_the_middle(home: Path, tmp_path: Path, command: str, signal: int) -> None:
    """Restic is asked to end with us; what it brought does not stay, at the latest by the next."""
    began, said = tmp_path / "began", tmp_path / "said"
    script = SLOW.format(python=sys.executable, began=str(began), said=str(said))
    support.put(tmp_path / "bin" / "restic", script, 0o755)
    env = {"RESTIC_PASSWORD": "x", "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    words = ["backup", command, "--restic", "r", "--home", str(home)]
    vault = home / "backups" / "doctor"
    known = sorted(os.listdir(vault))
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_doctor", *words],
        env=support.environ(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(began.exists, "restic")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal)
    process.wait(60)

    if signal == SIGTERM:
        assert said.read_text() == "ended"
        assert sorted(os.listdir(vault)) == known
    else:
        os.kill(int(children[0]), SIGKILL)
        assert support.doctor("backup", "verify", "--deep", "--home", home).code == 0
        assert sorted(os.listdir(vault)) == known


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["ssh: connect to host h port 22: Connection refused", "rsync error: (code 255)"], 0),
        (["me@h: Permission denied (publickey).", "rsync error: unexplained error"], 0),
        (["warning: old", "Fatal: wrong password or no key found", "exit"], 1),
        (["one", "two"], 1),
    ],
)
def test_the_line_that_tells_why(lines: list[str], why: int) -> None:
    """The first cause, where the last line says only that it ended."""
    assert engines._telling(lines) == lines[why]
