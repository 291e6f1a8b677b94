"""The home is gone, and its backups lie on another disk; or it has another place by now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers import support


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Where the backups lie."""
    return tmp_path / "disk"


def backed_up(home: Path, disk: Path) -> str:
    """A backup there."""
    done = support.doctor("backup", "create", "--json", "--home", home, "--vault", disk)
    assert done.code == 0, done.err
    return str(done.json["id"])


@pytest.mark.sampled
@pytest.mark.parametrize("empty", [False, True])
def test_all_of_it_comes_back(home: Path, disk: Path, empty: bool) -> None:
    """Listed, verified and restored where there is no home any more; and that is its home again."""
    (home / "logs").rmdir()
    saved, id = support.contents(home), backed_up(home, disk)
    options = ("--home", home, "--vault", disk)
    shutil.rmtree(home)
    if empty:
        home.mkdir()

    assert id in support.doctor("backup", "list", *options).out
    for word in ("--all", "--deep"):
        assert support.doctor("backup", "verify", word, *options).code == 0
    assert home.exists() == empty
    done = support.doctor("backup", "restore", id, "--yes", *options)

    assert done.code == 0, done.err
    assert support.contents(home) == saved
    assert home.stat().st_mode & 0o077 == 0 or empty


def test_what_is_no_lost_home(home: Path, disk: Path, tmp_path: Path) -> None:
    """A folder of others is not taken for one; nothing is made where nothing comes back."""
    id = backed_up(home, disk)
    other = tmp_path / "other"
    for words in (["list"], ["restore", id, "--yes"]):
        here = support.doctor("backup", *words, "--home", other)
        assert (here.code, "does not exist" in here.err) == (2, True), "its backups are gone too"
    there = support.doctor("backup", "restore", "none", "--yes", "--home", other, "--vault", disk)
    assert there.code == 2
    assert not other.exists()
    support.put(other / "thesis.tex", "x")
    full = support.doctor("backup", "restore", id, "--yes", "--home", other, "--vault", disk)
    assert "contains no file of Hermes" in full.err


def test_another_place(home: Path, disk: Path, tmp_path: Path) -> None:
    """On a new machine the home has another path: that is said, and done when asked for."""
    (home / "logs").rmdir()
    saved, id = support.contents(home), backed_up(home, disk)
    new = tmp_path / "new"
    words = ("backup", "restore", id, "--yes", "--home", new, "--vault", disk)

    refused = support.doctor(*words)
    assert refused.code == 2
    assert "--other-home" in refused.err
    assert not new.exists()
    done = support.doctor(*words, "--other-home")

    assert done.code == 0, done.err
    assert support.contents(new) == saved
    assert support.doctor("undo", "--yes", "--home", new).code == 0
