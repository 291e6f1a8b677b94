"""Named tuples and regular expressions that are quick to define and made on first use.

A check defines hundreds of them and uses few. Without these named tuples, `check` on a used home
beside a running gateway takes 43 ms more CPU (1.14 times as much); without these patterns, 14 ms
more (1.05 times).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, AnyStr, cast


class _Later:
    """Stands for a compiled pattern, and becomes one method by method.

    It is not the pattern itself: a match names as its `re` the one that was compiled.
    """

    def __init__(self, source: Any, flags: int) -> None:
        self._made_of = source, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._made_of), name)
        setattr(self, name, found)  # from now on it is found without us
        return found


def pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, without its price as long as nobody asks."""
    return cast("re.Pattern[AnyStr]", _Later(source, flags))


NOTHING: Mapping[Any, Any] = MappingProxyType({})
"""The default of a field that is a mapping: one that nobody can put anything into."""

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter as getter

    class _Tuple(tuple):
        """What all named tuples share, as `collections.namedtuple` gives it to each."""

        __slots__ = ()
        _fields = ()
        _field_defaults = NOTHING

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
        """The code of a `__new__` for so many fields, whatever their names."""
        listed = "".join(f"_{number}, " for number in range(count))
        return eval(f"lambda _cls, {listed}: _new(_cls, ({listed}))").__code__

    def _maker(made):
        """The `__new__` of a named tuple, which takes its time only once it is needed."""

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
        """Turns the body of a class into a named tuple, as `typing.NamedTuple` does.

        The fields come from the annotations as they are written, which takes
        `from __future__ import annotations`.
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
        """What a class derives from to become a named tuple."""
