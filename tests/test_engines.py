"""Backups elsewhere by the real restic and rsync: sent, checked, brought back the same."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hermes_doctor import blocks, sharing
from hermes_doctor.home import Home
from hermes_doctor.vault import Vault
from tests import support
from tests.writing import back_up

PASSWORD = "zQcanary-password"
restic = pytest.mark.skipif(shutil.which("restic") is None, reason="restic is not installed")
rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


@pytest.fixture
def home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two backups, the second of which shares and has a file in blocks."""
    monkeypatch.setattr(blocks, "LEAST", 65536)
    monkeypatch.setattr(sharing, "SETTLED", 0)
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
    sent = doctor("push", "--init")
    assert sent.code == 0, sent.err
    assert "restic has checked it" in sent.out
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
    assert "There is no backup 'nonsense'" in doctor("pull", "nonsense").err
    assert PASSWORD not in sent.out + sent.err + back.out


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


def test_where_to(home: Path, tmp_path: Path) -> None:
    """Neither or both is nothing; and a program that is not there is named."""
    (tmp_path / "bin").mkdir()
    bare = {"PATH": str(tmp_path / "bin")}
    assert "Say where to" in support.doctor("backup", "push", "--home", home).err
    for option in ("restic", "rsync"):
        words = ("backup", "push", f"--{option}", "x", "--home", home)
        assert f"{option} is not installed" in support.doctor(*words, env=bare).err
    assert "no place" in support.doctor("backup", "push", "--rsync", "-e sh", "--home", home).err
