"""A vault that several homes share: each sees to its own, and a stranger's counts for nobody."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import crash_server, forged_vault, support
from tests.helpers.warm_server import ROOT

PLANTED = "20290101-000000-000aa"
"""A backup that would be the newest of all."""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The vault."""
    (tmp_path / "vault").mkdir(mode=0o700)
    return tmp_path / "vault"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another home, which uses the same vault."""
    return support.healthy(tmp_path / "other")


def create(home: Path, vault: Path) -> str:
    """A new backup; its id."""
    done = support.doctor("backup", "create", "--json", "--home", home, "--vault", vault)
    assert done.code == 0, done.err
    return str(done.json["id"])


def test_verify_takes_this_home_s_newest(home: Path, other: Path, shared: Path) -> None:
    """Without an id it is not the newest of all that is verified."""
    mine, theirs = create(home, shared), create(other, shared)
    support.clobber(shared / mine / "files" / "config.yaml", b"X", 2)

    done = support.doctor("backup", "verify", "--json", "--home", home, "--vault", shared)

    assert theirs > mine
    assert done.code == 1
    assert [one["id"] for one in done.json["backups"]] == [mine]


def test_nothing_of_this_home(home: Path, other: Path, shared: Path) -> None:
    """A vault with others' backups only: one line with what to type, which works when pasted."""
    create(other, shared)

    done = support.doctor("backup", "verify", "--home", home, "--vault", shared)

    assert done.code == 2
    pasted(done.err, "Create one: ")
    assert support.doctor("backup", "verify", "--home", home, "--vault", shared).code == 0


def test_an_unknown_id(home: Path, shared: Path) -> None:
    """It is said where it was looked for, and the hint shows that very vault."""
    id = create(home, shared)

    done = support.doctor("backup", "verify", "nonsense", "--home", home, "--vault", shared)

    assert done.code == 2
    assert str(shared) in done.err
    assert id in pasted(done.err, "See: ").out


def pasted(said: str, before: str) -> support.Done:
    """Type the command of a hint."""
    words = shlex.split(said.partition(before)[2])
    assert words[0] == "hermes-doctor"
    done = support.doctor(*words[1:])
    assert done.code == 0, done.err
    return done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a stranger's files")
def test_a_stranger_s_backup(home: Path, shared: Path) -> None:
    """One that a third user has put there is neither shown nor verified, restored or counted."""
    old, mine = create(home, shared), create(home, shared)
    shared.chmod(0o1777)
    entry = forged_vault.entry("config.yaml")
    crash_server.chown(forged_vault.manifest(home, entry, id=PLANTED, vault=shared))
    options = ("--home", home, "--vault", shared)

    listed = support.doctor("backup", "list", "--json", *options)
    newest = support.doctor("backup", "verify", "--json", *options)
    every = support.doctor("backup", "verify", "--all", "--json", *options)
    named = support.doctor("backup", "verify", PLANTED, *options)
    restored = support.doctor("backup", "restore", PLANTED, "--yes", *options)
    pruned = support.doctor("backup", "prune", "--keep", "1", "--yes", "--json", *options)

    assert [one["id"] for one in listed.json["backups"]] == [old, mine]
    assert [one["id"] for one in newest.json["backups"]] == [mine]
    assert [one["id"] for one in every.json["backups"]] == [old, mine]
    assert (named.code, restored.code) == (2, 2)
    assert (home / "config.yaml").read_text() == support.CONFIG
    assert (pruned.json["removed"], pruned.json["kept"]) == ([old], [mine])
    assert (shared / PLANTED).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a stranger's files")
def test_the_owner_s_backup_in_root_s_hands() -> None:
    """What the home's owner made himself, root sees as well."""
    with support.reachable_folder() as place:
        home, shared = support.healthy(place / "home"), place / "vault"
        create(home, shared)
        id = create(home, shared)
        crash_server.chown(home)
        crash_server.chown(shared)

        done = support.doctor("backup", "verify", "--json", "--home", home, "--vault", shared)

        assert done.code == 0, done.err
        assert [one["id"] for one in done.json["backups"]] == [id]


KILLED = """
import os, signal
from hermes_doctor.core.system import disk

def copy(*args):
    os.kill(os.getpid(), signal.SIGKILL)

disk.copy_read_back = copy
from hermes_doctor.cli.main import main
main()
"""


def killed(home: Path, vault: Path) -> str:
    """A `backup create` that is killed at its first copy; what it leaves in the vault."""
    before = set(os.listdir(vault))
    args = ["backup", "create", "--home", str(home), "--vault", str(vault)]
    done = subprocess.run([sys.executable, "-c", KILLED, *args], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    [left] = set(os.listdir(vault)) - before
    assert left.endswith(".partial")
    return left


def test_what_a_killed_one_leaves(home: Path, other: Path, shared: Path) -> None:
    """The next backup of the same home removes it; another home's does not touch it."""
    left = killed(home, shared)

    theirs = create(other, shared)

    assert (shared / left).exists(), "it may be at work"
    mine = create(home, shared)
    assert sorted(os.listdir(shared)) == sorted([theirs, mine])


@pytest.mark.parametrize("command", ["create", "prune"])
def test_in_the_home_s_own_vault(home: Path, command: str) -> None:
    """There whatever is half done is the home's own, also without a word of whose it is."""
    vault = home / "backups" / "doctor"
    support.put(vault / f"{PLANTED}.partial" / "files" / "x", "half")

    done = support.doctor("backup", command, "--home", home)

    assert done.code == 0, done.err
    assert not list(vault.glob("*.partial"))


def test_a_vault_in_the_home(home: Path, tmp_path: Path) -> None:
    """By whatever name it is reached, and whichever vault comes after: no backup of backups."""
    link = tmp_path / "link"
    link.symlink_to(home)
    kept = [home / "bk", link / "bk2", home]
    files = []
    for vault in (*kept, *kept, home / "backups" / "doctor"):
        words = ("backup", "create", "--include", "*", "--json", "--home", link, "--vault", vault)
        files.append(support.doctor(*words).json["files"])

    assert set(files) == {files[0]}
