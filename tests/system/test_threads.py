"""Threads are used again, and nothing of their last work is left in them."""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

import pytest

from hermes_doctor.system import threads

LONG = 30.0
T = TypeVar("T")


@pytest.fixture(autouse=True)
def _none_idle() -> None:
    threads._idle.clear()


def done(work: Callable[[], T]) -> T:
    """The answer of work in another thread, once that thread can be used again."""
    answers: list[T] = []
    before = len(threads._idle) or 1
    threads.start(lambda: answers.append(work()), "test")
    wait(lambda: len(threads._idle) == before)
    return answers[0]


def wait(until: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    pause = threading.Event()
    for _ in range(int(LONG / 0.01)):
        if until():
            return
        pause.wait(0.01)
    raise TimeoutError


def test_used_again() -> None:
    """Work that follows work is done by the same thread."""
    assert len({done(threading.get_ident) for _ in range(5)}) == 1


def test_one_that_hangs_keeps_nobody_waiting() -> None:
    """It is left alone, and another thread does the next work."""
    hanging, end = threading.Event(), threading.Event()

    def hang() -> None:
        hanging.set()
        end.wait(LONG)

    threads.start(hang, "hangs")
    assert hanging.wait(LONG)

    assert done(lambda: 7) == 7

    end.set()
    wait(lambda: len(threads._idle) == 2)


def test_names() -> None:
    """A thread bears the name of its work while it is at it."""
    names = []
    for name in ("check-one", "probe-two"):
        threads.start(lambda: names.append(threading.current_thread().name), name)
        wait(lambda: bool(threads._idle))

    assert names == ["check-one", "probe-two"]


def test_nothing_is_left() -> None:
    """What work sets for its thread, or holds on to, is gone for the next."""
    mine = contextvars.ContextVar("mine", default="unset")

    class Held:
        pass

    held = Held()
    seen = weakref.ref(held)
    done(lambda held=held: (mine.set("set"), held))  # type: ignore[misc]
    del held

    assert done(mine.get) == "unset"
    wait(lambda: seen() is None)


def test_a_fork_starts_its_own() -> None:
    """The threads that wait for work are not there in a fork."""
    done(lambda: None)
    pid = os.fork()
    if pid == 0:
        answered = threading.Event()
        threads.start(answered.set, "test")
        os._exit(0 if answered.wait(LONG) else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
