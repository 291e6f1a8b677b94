"""Handle Ctrl-C, SIGTERM and SIGHUP, but not in the middle of a critical section."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C, SIGTERM or SIGHUP."""


_held: list[int] = []
_depth = 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted on SIGTERM and SIGHUP too, so that they roll back as Ctrl-C does.

    A SIGHUP handler that was set before is kept.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        if _depth:
            _held.append(number)
        else:
            raise Interrupted

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def delay_signals() -> Iterator[None]:
    """Delay signals while files are renamed; Interrupted is raised afterwards if one came."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
    if not _depth and _held:
        _held.clear()
        raise Interrupted
