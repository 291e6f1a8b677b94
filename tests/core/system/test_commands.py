"""Commands that are asked: within a time limit, and gone with all that they started."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands
from tests.helpers import support


def test_answer() -> None:
    """What it said and how it ended."""
    said = commands.ask("sh", "-c", "echo out; echo err >&2; exit 3")
    assert said == commands.CommandOutput(3, "out\n", "err\n")
    with pytest.raises(CouldNotLook, match="could not be run"):
        commands.ask("no-such-command-of-a-manager")


@pytest.mark.parametrize("then", ["wait", "exit 0"])
def test_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    """One that takes too long goes with its children, also where it has left them itself."""
    monkeypatch.setattr(commands, "LIMIT", 0.5)
    manager = support.put(
        tmp_path / "manager", f"#!/bin/sh\nsleep 60 &\necho $! >{tmp_path}/child\n{then}\n", 0o755
    )
    with pytest.raises(CouldNotLook, match="did not answer"):
        commands.ask(str(manager))
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "cmdline"
    until = time.monotonic() + 5
    while _lives(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _lives(child)


def _lives(command: Path) -> bool:
    """Whether it runs; one that ended and was not waited for has no command line any more."""
    try:
        return b"sleep" in command.read_bytes()
    except OSError:
        return False
