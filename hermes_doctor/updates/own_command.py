"""Builds the command by which hooks and launchers call this tool.

It names the interpreter, because there is a `hermes-doctor` script beside that only in a virtual
environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hermes_doctor
from hermes_doctor.message import text
from hermes_doctor.model import Trouble

LIMIT = 60.0


def words() -> list[str]:
    """The command without arguments; it ignores PYTHONPATH, which is meant for Hermes."""
    return [sys.executable, "-E", "-P", "-m", "hermes_doctor"]


def files() -> tuple[Path, Path]:
    """The files that must exist for the command to work."""
    return Path(sys.executable), Path(hermes_doctor.__file__).parent / "__main__.py"


def refuse_uncallable() -> None:
    """Raise Trouble if this tool cannot be called later."""
    from hermes_doctor.system.own_environment import refuse_cached

    refuse_cached()
    program, code = files()
    if not os.access(program, os.X_OK) or not code.is_file():
        raise Trouble(
            text(
                "hermes-doctor runs from {folder}, where the hook could not find it "
                "later. Install it with pipx, uv tool or pip first. Nothing was changed.",
                folder=code.parent,
            )
        )


def prove() -> None:
    """Raise Trouble unless the command works from another folder, without PYTHON variables."""
    import subprocess

    refuse_uncallable()
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            [*words(), "--version"],
            cwd="/",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        works = done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        works = False
    if not works:
        raise Trouble(
            text(
                "{python} does not find hermes-doctor from another folder, so the hook "
                "could not call it later. Install it with pipx, uv tool or pip first. "
                "Nothing was changed.",
                python=sys.executable,
            )
        )
