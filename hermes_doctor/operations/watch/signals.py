"""Handles signals: SIGTERM and Ctrl-C end a watch, SIGHUP starts a round now.

An examination may be interrupted at any moment, because it only reads. The other work of a round is
short, and a repair handles its own interruption: it is rolled back or finished first.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType


class StopRequested(BaseException):
    """The watch was told to stop during an examination."""


class Signals:
    """The signals that this process has received."""

    def __init__(self) -> None:
        self.ending = False
        self.hurry = False
        """A round was requested now."""
        self._cuts = False
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Handle the signals inside this context."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._hear) for number in numbers}
        # Python calls the handler only between two steps of the program. A signal that arrives just
        # before `select` would wait with it, so the interpreter itself writes into the pipe.
        old_pipe = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old_pipe)
            for number, old in before.items():
                signal.signal(number, old)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.hurry = True
        else:
            self.ending = True
        if self.ending and self._cuts:
            self._cuts = False
            raise StopRequested

    @contextlib.contextmanager
    def stoppable(self) -> Iterator[None]:
        """Raise StopRequested in this context when a signal asks to stop."""
        if self.ending:
            raise StopRequested
        self._cuts = True
        try:
            yield
        finally:
            self._cuts = False

    def wait(self, seconds: float) -> None:
        """Sleep for that long, or until a signal arrives."""
        if not (self.ending or self.hurry):
            select.select([self._read], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 512):
                pass
