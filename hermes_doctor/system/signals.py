"""Ctrl-C, a closed terminal and a request to end: taken when nothing is half-done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, a closed terminal or a request to end."""


_held: list[int] = []
_depth = 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP roll back as Ctrl-C does; a SIGHUP that has another use keeps it."""
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
def uninterrupted() -> Iterator[None]:
    """Hold signals back while names change; one that came is acted upon afterwards."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
    if not _depth and _held:
        _held.clear()
        raise Interrupted
