"""Give a passphrase from a file to a program that reads it only from a terminal.

`age` reads a passphrase only from a terminal, so that it is never in an argument or a variable,
where others can read it. For a passphrase from a file, a pseudo-terminal types it.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.system.files import read

PROMPT = b": "
TICK = 0.05
MOST = 1000
"""Bytes of a passphrase. A terminal cuts off longer lines and treats control characters as
commands: one could empty the line, and then age would generate a passphrase that nobody sees."""


class Terminal:
    """The terminal of a program: the operator's own, or one that types the passphrase."""

    def __init__(self, answer: bytes | None = None, tries: int = 0) -> None:
        self.options: dict[str, Any] = {}
        self._answer, self._times = answer, tries
        self._master = self._slave = -1
        if answer is not None:
            import pty

            self._master, self._slave = pty.openpty()
            self.options = {"start_new_session": True, "preexec_fn": self._take}

    def _take(self) -> None:
        import fcntl
        import termios

        fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)

    @contextmanager
    def answer_prompts(self) -> Iterator[None]:
        """Answer the program's prompts inside this context."""
        if self._answer is None:
            yield
            return
        done = threading.Event()
        worker = threading.Thread(target=self._answers, args=(done,), daemon=True)
        worker.start()
        try:
            yield
        finally:
            done.set()
            worker.join()

    def _answers(self, done: threading.Event) -> None:
        heard, left = b"", self._times
        while not done.is_set():
            if not select.select([self._master], [], [], TICK)[0]:
                continue
            heard += os.read(self._master, 1024)  # our own end keeps it open
            if left and heard.endswith(PROMPT):
                heard, left = b"", left - 1
                os.write(self._master, (self._answer or b"") + b"\n")

    def close(self) -> None:
        """Close the pseudo-terminal."""
        for fd in (self._master, self._slave):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)


@contextmanager
def terminal(file: Path | None, *, new: bool) -> Iterator[Terminal]:
    """A terminal that types the passphrase of a file, twice if it is a new one."""
    made = Terminal(_passphrase(file), 2 if new else 1) if file else Terminal()
    try:
        yield made
    finally:
        made.close()


def _passphrase(file: Path) -> bytes:
    """Read the passphrase: the first line of a private file."""
    try:
        data, taken = read(file.expanduser(), 65536)
    except (OSError, CouldNotLook):
        raise Trouble(text("Could not read the passphrase file {file}.", file=file)) from None
    if taken.mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Trouble(text("Other users may read {file}. To solve it: chmod 600 {file}", file=file))
    line = data.split(b"\n", 1)[0].rstrip(b"\r")
    if not line:
        raise Trouble(text("{file} contains no passphrase.", file=file))
    if len(line) > MOST or any(byte < 32 or byte == 127 for byte in line):
        raise Trouble(text("The passphrase in {file} is too long or not text.", file=file))
    return line
