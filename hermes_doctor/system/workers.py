"""Work in a process of its own, with the rights of whoever owns the place.

SQLite opens files by path and makes others beside them. Where root works for somebody else, it
does so in a child that has become that user for good.
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

from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.system import disk, privileges, progress
from hermes_doctor.system.files import snapshot

Given = TypeVar("Given")
Say = Callable[[str], None]
STILL = 5.0
"""Seconds of silence after which a child is looked at: one that is stopped will never answer."""
_HELD = "somebody has stopped the work under the owner's rights"
_EXPECTED: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (CannotFix, CouldNotLook, Trouble)
}


class Child:
    """A process at work; what it says, and what it is told, comes line by line."""

    def __init__(self, pid: int, reading: int, telling: int) -> None:
        self.pid = pid
        self._reading = reading
        self._telling: int | None = telling
        self._heard = b""

    def hear(self, limit: float | None = None) -> tuple[str, str]:
        """The next line: its first word, and the rest. Raises what the child met."""
        while b"\n" not in self._heard:
            if not select.select([self._reading], [], [], STILL if limit is None else limit)[0]:
                if limit is not None:
                    raise CannotFix(f"no answer within {limit:g} s")
                if self._stopped:
                    raise CannotFix(_HELD)
                continue
            chunk = os.read(self._reading, 65536)
            if not chunk:
                raise CannotFix("the work under the owner's rights was cut off")
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        word, _, text = line.decode("utf-8", "replace").partition(" ")
        if word in _EXPECTED:
            raise _EXPECTED[word](text)
        return word, text

    @property
    def speaks(self) -> bool:
        """Whether it has said something that was not heard yet."""
        return b"\n" in self._heard or bool(select.select([self._reading], [], [], 0)[0])

    def tell(self, text: str) -> None:
        """Say a line to it; what it has not read by then is waited for."""
        line = f"{text}\n".encode()
        while line and self._telling is not None:
            if select.select([], [self._telling], [], STILL)[1]:
                try:
                    line = line[os.write(self._telling, line) :]
                except BrokenPipeError:
                    self.hear()  # it knows why
            elif self._stopped:
                raise CannotFix(_HELD)

    def told_all(self) -> None:
        """There is nothing more to say to it."""
        if self._telling is not None:
            os.close(self._telling)
            self._telling = None

    @property
    def _stopped(self) -> bool:
        """Whether its owner holds it still, which he may for as long as he likes."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except (OSError, IndexError):
            return False

    @property
    def alive(self) -> bool:
        """Whether it is still there; what it holds, it holds only so long."""
        return os.waitpid(self.pid, os.WNOHANG) == (0, 0)


def spread(shares: Sequence[Sequence[Given]], act: Callable[[Sequence[Given]], str]) -> list[str]:
    """What is said of each share; the first is ours, the others have a process of their own."""
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(_beginning(act, share)) for share in shares[1:]]
        return [*map(act, shares[:1]), *map(answer, others)]


def _beginning(
    act: Callable[[Sequence[Given]], str], share: Sequence[Given]
) -> AbstractContextManager[Child]:
    return child(None, lambda _: act(share))


def told() -> Iterator[str]:
    """In a child: the lines that it is told, as they come."""
    with os.fdopen(0) as lines:
        for line in lines:
            yield line.rstrip("\n")


def with_rights_of(path: Path, act: Callable[[Path], str]) -> str:
    """Let `act` work on a database, its log beside it, with the rights that fit the place.

    Where its owner cannot reach it by name, root works on it in a room of its own, into which
    he cannot reach either.
    """
    user = privileges.of(path)
    if user is None:
        return act(path)
    if user.reaches:
        with child(path, lambda say: telling(say, path, act)) as other:
            return answer(other)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="hermes-doctor-") as room:
        inside = Path(room) / path.name
        _move(path, inside)
        try:
            return act(inside)
        finally:
            _move(inside, path)


def answer(other: Child) -> str:
    """What the child says in the end; what it tells of its work until then is passed on."""
    word, text = other.hear()
    while word == "said":
        share, _, what = text.partition(" ")
        progress.tell(what, float(share) if share != "?" else None)
        word, text = other.hear()
    return text


def telling(say: Say, path: Path, act: Callable[[Path], str]) -> str:
    """Do the work, and pass on what it tells of itself."""
    with progress.heard(lambda what, share: say(f"{'?' if share is None else share} {what}")):
        return act(path)


def _move(old: Path, new: Path) -> None:
    """A database and its log from one folder into another."""
    for suffix in ("", "-wal", "-journal"):
        source, target = (path.with_name(path.name + suffix) for path in (old, new))
        if snapshot(source).kind == "file":
            with disk.fresh(target) as fd:
                disk.copy(source, fd)
            disk.remove(source)


@contextmanager
def child(path: Path | None, act: Callable[[Say], str]) -> Iterator[Child]:
    """A process that does `act` with the rights that fit a path, or with ours.

    It is gone when the context ends, and when we are.
    """
    import ctypes

    mine = privileges.of(path) if path else None
    mine = mine if mine and mine.reaches else None
    if mine is not None:
        _load_all()
    die_with = ctypes.CDLL(None)
    (reading, writing), (hearing, telling) = os.pipe(), os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        _live(writing, hearing, mine, act, parent, die_with)
    os.close(writing)
    os.close(hearing)
    other = Child(pid, reading, telling)
    try:
        yield other
    finally:
        os.close(reading)
        other.told_all()
        with contextlib.suppress(ChildProcessError):
            if other.alive:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


PRELOAD = ("hermes_doctor.sqlite",)
"""Packages whose code runs in workers."""


def _load_all() -> None:
    """Load what the work may need: the other user may be unable to read our installation."""
    import importlib
    import pkgutil

    for name in ("concurrent.futures.thread", "hashlib", "json", "mmap", "sqlite3", "tempfile"):
        importlib.import_module(name)
    for name in PRELOAD:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)


def _live(
    writing: int,
    hearing: int,
    mine: privileges.Rights | None,
    act: Callable[[Say], str],
    parent: int,
    die_with: object,
) -> None:
    """The child's life; never returns."""
    try:
        os.dup2(hearing, 0)
        _shut(writing)  # the home's lock among them, which ends with its holder only
        if mine is not None:
            mine.take()
        with contextlib.suppress(AttributeError):
            die_with.prctl(1, signal.SIGKILL)  # type: ignore[attr-defined]
        if os.getppid() != parent:
            os._exit(0)
        os.umask(0o077)
        _say(writing, "done", act(lambda text: _say(writing, "said", text)))
    except BaseException as error:  # noqa: BLE001
        expected = type(error).__name__ in _EXPECTED
        text = str(error) if expected else f"it failed ({type(error).__name__})"
        with contextlib.suppress(OSError):
            _say(writing, type(error).__name__ if expected else "CannotFix", text)
    finally:
        os._exit(0)


def _shut(writing: int) -> None:
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, writing)
    os.closerange(writing + 1, most if 0 < most < 65536 else 65536)


def _say(writing: int, word: str, text: str) -> None:
    line = f"{word} {' '.join(text.split())}\n".encode()
    while line:
        line = line[os.write(writing, line) :]
