"""Named tuples, regular expressions and imports that cost nothing before their first use.

A check run defines hundreds of them and uses few. Without these named tuples, `check` on a used
home with a running gateway takes 43 ms more CPU (1.14 times as much); without these patterns,
14 ms more (1.05 times).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, AnyStr, cast


class _Later:
    """A stand-in for a compiled pattern that compiles it when a method is first used.

    It is not the pattern itself: `match.re` is the compiled pattern.
    """

    def __init__(self, source: Any, flags: int) -> None:
        self._made_of = source, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._made_of), name)
        setattr(self, name, found)  # the next access does not call __getattr__
        return found


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Do the same as `re.compile`, but compile only on first use."""
    return cast("re.Pattern[AnyStr]", _Later(source, flags))


def compile_patterns(modules: Iterable[str]) -> None:
    """Compile the patterns of loaded modules, for a process whose copies will use them."""
    for name in modules:
        for var in [*vars(sys.modules[name]).values()]:
            if type(var) is _Later:
                _ = var.fullmatch, var.match, var.search, var.sub


def import_on_first_use(
    module: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], list[str]]:
    """Return a `__getattr__` and an `__all__` for a module whose names are imported when used.

    `names`: the names that the module offers, by the module that defines them. The module also
    imports them for type checkers, and a test compares the two. With ordinary imports instead,
    `check` takes 1.4 times as much CPU, because a plugin needs a few of many names.
    """
    origins = {name: origin for origin, words in names.items() for name in words.split()}

    def load(name: str) -> object:
        if name not in origins:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        import importlib

        origin = importlib.import_module(origins[name])
        value = getattr(origin, name, None)
        if value is None:  # a module of that package
            value = importlib.import_module(f"{origins[name]}.{name}")
        vars(sys.modules[module])[name] = value
        return value

    return load, sorted(origins)


EMPTY: Mapping[Any, Any] = MappingProxyType({})
"""An empty read-only mapping, used as the default of mapping fields."""

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter as getter

    class _Tuple(tuple):
        """The methods of a named tuple, as `collections.namedtuple` defines them for each class."""

        __slots__ = ()
        _fields = ()
        _field_defaults = EMPTY

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _replace(self, /, **values):
            made = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"Got unexpected field names: {list(values)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            said = (f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({', '.join(said)})"

        def __getnewargs__(self):
            return tuple(self)

    @cache
    def _form(count):
        """Return the code of a `__new__` with `count` fields; the names are set later."""
        listed = "".join(f"_{number}, " for number in range(count))
        return eval(f"lambda _cls, {listed}: _new(_cls, ({listed}))").__code__

    def _maker(made):
        """Return a `__new__` that replaces itself with the real one on its first call."""

        def make(cls, /, *values, **named):
            code = _form(len(made._fields)).replace(
                co_varnames=("_cls", *made._fields),
                co_name="__new__",
                co_qualname=f"{made.__name__}.__new__",
            )
            exact = FunctionType(code, {"_new": tuple.__new__})
            exact.__defaults__ = tuple(made._field_defaults.values())
            made.__new__ = exact
            return exact(cls, *values, **named)

        return make

    class _Defining(type):
        """A metaclass that turns a class body into a named tuple, as `typing.NamedTuple` does.

        It reads only the names of the annotations, not their types. The module that defines the
        class needs `from __future__ import annotations`.
        """

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body["__annotations__"])
            defaults = {field: body[field] for field in fields if field in body}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one that has one")
            kept = {key: value for key, value in body.items() if key not in defaults}
            for number, field in enumerate(fields):
                kept[field] = getter(number, None)
            kept |= {
                "__slots__": (),
                "_fields": fields,
                "_field_defaults": defaults,
                "__match_args__": fields,
            }
            made = type(name, (_Tuple,), kept)
            made.__new__ = _maker(made)
            return made

    class NamedTuple(metaclass=_Defining):
        """The base class that makes a class a named tuple."""
