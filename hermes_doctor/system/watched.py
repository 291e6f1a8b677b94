"""Threads that run methods themselves, while another thread watches the limits of these calls.

Handing each call to a new thread instead would cost `check` about 20 ms more CPU
(`benchmarks/trees.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

deciding = threading.Lock()
"""Held while a call ends or is given up: only one of the two can happen."""
_local = threading.local()


class Abandoned(BaseException):
    """Raised in an abandoned thread when its call returns or it makes another one: to end it."""


class Call(Protocol):
    """One call with a time limit."""

    owner: object
    done: threading.Event

    def is_overdue(self) -> bool:
        """Whether its limit has passed."""

    def give_up(self) -> None:
        """Let all callers know that the limit has passed."""


class WatchedThread:
    """One watched thread."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        """The calls in progress, outermost first."""
        self.abandoned = False

    def call(self, call: Call, make: Callable[[], None]) -> None:
        """Make a call in this thread."""
        self._calls.append(call)
        try:
            make()
        finally:
            self._calls.pop()
        if self.abandoned:
            raise Abandoned

    def give_up_overdue(self) -> bool:
        """Abandon the thread if one of its calls is overdue; only the watching thread may ask."""
        with deciding:
            calls = self._open()
            late = [call for call in calls if call.is_overdue()]
            if not late:
                return False
            late[-1].give_up()  # those around it are late because of it
            self._leave(calls)
            return True

    def abandon(self) -> None:
        """Abandon the thread: what it does from now on has no effect."""
        with deciding:
            self._leave(self._open())

    def _open(self) -> list[Call]:
        return [call for call in self._calls if not call.done.is_set()]

    def _leave(self, calls: list[Call]) -> None:
        """Release the calls around the innermost one: the next thread that needs one makes it.

        The innermost one stays with this thread, so that its limit is spent only once.
        """
        self.abandoned = True
        for call in calls[:-1]:
            call.owner = None


def current() -> WatchedThread | None:
    """The worker of this thread; None if the thread is not watched."""
    return getattr(_local, "worker", None)


def enter(worker: WatchedThread | None) -> None:
    """Mark this thread as the worker's; None removes the mark."""
    _local.worker = worker
