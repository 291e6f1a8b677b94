"""The first command of README, `make install`, in a copy of the clone, and what it leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.wide]
TREE = Path(__file__).parents[2]


def _make(target: str, clone: Path, prefix: Path, path: str = "/usr/bin:/bin") -> str:
    """Run a target of the Makefile for this prefix; return its last line."""
    done = subprocess.run(
        ["make", target, f"PREFIX={prefix}", f"PYTHON={shutil.which('python3')}"],
        cwd=clone,
        env={"PATH": path, "HOME": str(clone)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("target", ["install", "uninstall"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_another_program_of_that_name_stays(tmp_path: Path, target: str, kind: str) -> None:
    """Neither target touches a hermes-doctor that `make install` did not create."""
    program = tmp_path / "bin" / "hermes-doctor"
    program.parent.mkdir()
    other = tmp_path / "pipx" / "hermes-doctor"
    own = tmp_path / "lib" / "hermes-doctor" / "kept"
    for path in (other, own):
        path.parent.mkdir(parents=True)
        path.write_text("mine")
    if kind == "file":
        program.write_text("mine")
    else:
        program.symlink_to(other)

    done = subprocess.run(
        ["make", target, f"PREFIX={tmp_path}", f"PYTHON={shutil.which('python3')}"],
        cwd=TREE,
        env={"PATH": os.environ["PATH"]},  # not the flags of the `make` that runs these tests
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode != 0
    assert done.stdout.splitlines() == [
        f"Nothing was changed: {program} was not created by `make install`. Remove it first."
    ]
    assert (program.is_symlink(), program.read_text()) == (kind == "link", "mine")
    assert [path.name for path in own.parent.iterdir()] == ["kept"]


def test_make_install(tmp_path: Path) -> None:
    """It installs into a prefix with a space, says what to type next, and can be undone."""
    clone, prefix = tmp_path / "clone", tmp_path / "my prefix"
    shutil.copytree(TREE, clone, ignore=shutil.ignore_patterns(".*", "__pycache__", "tests"))
    prefix.mkdir()
    program = prefix / "bin" / "hermes-doctor"

    first = _make("install", clone, prefix)
    again = _make("install", clone, prefix, f"{program.parent}:/usr/bin:/bin")
    done = subprocess.run([program, "demo"], capture_output=True, text=True, cwd=tmp_path)
    _make("uninstall", clone, prefix)

    assert first.endswith(f"Next: {program} check")
    assert again == "Installed. Next: hermes-doctor check"
    assert (done.returncode, done.stderr) == (0, "")
    assert [path for path in prefix.rglob("*") if not path.is_dir()] == []
