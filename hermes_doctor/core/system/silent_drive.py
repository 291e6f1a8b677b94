"""Say that a drive does not answer, in a command that may take as long as it needs.

A dead network drive holds the command in the kernel, where it can neither print nor be
interrupted. So a thread asks the drives now and then, and says when one does not answer.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable

from hermes_doctor.core.message import Message, duration, text
from hermes_doctor.core.system import memory_limit, time_limits
from hermes_doctor.core.system.files import StrPath

OFTEN = 5.0
"""Seconds between two questions."""
PATIENCE = 20.0
"""Seconds within which a drive must answer, more on a busy machine."""
_places: dict[str, None] = {}
"""Where the command works, in the order in which it went there."""


def note(place: StrPath) -> None:
    """Remember a folder that the command is about to use."""
    _places[os.fspath(place)] = None


def watch(say: Callable[[Message], None]) -> None:
    """Ask the drives of the noted folders from now on."""
    with contextlib.suppress(RuntimeError):  # no memory or no thread is left for it
        memory_limit.start_thread(_watch, "drives", say)


def _watch(say: Callable[[Message], None]) -> None:
    while True:
        time.sleep(OFTEN)
        for place in [*_places]:
            with contextlib.suppress(RuntimeError):
                _ask(place, say)


def _ask(place: str, say: Callable[[Message], None]) -> None:
    """Say that a drive does not answer, and once more when it does."""
    answered = threading.Event()
    memory_limit.start_thread(_touch, "drive", place, answered)
    if answered.wait(time_limits.stretch(PATIENCE)):
        return
    say(
        text(
            "The drive of {place} has not answered for {time}, and the command waits for it. To "
            "end the command: kill -9 {pid}. No file is then left half-written.",
            place=place,
            time=duration(PATIENCE),
            pid=os.getpid(),
        )
    )
    answered.wait()
    say(text("The drive of {place} answers again.", place=place))


def _touch(place: str, answered: threading.Event) -> None:
    with contextlib.suppress(OSError):
        os.statvfs(place)
    answered.set()
