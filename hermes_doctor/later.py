"""Names of other modules that are loaded when they are first used.

A check or a fix imports what it may need. To list the fixes, or to run the checks on a healthy
home, nearly nothing of it is, and all of it together takes longer than the looking.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


class Later:
    """Stands for a class, a function or a module until something is done with it."""

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    def _now(self) -> Any:
        module, name = self._place
        loaded = importlib.import_module(module)
        if hasattr(loaded, "__path__") and not hasattr(loaded, name):
            return importlib.import_module(f"{module}.{name}")
        return getattr(loaded, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._now()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now(), name)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (self._now(),)

    def __instancecheck__(self, one: object) -> bool:
        return isinstance(one, self._now())

    def __subclasscheck__(self, one: type) -> bool:
        return issubclass(one, self._now())

    def __or__(self, other: Any) -> Any:
        return self._now() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._now()


def named(module: str, name: str) -> Any:
    """What a module calls so: itself if the module is loaded anyway, else what stands for it."""
    later = Later(module, name)
    return later._now() if module in sys.modules else later


def settled(function: F) -> F:
    """The same function; when it is called, what it names is itself and nothing stands for it."""

    def call(*args: Any, **kwargs: Any) -> object:
        names = getattr(function, "__globals__", {})
        for name, one in list(names.items()):
            if isinstance(one, Later):
                names[name] = one._now()
        return function(*args, **kwargs)

    # What `functools.wraps` would copy, but for what nobody asks for: a look makes a hundred.
    call.__name__, call.__doc__ = function.__name__, function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return cast(F, call)
