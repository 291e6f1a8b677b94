"""Call a probe method once per run, share its result, and give up after a time limit.

A method must not hang a check run: on a dead network drive a read never returns, and nothing can
interrupt it. So its callers wait only until the limit, and the thread that reads is abandoned. A
watched thread (see `WatchedThread`) runs the method itself, because another thread watches the
limit. Any other thread lets a new thread run it, and waits.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits

OVER = "the time for the whole check was over"
DEEP = 120
"""How many times longer a deep check run may take."""
P = ParamSpec("P")
T = TypeVar("T")


class CachedCall:
    """The result of one call, or the exception that it raised."""

    __slots__ = ("answer", "clock", "done", "end", "error", "limit", "name", "owner")

    def __init__(self, name: str, limit: float, end: float = math.inf) -> None:
        self.name = name.replace("_", " ")
        self.limit = limit
        self.end = end
        """The moment of the clock at which the time for the whole run is over."""
        self.clock = limits.Stopwatch()
        self.done = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None
        self.owner: object = None
        """Who makes the call: a watched thread, or the cell itself for a new thread. None: nobody
        does, and the next caller will."""

    def begin(self, owner: object) -> None:
        """Note who makes the call from now on."""
        self.owner, self.clock = owner, limits.Stopwatch()

    def fill(self, owner: object, ask: Callable[[], Any]) -> None:
        """Make the call and store its result or exception, unless it was given up by then."""
        answer: Any = None
        error: BaseException | None = None
        try:
            answer = ask()
        except MemoryError:  # its traceback would keep the memory
            error = CouldNotLook(limits.reason(f"reading the {self.name}"))
        except BaseException as raised:
            error = raised
        with deciding:
            if self.owner is not owner or self.done.is_set():
                return
            if isinstance(error, Abandoned):
                self.owner = None
                return
            self.answer, self.error = answer, error
            self.done.set()

    def is_overdue(self) -> bool:
        """Whether the limit has passed; only the watching thread may ask."""
        return self.clock.read() >= self.limit or time.monotonic() >= self.end

    def give_up(self) -> None:
        """Let all callers know that the limit has passed."""
        self.error = self.too_slow()
        self.done.set()

    def wait(self) -> bool:
        """Wait until it is done; return False if the caller must ask again.

        That is so if nobody makes the call any more, or if another thread has taken it over.
        """
        if self.done.is_set():
            return True
        begun = self.clock

        def changed() -> bool:
            return self.owner is None or self.clock is not begun

        clock = limits.Stopwatch(begun.started_at)
        if clock.wait(self.done, self.limit, lambda: changed() or time.monotonic() >= self.end):
            return True
        if changed() and time.monotonic() < self.end:
            return False
        raise self.too_slow()

    def too_slow(self) -> CouldNotLook:
        """The exception for a caller that waited until the limit."""
        if time.monotonic() >= self.end:
            return CouldNotLook(OVER)
        return CouldNotLook(
            "reading the {what} took longer than {seconds:g} s", what=self.name, seconds=self.limit
        )


def start_thread(name: str, cell: CachedCall, ask: Callable[[], Any]) -> None:
    """Let a new thread make a call; if it hangs, it is left alone."""
    cell.begin(cell)
    try:
        limits.start_thread(cell.fill, name, cell, ask)
    except RuntimeError:
        cell.error = CouldNotLook(limits.NO_THREAD)
        cell.done.set()


def limited(name: str, limit: float, ask: Callable[[], T], end: float = math.inf) -> T:
    """Call a function in a new thread; raise CouldNotLook if it takes longer than the limit.

    `end` is the moment of the clock at which it is given up even on a busy machine.
    """
    cell = CachedCall(name, limit, end)
    start_thread(f"probe-{name}", cell, ask)
    cell.wait()
    if cell.error is not None:
        raise cell.error
    answer: T = cell.answer
    return answer


class CallCache:
    """The results of all calls of one run, and how long a call may take in it."""

    def __init__(self, *, deep: bool = False, seconds: float = math.inf) -> None:
        self.calls: dict[tuple[object, ...], CachedCall] = {}
        self.guard = threading.Lock()
        self.deep = deep
        self.end = time.monotonic() + seconds
        """The moment from which all calls that have not ended are given up."""


class HasCache(Protocol):
    """The attribute that an object with `@once` methods must have."""

    cache: CallCache


S = TypeVar("S", bound=HasCache)


def once(
    limit: float, what: str = ""
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Run a method at most once for each set of arguments.

    Callers get `CouldNotLook` once `limit` seconds have passed since it began. A busy machine gets
    more time (see `limits`), and a deep check run gets `DEEP` times as much. The reason says
    `what` could not be read; without it, the name of the method.
    """

    def decorate(look: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        name = what or look.__name__

        @functools.wraps(look)
        def ask(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            cache = self.cache
            key = (look.__qualname__, args, tuple(sorted(kwargs.items())))
            worker = current()
            question = functools.partial(look, self, *args, **kwargs)
            while True:
                if worker is not None and worker.abandoned:
                    raise Abandoned
                with cache.guard:
                    cell = cache.calls.get(key)
                    if cell is None:
                        patience = limit * (DEEP if cache.deep else 1)
                        cell = cache.calls[key] = CachedCall(name, patience, cache.end)
                    mine = cell.owner is None and not cell.done.is_set()
                    if mine:
                        cell.begin(worker or cell)
                if mine and worker is not None:
                    worker.call(cell, functools.partial(cell.fill, worker, question))
                elif mine:
                    start_thread(f"probe-{name}", cell, question)
                if cell.wait():
                    break
            if cell.error is not None:
                # A fresh instance for each caller: a traceback is not shared between threads.
                if isinstance(cell.error, CouldNotLook):
                    raise CouldNotLook(*cell.error.args)
                raise cell.error
            answer: T = cell.answer
            return answer

        return ask

    return decorate


deciding = threading.Lock()
"""Held while a call ends or is given up: only one of the two can happen."""
_local = threading.local()


class Abandoned(BaseException):
    """Raised in an abandoned thread when its call returns or it makes another one: to end it."""


class Call(Protocol):
    """One call with a time limit."""

    owner: object
    done: threading.Event

    def is_overdue(self) -> bool:
        """Whether its limit has passed."""

    def give_up(self) -> None:
        """Let all callers know that the limit has passed."""


class WatchedThread:
    """A thread that makes calls itself, while another thread watches their limits.

    Handing each call to a new thread instead would cost `check` about 20 ms more CPU
    (`benchmarks/trees.py`).
    """

    def __init__(self) -> None:
        self._calls: list[Call] = []
        """The calls in progress, outermost first."""
        self.abandoned = False

    def call(self, call: Call, make: Callable[[], None]) -> None:
        """Make a call in this thread."""
        self._calls.append(call)
        try:
            make()
        finally:
            self._calls.pop()
        if self.abandoned:
            raise Abandoned

    def give_up_overdue(self) -> bool:
        """Abandon the thread if one of its calls is overdue; only the watching thread may ask."""
        with deciding:
            calls = self._open()
            late = [call for call in calls if call.is_overdue()]
            if not late:
                return False
            late[-1].give_up()  # those around it are late because of it
            self._leave(calls)
            return True

    def abandon(self) -> None:
        """Abandon the thread: what it does from now on has no effect."""
        with deciding:
            self._leave(self._open())

    def _open(self) -> list[Call]:
        return [call for call in self._calls if not call.done.is_set()]

    def _leave(self, calls: list[Call]) -> None:
        """Release the calls around the innermost one: the next thread that needs one makes it.

        The innermost one stays with this thread, so that its limit is spent only once.
        """
        self.abandoned = True
        for call in calls[:-1]:
            call.owner = None


def current() -> WatchedThread | None:
    """The worker of this thread; None if the thread is not watched."""
    return getattr(_local, "worker", None)


def enter(worker: WatchedThread | None) -> None:
    """Mark this thread as the worker's; None removes the mark."""
    _local.worker = worker
