"""Folders that a restore makes go with its undo, and no others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.helpers import support


def folders(home: Path) -> dict[str, int]:
    """Every folder of the home with its mode, but for the vault."""
    return {
        str(path.relative_to(home)): path.stat().st_mode
        for path in sorted(home.rglob("*"))
        if path.is_dir() and "backups" not in path.relative_to(home).parts
    }


@pytest.fixture
def saved(home: Path) -> str:
    """A backup with files in nested folders."""
    for name in ("skills/one/deep/down/a.md", "skills/one/deep/b.md", "skills/two/c.md"):
        support.put(home / name, name)
    done = support.doctor("backup", "create", "--json", "--home", home)
    assert done.code == 0, done.err
    return str(done.json["id"])


def restore(home: Path, id: str) -> str:
    """Bring everything back; the run."""
    done = support.doctor("backup", "restore", id, "skills", "--yes", "--json", "--home", home)
    assert done.code == 0, done
    return str(done.json["run"])


@pytest.mark.sampled
@pytest.mark.parametrize("gone", ["skills", "skills/one", "skills/one/deep/down"])
def test_undo_removes_the_folders_of_a_restore(home: Path, saved: str, gone: str) -> None:
    """As deep as they were made; the folders of before stay with their mode."""
    shutil.rmtree(home / gone)
    if gone != "skills":
        (home / "skills").chmod(0o750)
    before, contents = folders(home), support.contents(home)

    run = restore(home, saved)
    assert (home / "skills/one/deep/down/a.md").read_text() == "skills/one/deep/down/a.md"
    assert support.doctor("undo", run, "--yes", "--home", home).code == 0

    assert folders(home) == before
    assert support.contents(home) == contents


def test_a_folder_with_something_new_in_it_stays(home: Path, saved: str) -> None:
    """What somebody put there since is not ours."""
    shutil.rmtree(home / "skills")
    run = restore(home, saved)
    support.put(home / "skills" / "one" / "new.md", "new")

    assert support.doctor("undo", run, "--yes", "--home", home).code == 0

    found = [str(path.relative_to(home)) for path in sorted((home / "skills").rglob("*"))]
    assert found == ["skills/one", "skills/one/new.md"]


def test_undo_and_redo(home: Path, saved: str) -> None:
    """The undo of the undo makes the folders again, and its undo removes them again."""
    shutil.rmtree(home / "skills")
    before = folders(home)
    restore(home, saved)
    made = folders(home)

    for wanted in (before, made, before):
        newest = sorted(path.name for path in (home / "backups/doctor/runs").iterdir())[-1]
        assert support.doctor("undo", newest, "--yes", "--home", home).code == 0
        assert folders(home) == wanted


def test_a_receipt_of_before_names_no_folder(home: Path, saved: str) -> None:
    """An older run can still be undone; its folders stay."""
    shutil.rmtree(home / "skills")
    run = restore(home, saved)
    receipt = home / "backups" / "doctor" / "runs" / run / "run.json"
    receipt.write_text(json.dumps(json.loads(receipt.read_text()) | {"folders": []}))

    assert support.doctor("undo", run, "--yes", "--home", home).code == 0
    assert (home / "skills" / "one").is_dir()


def test_a_folder_that_is_gone_by_then(home: Path, saved: str) -> None:
    """A folder was removed since, with what was in it: with --force the rest is undone."""
    shutil.rmtree(home / "skills")
    run = restore(home, saved)
    shutil.rmtree(home / "skills" / "one")

    done = support.doctor("undo", run, "--yes", "--force", "--home", home)

    assert done.code == 0, done
    assert not (home / "skills").exists()


def test_an_undo_that_was_cut_off_at_its_end(home: Path, saved: str) -> None:
    """The next command removes the folders of the run that was undone."""
    shutil.rmtree(home / "skills")
    before = folders(home)
    run = restore(home, saved)
    receipt = home / "backups" / "doctor" / "runs" / run / "run.json"
    old = receipt.read_bytes()
    assert support.doctor("undo", run, "--yes", "--home", home).code == 0
    receipt.write_bytes(old)  # as it was before the undo could be written into it
    (home / "skills" / "one").mkdir(parents=True)

    support.doctor("fix", "--apply", "--yes", "--home", home)

    assert folders(home) == before
