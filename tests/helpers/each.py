"""One test for many small cases: as a test of its own, each of hundreds would cost more to collect
than to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def each(cases: Iterable[T]) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Let a test run for all cases; its failure names each case that fails."""

    def decorate(test: Callable[[T], None]) -> Callable[[], None]:
        def run() -> None:
            every = list(cases)
            assert every, "there are no cases"
            failures = []
            for case in every:
                try:
                    test(case)
                except Exception as error:  # noqa: BLE001 (the others are tried, too)
                    error.add_note(f"in the case of {case}")
                    failures.append(error)
            if failures:
                raise failures[0] if len(failures) == 1 else ExceptionGroup("cases", failures)

        # `functools.wraps` would make pytest look for a fixture for the argument.
        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        return run

    return decorate
