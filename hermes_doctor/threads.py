"""Threads that are used again: starting one costs more than most looks do."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import Context
from queue import SimpleQueue
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")
Work = Callable[[], object]
_Inbox = SimpleQueue[tuple[Work, str]]
_idle: list[_Inbox] = []


def start(work: Work, name: str) -> None:
    """Begin the work in another thread at once, whatever those before it are still at.

    A thread whose work hangs never comes back to be used again, and nobody waits for it.
    """
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), daemon=True).start()
    inbox.put((work, name))


def begun(work: Callable[[], Made]) -> Callable[[], Made]:
    """Work that is done meanwhile; what is given waits for it, and has its result or its error."""
    made: list[Made] = []
    wrong: list[BaseException] = []
    ended = threading.Event()

    def attempt() -> None:
        try:
            made.append(work())
        except BaseException as error:  # noqa: BLE001 (raised by whoever asks)
            wrong.append(error)
        ended.set()

    def result() -> Made:
        ended.wait()
        if wrong:
            raise wrong[0]
        return made[0]

    start(attempt, "meanwhile")
    return result


def at_once(act: Callable[[Given], Made], every: Sequence[Given], count: int) -> list[Made]:
    """What is made of each of them, in their order, so many at a time; the first error ends it."""
    if count < 2 or len(every) < 2:
        return [act(one) for one in every]
    made: dict[int, Made] = {}
    wrong: list[BaseException] = []
    waiting = deque(enumerate(every))

    def work() -> None:
        with suppress(IndexError):
            while True:
                number, one = waiting.popleft()
                try:
                    made[number] = act(one)
                except BaseException as error:  # noqa: BLE001 (raised by whoever asked)
                    wrong.append(error)
                    waiting.clear()

    workers = [threading.Thread(target=work) for _ in range(min(count, len(every)))]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        waiting.clear()
        for worker in workers:
            if worker.ident is not None:
                worker.join()
    if wrong:
        raise wrong[0]
    return [made[number] for number in range(len(every))]


def _serve(inbox: _Inbox) -> None:
    thread = threading.current_thread()
    while True:
        work, thread.name = inbox.get()
        Context().run(work)  # what it sets for its own thread, the next one does not see
        del work  # nor does what it held on to live on
        thread.name = "idle"
        _idle.append(inbox)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a fork has none of the other threads
