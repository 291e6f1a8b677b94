"""A process whose child does its work passes on what asks it to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.core.system.root_parent import ask_root
from hermes_doctor.core.system.separate_process import run_as
from hermes_doctor.core.system.signals import Interrupted, interruptible
from tests.helpers import budget
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
        "from hermes_doctor.core.system.privileges import Privileges\n"
        "from hermes_doctor.core.system.root_parent import ask_root\n"
        "from hermes_doctor.core.system.separate_process import run_as\n"
        f"user = Privileges({STRANGER}, {STRANGER}, ({STRANGER},), Path('/'), True)\n"
        "actions = {'signal': lambda: os.kill(os.getpid(), signal.SIGTERM)}\n"
        "run_as(user, lambda: (ask_root('signal'), time.sleep(60)), actions, writes=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.returncode == -signal.SIGTERM, done.stderr


RACES = """
import os, random, signal, sys, time
from pathlib import Path
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.core.system.separate_process import run_as
user = Privileges({stranger}, {stranger}, ({stranger},), Path("/"), True)
dice, number, lost = random.Random({seed}), {number}, 0
heard = []
signal.signal(number, lambda *_: heard.append(os.getpid()))
def work():
    until = time.monotonic() + 0.01
    while time.monotonic() < until and not heard:
        time.sleep(0.0005)
    return bool(heard)
for _ in range({races}):
    del heard[:]
    sender = os.fork()
    if not sender:
        time.sleep(dice.uniform(0, 0.012))
        os.kill(os.getppid(), number)
        os._exit(0)
    dice.random()
    told = run_as(user, work, {{}}, writes={writes})
    in_time = os.waitpid(sender, os.WNOHANG)[0] == sender
    os.waitpid(sender, 0) if not in_time else None
    time.sleep(0)
    lost += heard != [os.getpid()]
print(lost)
"""


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_with_handlers_hears_each_signal(number: int, writes: bool) -> None:
    """A signal at any moment before or after the fork reaches the watch exactly once."""
    program = RACES.format(
        stranger=STRANGER,
        seed=budget.chance(7).random(),
        number=int(number),
        races=budget.tries(20, 200),
        writes=writes,
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"0\n"), done.stderr


def test_the_child_hears_what_came_around_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither process has the handlers of the other one at that moment."""
    fork = os.fork

    def slow() -> int:
        pid = fork()
        if pid:
            os.kill(pid, signal.SIGHUP)  # before it has handlers of its own
        else:
            time.sleep(0.2)
        return pid

    heard: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda *_: heard.append(1))
    monkeypatch.setattr(os, "fork", slow)
    try:
        assert run_as(USER, lambda: len(heard), {}, writes=True) == 1
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_watch_survives_its_child() -> None:
    """If the child is killed, the handlers of the parent are called, and the parent goes on."""
    heard: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda *_: heard.append(1))

    def both() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        [child] = psutil.Process().children()
        child.kill()

    try:
        with pytest.raises(CouldNotLook):
            run_as(USER, lambda: ask_root("both"), {"both": both}, writes=True)
        assert heard == [1]
    finally:
        signal.signal(signal.SIGHUP, before)


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
