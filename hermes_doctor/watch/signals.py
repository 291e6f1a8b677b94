"""SIGTERM and Ctrl-C end a watch, SIGHUP lets it look now.

A look may be cut off at any moment, since it only reads. Everything else of ours is short, and a
repair has its own way to end: it is taken back or finished first.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType


class Ending(BaseException):
    """The watch was told to end in the middle of a look."""


class Signals:
    """What this process was told meanwhile."""

    def __init__(self) -> None:
        self.ending = False
        self.hurry = False
        """Somebody wants a look now."""
        self._cuts = False
        self._read, self._write = os.pipe()
        for end in (self._read, self._write):
            os.set_blocking(end, False)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Listen to them for as long as the context lasts."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._hear) for number in numbers}
        try:
            yield
        finally:
            for number, old in before.items():
                signal.signal(number, old)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.hurry = True
        else:
            self.ending = True
        with contextlib.suppress(OSError):  # full: then it is awake already
            os.write(self._write, b".")
        if self.ending and self._cuts:
            self._cuts = False
            raise Ending

    @contextlib.contextmanager
    def cutting(self) -> Iterator[None]:
        """What happens in here may be cut off."""
        if self.ending:
            raise Ending
        self._cuts = True
        try:
            yield
        finally:
            self._cuts = False

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until something is heard."""
        if not (self.ending or self.hurry):
            select.select([self._read], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 512):
                pass
