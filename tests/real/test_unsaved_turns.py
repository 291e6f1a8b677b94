"""Messages that a real Hermes could not save are added, and Hermes reads them in their order."""

from __future__ import annotations

import contextlib
import json
import os
import time

import pytest

from tests.conftest import RELEASES
from tests.helpers.real.release_homes import MakeHome, Patient
from tests.helpers.support import put
from tools import real_home

pytestmark = pytest.mark.real
FOLDER = "state.db.retired-wal-20261116-070812-4242"

LOSES = f"""
import os, shutil, signal
from pathlib import Path
from hermes_state import SessionDB
home = Path(os.environ["HERMES_HOME"])
history = SessionDB(home / "state.db")
history.create_session("held", "cli", model="m")
history.append_message("held", "user", "held first")
history.create_session("diverted", "cli", model="m")
history.append_message("diverted", "user", "diverted 0")
history.close()
history = SessionDB(home / "state.db")
for suffix in ("-wal", "-shm"):
    (home / f"state.db{{suffix}}").unlink()
for n in range(8):
    history.append_message("held", "assistant" if n % 2 else "user", f"held {{n}}")
place = home / "{FOLDER}"
place.mkdir()
for fd in Path("/proc/self/fd").iterdir():
    try:
        name = os.readlink(fd).removesuffix(" (deleted)").rpartition("/")[2]
    except OSError:
        continue
    if name == "state.db-wal":
        (place / name).write_bytes(fd.read_bytes())
shutil.copyfile(home / "state.db", place / "state.db")
(place / "manifest.json").write_text("{{}}")
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Writes into a deleted log, which it copies as newer releases do before they end."""

READS = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.append_message("held", "user", "held 8")
print([one["content"] for one in history.get_messages("held")])
print([one["content"] for one in history.get_messages_as_conversation("diverted")])
print(history.get_session("diverted")["message_count"])
print(len(history.search_messages("held")) > 0, len(history.search_messages("diverted")) > 0)
history.close()
"""


@pytest.mark.parametrize("version", [RELEASES[0], RELEASES[-1]])
def test_added_in_their_order(version: str, hermes_home: MakeHome) -> None:
    """From the retired log and from a transcript; Hermes goes on and finds both by search."""
    patient = Patient(version, hermes_home(version))
    with contextlib.suppress(RuntimeError):  # it is killed
        real_home.run(version, patient.home, LOSES)
    now = time.time()
    os.utime(patient.home / FOLDER, (now - 60,) * 2)
    turn = [
        {"role": "assistant", "content": "diverted 1", "timestamp": now},
        {"role": "user", "content": [{"type": "text", "text": "diverted 2"}], "timestamp": now + 1},
        {"role": "assistant", "content": "diverted 3", "timestamp": now + 2},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in turn)
    put(patient.home / "sessions/diverted.jsonl", lines)
    found = patient.check("--only", "databases").json["findings"]
    fixes = {one["fix"]["id"] for one in found if one["fix"]}
    assert {"add-retired-rows", "add-unsaved-turns"} <= fixes

    for code in ("DB-DELETED-WAL", "SESSION-UNSAVED"):
        done = patient.doctor("fix", code, "--apply", "--yes")
        assert done.code == 0, done.out

    held, diverted, count, searched = patient.ask(READS).splitlines()[-4:]
    assert held == str(["held first", *(f"held {n}" for n in range(9))])
    parts = [{"type": "text", "text": "diverted 2"}]
    assert diverted == str(["diverted 0", "diverted 1", parts, "diverted 3"])
    assert (count, searched) == ("4", "True True")
    left = patient.check("--only", "databases").codes
    assert not {"DB-DELETED-WAL", "SESSION-UNSAVED"} & set(left)
