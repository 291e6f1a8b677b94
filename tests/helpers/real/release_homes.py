"""A home of one release, with that release's `hermes` on the PATH, and Hermes to ask about it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_doctor.operations.learning.lessons import schema_changes
from tests.helpers import support
from tests.helpers.support import Done
from tools import real_home, releases

MakeHome = Callable[[str], Path]

ROWS = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
print(*[message["content"] for message in history.get_messages("one")], sep="\\n")
history.close()
"""
"""Prints every message of the history."""

KILLED = """
import os, signal
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
for n in range(40, 60):
    history.append_message("one", "user", f"message number {n}")
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Adds twenty messages and dies, so that they lie in the write-ahead log only."""


@dataclass(frozen=True)
class Patient:
    """One home, the release it belongs to, and what the doctor may see of the machine."""

    version: str
    home: Path

    @property
    def env(self) -> dict[str, str]:
        """That release first on the PATH, and no home of the user's own."""
        return machine(self.home.parent, releases.python_of(self.version).parent)

    def doctor(self, *args: str | Path) -> Done:
        """Run the command on this home."""
        return support.doctor(*args, "--home", self.home, env=self.env)

    def check(self, *args: str) -> Done:
        """`check --json` on this home."""
        return self.doctor("check", "--json", *args)

    def finding(self, code: str) -> dict[str, Any]:
        """The one finding of that code."""
        return support.finding(self.check(), code)

    def ask(self, script: str) -> str:
        """What this release's own code says of a copy of the home, where it may write."""
        copy = Path(tempfile.mkdtemp(dir=self.home.parent)) / "home"
        shutil.copytree(self.home, copy, symlinks=True)
        return real_home.run(self.version, copy, script)


def machine(user: Path, *folders: Path) -> dict[str, str]:
    """An environment with these folders first on the PATH and `user` as the user's home."""
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(user)}


def cure(patient: Patient, code: str, *only: str, exit_code: int = 0) -> None:
    """The fix holds, and a second one changes nothing, not even in the vault.

    The exit code is 1 if a problem with this code is left that only the operator can solve.
    """
    done = patient.doctor("fix", code, "--apply", "--yes")
    assert done.code == exit_code, done
    cured = support.tree(patient.home, times=False, vault=True)
    again = patient.doctor("fix", code, "--apply", "--yes")
    assert again.code == exit_code, again
    assert support.tree(patient.home, times=False, vault=True) == cured
    assert code not in patient.check(*only).codes


def undo(patient: Patient, sick: dict[str, tuple[Any, ...]]) -> None:
    """Undo gives back the same bytes, modes and owners."""
    done = patient.doctor("undo", "--yes")
    assert done.code == 0, done
    assert support.contents(patient.home) == sick


def lose(path: Path, *columns: tuple[str, str]) -> None:
    """Take columns away from a database at rest."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table, column in columns:
            schema_changes.take_away(connection, table, column)
