"""What long work is at just now, told to whoever shows it; nobody has to listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Hear = Callable[[str, float | None], None]
"""Told what is being done, and from 0 to 1 how much of it, where that is known."""

_listeners: list[Hear] = []


@contextmanager
def heard(by: Hear) -> Iterator[None]:
    """Let somebody hear of all work meanwhile; the last one to listen is the only one."""
    _listeners.append(by)
    try:
        yield
    finally:
        _listeners.remove(by)


def tell(what: str, share: float | None = None) -> None:
    """Say what is being done now."""
    if _listeners:
        _listeners[-1](what, share)
