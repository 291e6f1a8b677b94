"""Scripts run as the owner of a home, in folders that he cannot exchange."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from hermes_doctor.core.system import limits
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.operations.learning.isolation import DoesNotStart, Lesson, ask_all

SCRIPT = """
import json, os
home = os.environ["HERMES_HOME"]
place = os.environ["HOME"]
above = os.path.dirname(place)
try:
    os.rename(place, place + "-away")
    os.rename(place + "-away", place)
    moved = True
except OSError:
    moved = False
owners = [os.stat(one).st_uid for one in (above, place, home, os.environ["TMPDIR"])]
writable = [os.access(one, os.W_OK) for one in (above, place, home, os.environ["TMPDIR"])]
print(json.dumps([moved, os.getuid(), owners, writable, os.getcwd() == home]))
"""
USER = 12345
PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(PYTHON is None, reason="needs a Python that every user may run")
def test_the_owner_cannot_exchange_a_folder(tmp_path: Path) -> None:
    """Root makes folders there for later scripts, and would follow a symlink in their place."""
    user = Privileges(USER, USER, (), tmp_path, can_reach=True)
    lessons = {name: Lesson(SCRIPT) for name in ("one", "two")}

    found = ask_all(Path(PYTHON or ""), lessons, seconds=30, user=user, at_once=1)

    for moved, me, (above, *own), writable, inside in found.values():
        assert (moved, me, own, inside) == (False, USER, [USER] * 3, True)
        assert above != USER and writable == [False, True, True, True]


def test_without_another_user() -> None:
    """The folders belong to the user who runs the lessons."""
    found = ask_all(Path(PYTHON or "python3"), {"one": Lesson(SCRIPT)}, seconds=30)

    assert found["one"][1:3] == [os.getuid(), [os.getuid()] * 4]


SLOW = "import json, time; time.sleep(1.5); print(json.dumps('done'))"


def test_what_hangs_ends_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts the seconds of the clock, whatever else the machine does."""
    monkeypatch.setattr(limits, "factor", lambda: 20.0)
    began = time.monotonic()

    with pytest.raises(DoesNotStart, match="did not answer within 1 s"):
        ask_all(Path(PYTHON or "python3"), {"one": Lesson("while True: pass")}, seconds=1)

    assert time.monotonic() - began < 15


def test_a_script_that_fails() -> None:
    """Its own reason is told, also while another script is running."""
    lessons = {"bad": Lesson("raise ValueError('no such table')"), "slow": Lesson(SLOW)}

    with pytest.raises(DoesNotStart, match="no such table"):
        ask_all(Path(PYTHON or "python3"), lessons, seconds=20, at_once=2)
