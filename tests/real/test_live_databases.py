"""A real Hermes writes all the while, and the doctor looks: nobody disturbs anybody."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RELEASES
from tests.helpers.real.release_homes import MakeHome, Patient
from tools import real_home, releases

pytestmark = [pytest.mark.real, pytest.mark.disk]  # in memory no writer ever waits

ROUNDS = 12

WRITER = """
import json, os, select, sys, time
from pathlib import Path
from hermes_cli import kanban_db
from hermes_state import SessionDB

home = Path(os.environ["HERMES_HOME"])
history = SessionDB(home / "state.db")
for n in range(int(sys.argv[1])):
    history.append_message("one", "tool", f"filling {n} " * 250)
print("ready", flush=True)
written, errors = 0, []
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        history.append_message("one", "user", f"written while somebody looks: {written}")
        if written % 20 == 0:
            board = kanban_db.connect(home / "kanban.db")
            kanban_db.create_task(board, title=f"task {written}", body="its text")
            board.close()
        written += 1
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")
    time.sleep(0.001)
kept = sum("written while" in m["content"] for m in history.get_messages("one"))
history.close()
print(json.dumps({"written": written, "errors": errors, "kept": kept}), flush=True)
"""
"""Writes until its input ends, and tells what became of it."""


@contextlib.contextmanager
def writing(patient: Patient, filling: int) -> Iterator[dict[str, Any]]:
    """A writer at work; what it says in the end is in the dictionary afterwards."""
    process = subprocess.Popen(
        [str(releases.python_of(patient.version)), "-I", "-c", WRITER, str(filling)],
        env=real_home.environment(patient.home),
        cwd=patient.home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    said: dict[str, Any] = {}
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield said
    finally:
        out, _ = process.communicate(timeout=60)
        said.update(json.loads(out))


def owners(home: Path) -> dict[str, tuple[int, int, int]]:
    """The files of the history that stay while it is open, with owner and mode."""
    found = {}
    for path in home.glob("state.db*"):
        st = os.stat(path)
        found[path.name] = (st.st_uid, st.st_gid, st.st_mode)
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("filling", [0, 1800], ids=["small", "large"])
@pytest.mark.parametrize("version", RELEASES)
def test_looking_at_a_writer(version: str, filling: int, hermes_home: MakeHome) -> None:
    """No write fails, no file appears or goes, no owner changes, and there is no false alarm."""
    patient = Patient(version, hermes_home(version))
    with writing(patient, filling) as said:
        before = owners(patient.home)
        assert set(before) == {"state.db", "state.db-wal", "state.db-shm"}
        for number in range(ROUNDS):
            deep = ["--deep"] if number % 3 == 2 else []
            report = patient.check("--only", "databases", *deep).json
            bad = [f for f in report["findings"] if f["severity"] != "info"]
            assert bad == [], (number, deep)
            odd = [c for c in report["checks"] if c["status"] not in ("ok", "skipped")]
            assert odd == [], (number, deep)
            assert owners(patient.home) == before
    assert said["errors"] == []
    assert said["kept"] == said["written"] > 50
