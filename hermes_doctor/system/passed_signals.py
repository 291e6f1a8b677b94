"""Pass signals on to a child process that does the work of this one."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class PassedSignals:
    """Passes the signals that ask a process to end on to the child, which may be writing."""

    def __init__(self) -> None:
        self._pid = 0
        self._came: list[int] = []
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            kept = {one: signal.getsignal(one) for one in _NUMBERS}
            self._before = {one: old for one, old in kept.items() if old is not signal.SIG_IGN}
            for number in self._before:
                signal.signal(number, self._handle)

    def send_to(self, pid: int) -> None:
        """Pass on what came since, and what comes from now on."""
        self._pid = pid
        for number in self._came:
            os.kill(pid, number)

    def _handle(self, number: int, _: object) -> None:
        if number == signal.SIGINT and _is_in_foreground():
            return  # Ctrl-C reaches the child as well
        self._came.append(number)
        if self._pid:
            with contextlib.suppress(OSError):
                os.kill(self._pid, number)

    def restore(self) -> None:
        """Let the signals do what they did before."""
        for number, old in self._before.items():
            signal.signal(number, old)

    def end_too(self) -> None:
        """End by the signal that has ended the child, if one was passed on."""
        self.restore()
        for number in self._came[-1:]:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _is_in_foreground() -> bool:
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
