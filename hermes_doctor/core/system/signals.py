"""Handle Ctrl-C, SIGTERM and SIGHUP, but not in a critical section, or pass them to a child."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


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


_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held_back() -> Iterator[Callable[[], object]]:
    """Hold these signals back around a fork, in both processes, until what is yielded is called.

    Otherwise one that comes at that moment finds the handlers of the other process.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)

    def let_in() -> object:
        return signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield let_in
    finally:
        let_in()


class PassedSignals:
    """Passes the signals that ask a process to end on to the child, which may be writing."""

    def __init__(self) -> None:
        self._pid = 0
        self._came: list[int] = []
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            kept = {signals: signal.getsignal(signals) for signals in _NUMBERS}
            self._before = {one: old for one, old in kept.items() if old is not signal.SIG_IGN}
            for number in self._before:
                signal.signal(number, self._handle)

    def send_to(self, pid: int) -> None:
        """Pass on what came since, and what comes from now on."""
        self._pid = pid
        for number in self._came:
            os.kill(pid, number)

    def _handle(self, number: int, _: object) -> None:
        if number == signal.SIGINT and is_in_foreground():
            return  # Ctrl-C reaches the child as well
        self._came.append(number)
        if self._pid:
            with contextlib.suppress(OSError):
                os.kill(self._pid, number)

    def stop_sending(self) -> None:
        """Pass nothing on any more: the child ends, and its number may be used again."""
        self._pid = 0

    def forget(self) -> None:
        """Let the signals do what they did before; the parent passes on what came."""
        self._came = []
        self.restore()

    def restore(self) -> None:
        """Let the signals do what they did before, and tell a process with handlers what came."""
        for number, old in self._before.items():
            signal.signal(number, old)
        came, self._came = self._came, []
        for one in came:
            if self._has_handler(one):
                self._before[signal.Signals(one)](one, None)

    def _has_handler(self, number: int) -> bool:
        """Whether a signal does not just end this process; a watch finishes its round."""
        old = self._before.get(signal.Signals(number))
        return callable(old) and old is not signal.default_int_handler

    def end_too(self) -> None:
        """End by the signal that has ended the child, if one was passed on."""
        came = [number for number in self._came if not self._has_handler(number)]
        self.restore()
        for number in came[-1:]:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def is_in_foreground() -> bool:
    """Whether the terminal's own signals, such as that of Ctrl-C, reach this process."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
