"""Named tuples that are quick to define: `typing` compiles the annotation of every field."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

NOTHING: Mapping[Any, Any] = MappingProxyType({})
"""The default of a field that is a mapping: one that nobody can put anything into."""

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Defining(type):
        """Turns the body of a class into a named tuple, as `typing.NamedTuple` does.

        The fields come from the annotations as they are written, which takes
        `from __future__ import annotations`.
        """

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body["__annotations__"])
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in fields and key != "__module__":
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Defining):
        """What a class derives from to become a named tuple."""
