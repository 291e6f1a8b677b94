"""A drive that does not answer is named by a command that waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes_doctor.core.system import silent_drive
from tests.helpers import hung_drive, support

ROOT = Path(__file__).parents[3]
COMMAND = """\
import sys
sys.argv[0] = "hermes-doctor"
from hermes_doctor.cli import main
from hermes_doctor.core.system import silent_drive
silent_drive.OFTEN, silent_drive.PATIENCE = 0.2, 1.0
main.main()
"""


def first_line(drive: Path, *words: str | Path) -> tuple[str, int]:
    """The first line that a command says while the drive hangs, and its process id."""
    if os.geteuid() or not hung_drive.DEVICE.exists():
        pytest.skip("only root can mount a drive, and only where the kernel offers FUSE")
    with hung_drive.mounted(drive):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *map(str, words)],
            cwd=ROOT,
            env=support.environ(None),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        said = process.stderr.readline()
        process.kill()
    process.communicate()
    return said, process.pid


@pytest.mark.parametrize("command", ["fix", "timeline"])
def test_a_home_on_a_hung_drive(tmp_path: Path, command: str) -> None:
    """One line says what the command waits for, and how to end it."""
    drive = tmp_path / "drive"

    said, pid = first_line(drive, command, "--home", drive)

    assert said == (
        f"hermes-doctor: The drive of {drive} has not answered for 1 s, and the command waits for "
        f"it. To end the command: kill -9 {pid}. No file is then left half-written.\n"
    )


def test_a_vault_on_a_hung_drive(home: Path, tmp_path: Path) -> None:
    """So does one that writes its backups there."""
    vault = tmp_path / "drive" / "vault"

    said, _ = first_line(vault.parent, "backup", "create", "--home", home, "--vault", vault)

    assert f"The drive of {vault} has not answered" in said


def test_a_drive_that_answers_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is said, too."""
    awake = threading.Event()
    said: list[str] = []
    monkeypatch.setattr(silent_drive, "PATIENCE", 0.1)
    monkeypatch.setattr(os, "statvfs", lambda _: awake.wait(10))

    def say(message: str) -> None:
        said.append(message)
        awake.set()

    silent_drive._ask(str(tmp_path), say)

    assert len(said) == 2
    assert said[0].startswith(f"The drive of {tmp_path} has not answered for 0 s")
    assert said[1] == f"The drive of {tmp_path} answers again."


def test_a_drive_that_answers(tmp_path: Path) -> None:
    """Nothing is said, also not about a folder that does not exist."""
    said: list[str] = []

    silent_drive._ask(str(tmp_path), said.append)
    silent_drive._ask(str(tmp_path / "absent"), said.append)

    assert said == []
