"""Messages of a real Hermes that only the backup of its deleted log has are added again."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import RELEASES
from tests.helpers import saved_log_home
from tests.helpers.real.release_homes import MakeHome, Patient
from tools import real_home

pytestmark = pytest.mark.real

HOLDS = """
import os, signal, time
from pathlib import Path
from hermes_state import SessionDB
home = Path(os.environ["HERMES_HOME"])
history = SessionDB(home / "state.db")
history.create_session("held", "cli", model="m")
for suffix in ("-wal", "-shm"):
    (home / f"state.db{suffix}").unlink()
for n in range(8):
    history.append_message("held", "assistant" if n % 2 else "user", f"held {n}")
(home.parent / "ready").touch()
while not (home.parent / "go").exists():
    time.sleep(0.05)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Writes into a deleted log until it is killed."""

OTHERS = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.create_session("other", "cli", model="m")
for n in range(3):
    history.append_message("other", "user", f"other {n}")
history.close()
"""
"""Takes the numbers that the lost messages had."""

READS = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.append_message("held", "user", "held 8")
print([one["content"] for one in history.get_messages("held")])
print([one["content"] for one in history.get_messages("other")])
print(len(history.search_messages("held")) > 0)
history.close()
"""


@pytest.mark.parametrize("version", [RELEASES[0], RELEASES[-1]])
def test_added_in_their_order(version: str, hermes_home: MakeHome) -> None:
    """Hermes reads the conversation in its order, goes on with it, and finds it by search."""
    patient = Patient(version, hermes_home(version))

    def hold() -> None:
        with contextlib.suppress(RuntimeError):  # it is killed
            real_home.run(version, patient.home, HOLDS)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        _wait_for(patient.home.parent / "ready")
        saved_log_home.save(patient.home)
    finally:
        (patient.home.parent / "go").touch()
        holder.join()
    real_home.run(version, patient.home, OTHERS)
    found = patient.check("--only", "databases").json["findings"]
    assert [one["title"] for one in found] == ["state.db lacks 8 messages saved in a backup"]

    done = patient.doctor("fix", "DB-SAVED-ROWS", "--apply", "--yes")

    assert done.code == 0, done.out
    held, others, searched = patient.ask(READS).splitlines()
    assert held == str([f"held {n}" for n in range(9)])
    assert others == str([f"other {n}" for n in range(3)])
    assert searched == "True"
    assert patient.check("--only", "databases").json["findings"] == []


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, "Hermes did not start"
        time.sleep(0.05)
