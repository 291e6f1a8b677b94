"""Run work in a forked worker process, with the privileges of the path's owner.

SQLite opens files by path and creates others next to them. When root works on another user's
files, it does so in a worker that has permanently become that user.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import disk, limits, modules_of_root, privileges, progress
from hermes_doctor.core.system.files import close_others, snapshot

Given = TypeVar("Given")
SendLine = Callable[[str], None]
STILL = 5.0
"""Seconds of silence after which a worker is examined: a stopped one never answers."""
_HELD = "the work with the owner's rights was stopped"
_EXPECTED: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (CannotFix, CouldNotLook, Trouble)
}


class Worker:
    """The parent's end of a worker process; both exchange lines of text over two pipes."""

    def __init__(self, pid: int, read_fd: int, write_fd: int) -> None:
        self.pid = pid
        self._read_fd = read_fd
        self._write_fd: int | None = write_fd
        self._buffer = b""

    def receive(self, limit: float | None = None) -> tuple[str, str]:
        """Return the next line from the worker: its first word, and the rest.

        An expected error of the worker (CannotFix, CouldNotLook, Trouble) is raised here.
        """
        while b"\n" not in self._buffer:
            if not select.select([self._read_fd], [], [], STILL if limit is None else limit)[0]:
                if limit is not None:
                    raise CannotFix("no answer within {seconds:g} s", seconds=limit)
                if self._stopped:
                    raise CannotFix(_HELD)
                continue
            chunk = os.read(self._read_fd, 65536)
            if not chunk:
                raise CannotFix("the worker process was cut off")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        word, _, rest = line.decode("utf-8", "replace").partition(" ")
        if word in _EXPECTED:
            raise _EXPECTED[word](rest)
        return word, rest

    @property
    def has_output(self) -> bool:
        """Whether the worker has sent something that was not read yet."""
        return b"\n" in self._buffer or bool(select.select([self._read_fd], [], [], 0)[0])

    def send(self, message: str) -> None:
        """Send a line to the worker; wait until it fits into the pipe."""
        line = f"{message}\n".encode()
        while line and self._write_fd is not None:
            if select.select([], [self._write_fd], [], STILL)[1]:
                try:
                    line = line[os.write(self._write_fd, line) :]
                except BrokenPipeError:
                    self.receive()  # raises the error that ended the worker
            elif self._stopped:
                raise CannotFix(_HELD)

    def close_input(self) -> None:
        """Close our end of the pipe to the worker."""
        if self._write_fd is not None:
            os.close(self._write_fd)
            self._write_fd = None

    @property
    def _stopped(self) -> bool:
        """Whether its owner stopped the process with a signal, as he may at any time."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except (OSError, IndexError):
            return False

    @property
    def alive(self) -> bool:
        """Whether the worker still runs; its locks end with it."""
        return os.waitpid(self.pid, os.WNOHANG) == (0, 0)


def run_shares(
    shares: Sequence[Sequence[Given]], work: Callable[[Sequence[Given]], str]
) -> list[str]:
    """Return the result for each share: the first is done here, each other one in a worker."""
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(_beginning(work, share)) for share in shares[1:]]
        return [*map(work, shares[:1]), *map(wait_for_result, others)]


def _beginning(
    work: Callable[[Sequence[Given]], str], share: Sequence[Given]
) -> AbstractContextManager[Worker]:
    return start_worker(None, lambda _: work(share))


def lines_from_parent() -> Iterator[str]:
    """Yield the lines that the parent sends, as they come; called in a worker."""
    with os.fdopen(0) as lines:
        for line in lines:
            yield line.rstrip("\n")


def run_as_owner(path: Path, work: Callable[[Path], str]) -> str:
    """Run `work` on a database with the privileges of its owner, and return the result.

    If the owner cannot reach the database by name, root moves it, with its write-ahead log, into a
    private temporary folder, works on it there and moves it back.
    """
    user = privileges.of(path)
    if user is None:
        return work(path)
    if user.can_reach:
        with start_worker(path, lambda say: run_with_progress(say, path, work)) as other:
            return wait_for_result(other)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="hermes-doctor-") as room:
        inside = Path(room) / path.name
        _move(path, inside)
        try:
            return work(inside)
        finally:
            _move(inside, path)


def wait_for_result(worker: Worker) -> str:
    """Wait for the worker's result; its progress messages are passed on to our listener."""
    word, result = worker.receive()
    while word == "said":
        share, _, what = result.partition(" ")
        progress.report(what, float(share) if share != "?" else None)
        word, result = worker.receive()
    return result


def run_with_progress(send_line: SendLine, path: Path, work: Callable[[Path], str]) -> str:
    """Run `work` in a worker and send its progress messages to the parent."""
    with progress.send_to(
        lambda what, share: send_line(f"{'?' if share is None else share} {what}")
    ):
        return work(path)


def _move(old: Path, new: Path) -> None:
    """Move a database and its write-ahead log or journal to another folder."""
    for suffix in ("", "-wal", "-journal"):
        source, target = (path.with_name(path.name + suffix) for path in (old, new))
        if snapshot(source).kind == "file":
            with disk.new_file(target) as fd:
                disk.copy(source, fd)
            disk.remove(source)


@contextmanager
def start_worker(path: Path | None, work: Callable[[SendLine], str]) -> Iterator[Worker]:
    """Start a worker that runs `work` with the privileges of a path's owner, or with ours.

    It is killed when the context ends, and when this process ends.
    """
    import ctypes

    mine = privileges.of(path) if path else None
    mine = mine if mine and mine.can_reach else None
    if mine is not None or modules_of_root.is_asking():
        _load_all()
    die_with = ctypes.CDLL(None)
    (reading, writing), (hearing, telling) = os.pipe(), os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        _live(writing, hearing, mine, work, parent, die_with)
    os.close(writing)
    os.close(hearing)
    other = Worker(pid, reading, telling)
    try:
        yield other
    finally:
        os.close(reading)
        other.close_input()
        with contextlib.suppress(ChildProcessError):
            if other.alive:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


PRELOAD = ("hermes_doctor.sqlite", "encodings")
"""The packages whose code runs in workers. Python loads an encoding when it is first used."""


def _load_all() -> None:
    """Import all modules that the work may need: the other user may not be able to read them."""
    import importlib
    import pkgutil

    names = ("concurrent.futures.thread", "fcntl", "hashlib", "json", "mmap", "sqlite3", "tempfile")
    for name in names:
        importlib.import_module(name)
    for name in PRELOAD:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            with contextlib.suppress(ImportError):  # some encodings exist only on Windows
                importlib.import_module(module.name)


def _live(
    writing: int,
    hearing: int,
    mine: privileges.Privileges | None,
    work: Callable[[SendLine], str],
    parent: int,
    die_with: object,
) -> None:
    """Run the work in the worker process; never returns."""
    try:
        os.dup2(hearing, 0)
        close_others(writing)
        if mine is not None:
            mine.become()
        with contextlib.suppress(AttributeError):
            die_with.prctl(1, signal.SIGKILL)  # type: ignore[attr-defined]
        if os.getppid() != parent:
            os._exit(0)
        os.umask(0o077)
        _say(writing, "done", work(lambda message: _say(writing, "said", message)))
    except BaseException as error:  # noqa: BLE001
        expected = type(error).__name__ in _EXPECTED
        message = str(error) if expected else f"it failed ({type(error).__name__})"
        if isinstance(error, MemoryError):
            message = limits.reason("it", limits.COMMAND)
        with contextlib.suppress(OSError):
            _say(writing, type(error).__name__ if expected else "CannotFix", message)
    finally:
        os._exit(0)


def _say(writing: int, word: str, message: str) -> None:
    line = f"{word} {' '.join(message.split())}\n".encode()
    while line:
        line = line[os.write(writing, line) :]
