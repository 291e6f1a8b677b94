"""What was done cannot be said, because the disk is full: the exit code does not deny it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.warm_server import ROOT

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
BOM = b"\xef\xbb\xbf"


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"], autouse=True)
def unbuffered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is noticed to be full when the answer is complete, or with its first line."""
    monkeypatch.setenv("PYTHONUNBUFFERED", request.param)


def muted(*args: str | Path) -> tuple[int, str]:
    """Run the command with a full disk for its answer; its exit code, and what it complains of."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hermes_doctor", *map(str, args)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert "Traceback" not in done.stderr
    assert "bug in" not in done.stderr
    return done.returncode, done.stderr


def done_but_unsaid(code: int, said: str) -> None:
    """Insist that it is said to be done, on one line."""
    assert code == 1, said
    [line] = said.splitlines()
    assert (
        "The changes were made, but the report could not be written (no space left on device)"
        in line
    )


@pytest.mark.sampled
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_fix(home: Path, form: tuple[str, ...]) -> None:
    """The repair is done, and 2 would mean that nothing was changed."""
    (home / ".env").write_bytes(BOM + support.ENV.encode())

    done_but_unsaid(*muted("fix", "--apply", "--yes", *form, "--home", home))

    assert (home / ".env").read_text() == support.ENV
    assert support.doctor("undo", "--yes", "--home", home).code == 0


@pytest.mark.sampled
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_backup(home: Path, form: tuple[str, ...]) -> None:
    """The backup is there, and whole."""
    done_but_unsaid(*muted("backup", "create", *form, "--home", home))

    assert len(list(home.glob("backups/doctor/2*"))) == 1
    assert support.doctor("backup", "verify", "--home", home).code == 0


@pytest.mark.sampled
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_undo_and_restore(home: Path, form: tuple[str, ...]) -> None:
    """So it is with what goes back."""
    assert support.doctor("backup", "create", "--home", home).code == 0
    [id] = os.listdir(home / "backups" / "doctor")
    (home / ".env").write_bytes(BOM + support.ENV.encode())

    done_but_unsaid(*muted("backup", "restore", id, "--yes", *form, "--home", home))

    assert (home / ".env").read_text() == support.ENV
    done_but_unsaid(*muted("undo", "--yes", *form, "--home", home))
    assert (home / ".env").read_bytes() == BOM + support.ENV.encode()


@pytest.mark.sampled
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_prune(home: Path, form: tuple[str, ...]) -> None:
    """And with what is removed for good."""
    for _ in range(2):
        assert support.doctor("backup", "create", "--home", home).code == 0

    code, said = muted("backup", "prune", "--keep", "1", "--yes", *form, "--home", home)

    gone = len(list(home.glob("backups/doctor/2*"))) == 1
    assert code == (1 if gone else 2), said


@pytest.mark.sampled
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("command", [("check",), ("fix",), ("backup", "list")])
def test_nothing_done(home: Path, command: tuple[str, ...], form: tuple[str, ...]) -> None:
    """A command that only looks has nothing to own up to: it could not run."""
    assert support.doctor("backup", "create", "--home", home).code == 0
    (home / ".env").write_bytes(BOM + support.ENV.encode())

    code, said = muted(*command, *form, "--home", home)

    assert code == 2
    assert "The changes were made" not in said
    assert "No space left on device" in said
