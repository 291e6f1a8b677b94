"""A process whose child does its work passes on what asks it to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes_doctor.system.privileges import Privileges
from hermes_doctor.system.root_parent import ask_root
from hermes_doctor.system.separate_process import run_as
from hermes_doctor.system.signals import Interrupted, interruptible
from tests.helpers.crash_server import STRANGER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
USER = Privileges(STRANGER, STRANGER, (STRANGER,), Path("/"), can_reach=True)
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_child_ends_by_itself(number: int) -> None:
    """It rolls back and answers; afterwards the signals do what they did before."""
    before = [signal.getsignal(one) for one in NUMBERS]

    def work() -> str:
        try:
            with interruptible():
                ask_root("signal")
                time.sleep(60)
        except Interrupted:
            return "rolled back"
        return "not told"

    actions = {"signal": lambda: os.kill(os.getpid(), number)}
    assert run_as(USER, work, actions, writes=True) == "rolled back"

    assert [signal.getsignal(one) for one in NUMBERS] == before


def test_it_ends_as_its_child_did() -> None:
    """Where the child has nothing to roll back, both end by the signal."""
    program = (
        "import os, signal, time; from pathlib import Path\n"
        "from hermes_doctor.system.privileges import Privileges\n"
        "from hermes_doctor.system.root_parent import ask_root\n"
        "from hermes_doctor.system.separate_process import run_as\n"
        f"user = Privileges({STRANGER}, {STRANGER}, ({STRANGER},), Path('/'), True)\n"
        "actions = {'signal': lambda: os.kill(os.getpid(), signal.SIGTERM)}\n"
        "run_as(user, lambda: (ask_root('signal'), time.sleep(60)), actions, writes=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.returncode == -signal.SIGTERM, done.stderr


def test_an_answer_belongs_to_its_question() -> None:
    """A signal during a question waits for the answer, so that the next one gets its own."""

    def first() -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)
        return "first"

    def work() -> list[str]:
        said = []
        try:
            with interruptible():
                said.append(ask_root("first"))
                said.append("not interrupted")
        except Interrupted:
            said.append(ask_root("second"))
        return said

    actions = {"first": first, "second": lambda: "second"}
    assert run_as(USER, work, actions, writes=True) == ["second"]
