"""Send progress messages from long operations to an optional listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Hear = Callable[[str, float | None], None]
"""A listener: it gets the current task and, where that is known, the share done from 0 to 1."""

_listeners: list[Hear] = []


@contextmanager
def send_to(listener: Hear) -> Iterator[None]:
    """Send all progress messages to a listener while the context lasts; the latest one wins."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def report(what: str, share: float | None = None) -> None:
    """Send a progress message to the current listener, if there is one."""
    if _listeners:
        _listeners[-1](what, share)
