"""End `check` in time, even if its process can no longer be stopped.

A dead network drive can hold a process in the kernel, where not even SIGKILL ends it, and a long
computation can keep Python from looking at the clock. So a child process does the work, and this
one waits for its exit code, for a limited time. If the output goes into a pipe, this process passes
it on, because the child may hold its own end for ever. All this takes 15 ms of CPU.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Sequence

from hermes_doctor.core.message import Message, text
from hermes_doctor.core.system import limits

SECONDS = 14.0
"""For one home, if the machine is not busy (see `limits.patience`). The checks themselves end
earlier, so that their results can be shown."""
NETWORK = 30.0
"""More seconds with --network."""
_SLICE = 0.5
_NEXT_HOME = 255
_writing: int | None = None
"""In the child: the pipe to the process that waits."""


def is_needed(words: Sequence[str]) -> bool:
    """Whether this command must end in time; `--deep` takes as long as it needs."""
    return words[:1] == ["check"] and "--deep" not in words and hasattr(os, "fork")


def start(words: Sequence[str]) -> None:
    """Continue in a child process; this process only waits and never returns."""
    global _writing

    patience = limits.patience()
    reading, writing = os.pipe()
    outputs = _pipes()
    try:
        pid = os.fork()
    except OSError:
        os._exit(_say(text("C{reason}.", reason=limits.NO_PROCESS[1:])))
    if pid == 0:
        os.close(reading)
        _writing = writing
        for fd, (_, inner) in outputs.items():
            os.dup2(inner, fd)
        for end in {end for ends in outputs.values() for end in ends}:
            os.close(end)
        return
    os.close(writing)
    for inner in {inner for _, inner in outputs.values()}:
        os.close(inner)
    seconds = (SECONDS + (NETWORK if "--network" in words else 0)) * patience
    relays = {ours: fd for fd, (ours, _) in outputs.items()}  # of one pipe for both, either fd
    os._exit(_Guard(pid, reading, relays, seconds).wait())


def _pipes() -> dict[int, tuple[int, int]]:
    """Make a pipe for standard output and standard error, if they are pipes."""
    made: dict[int, tuple[int, int]] = {}
    for fd in (1, 2):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:  # closed by the caller
            continue
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            same = fd == 2 and 1 in made and os.path.sameopenfile(1, 2)
            made[fd] = made[1] if same else os.pipe()
    return made


def begin_home() -> None:
    """Give the time once more: for the next home."""
    _send(_NEXT_HOME)


def report(code: int) -> None:
    """Pass on the exit code; what has not ended by now is not waited for."""
    _send(code)


def _send(number: int) -> None:
    if _writing is not None:
        try:
            os.write(_writing, bytes([number]))
        except OSError:  # the other process was killed
            os._exit(number)


class _Guard:
    """The process that waits for the one that works."""

    def __init__(self, pid: int, reading: int, relays: dict[int, int], seconds: float) -> None:
        self.pid = pid
        self.reading = reading
        self.relays = relays
        """The child's outputs, each with our descriptor to which it is passed on."""
        self.seconds = self.left = seconds
        self.interrupted = 0

    def wait(self) -> int:
        """Return the exit code of the child, or our own when the time is over."""
        import select
        import signal

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)
        while self.left > 0:
            began = time.monotonic()
            pause = min(self.left, _SLICE)
            ready = select.select([self.reading, *self.relays], [], [], pause)[0]
            self.left -= min(time.monotonic() - began, pause)  # Ctrl-Z does not use up the time
            for fd in self.relays.keys() & ready:
                self._pass_on(fd)
            if self.reading not in ready:
                continue
            numbers = os.read(self.reading, 4096)
            if not numbers:
                return self._ended()
            if numbers[-1] != _NEXT_HOME:
                self._pass_on_rest()
                for _ in range(200):  # wait a moment, so that its CPU time counts as ours
                    if os.waitpid(self.pid, os.WNOHANG) != (0, 0):
                        break
                    time.sleep(0.001)
                return numbers[-1]
            self.left = self.seconds
        os.kill(self.pid, signal.SIGKILL)
        if self.interrupted:
            self._end_like(self.interrupted)
        return _say(
            text(
                "The check was ended after {seconds:g} s, because the drive of the home does not "
                "answer or a file in it takes too long to read.",
                seconds=self.seconds,
            )
        )

    def _pass_on(self, fd: int) -> None:
        """Pass on a part of the output; if nobody reads it any more, the child gets an error."""
        import select

        output = rest = os.read(fd, 1 << 16)
        try:
            while rest:
                select.select([], [self.relays[fd]], [])
                rest = rest[os.write(self.relays[fd], rest) :]
        except OSError:
            output = b""
        if not output:
            del self.relays[fd]
            os.close(fd)

    def _pass_on_rest(self) -> None:
        """Pass on what the child has written before it sent its exit code."""
        import select

        while ready := select.select([*self.relays], [], [], 0)[0]:
            for fd in ready:
                self._pass_on(fd)

    def _interrupt(self, number: int, _: object) -> None:
        """Let the child end; on a terminal, it got the signal of Ctrl-C itself."""
        import signal

        self.interrupted = number
        self.left = min(self.left, 2.0)
        if number == signal.SIGINT:
            time.sleep(0.1)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _ended(self) -> int:
        """End like the child, which has sent no exit code."""
        self._pass_on_rest()
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            self._end_like(os.WTERMSIG(status))
        return os.waitstatus_to_exitcode(status)

    def _end_like(self, number: int) -> None:
        """End by the signal that has ended the child."""
        import signal

        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _say(why: Message) -> int:
    """Say why there is no result, and return the exit code."""
    from hermes_doctor.cli.exits import exit_code_for_monitors, say_problem

    code = exit_code_for_monitors(say_problem(why, 2))
    sys.stdout.flush()
    sys.stderr.flush()
    return code
