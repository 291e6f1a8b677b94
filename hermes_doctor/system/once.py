"""Call a probe method once per run, share its result, and give up after a time limit."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system import threads, time_limits

DEEP = 120
"""How many times longer a deep check run may take."""
P = ParamSpec("P")
T = TypeVar("T")


class CachedCall:
    """The result of one call, or the exception that it raised."""

    __slots__ = ("answer", "done", "error", "started_at")

    def __init__(self) -> None:
        self.started_at = time.monotonic()
        self.done = threading.Event()
        self.answer: Any = None
        self.error: BaseException | None = None

    def fill(self, ask: Callable[[], Any]) -> None:
        """Make the call and store its result or its exception."""
        try:
            self.answer = ask()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class CallCache(Protocol):
    """The cache attributes that an object with `@once` methods must have."""

    cells: dict[tuple[object, ...], CachedCall]
    guard: threading.Lock
    deep: bool


S = TypeVar("S", bound=CallCache)


def once(
    limit: float,
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Run a method at most once for each set of arguments, in a thread of its own.

    The thread enforces the limit: when a read hangs (a dead network drive, a driver that never
    answers), callers get `CouldNotLook` once `limit` seconds have passed since it began, and the
    thread is left behind. A busy machine gets more time (see `time_limits`), and a deep check run
    gets `DEEP` times as much.
    """

    def decorate(look: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        @functools.wraps(look)
        def ask(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            key = (look.__name__, args, tuple(sorted(kwargs.items())))
            with self.guard:
                cell = self.cells.get(key)
                mine = cell is None
                if cell is None:
                    cell = self.cells[key] = CachedCall()
            if mine:
                question = functools.partial(look, self, *args, **kwargs)
                threads.start(functools.partial(cell.fill, question), f"probe-{look.__name__}")
            patience = limit * (DEEP if self.deep else 1)
            clock = time_limits.Stopwatch(cell.started_at)
            if not cell.done.is_set() and not clock.wait(cell.done, patience):
                what = look.__name__.replace("_", " ")
                raise CouldNotLook(
                    text(
                        "reading the {what} took longer than {seconds:g} s",
                        what=what,
                        seconds=patience,
                    )
                )
            if cell.error is not None:
                # A fresh instance for each caller: a traceback is not shared between threads.
                if isinstance(cell.error, CouldNotLook):
                    raise CouldNotLook(*cell.error.args)
                raise cell.error
            answer: T = cell.answer
            return answer

        return ask

    return decorate
