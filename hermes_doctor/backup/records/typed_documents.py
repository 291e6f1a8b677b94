"""Make dataclasses of JSON documents, and refuse values of other types than the fields declare.

Anybody may have changed a record, and a value of another type would fail only where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Record = TypeVar("Record")
_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def to_record(kind: type[Record], document: object) -> Record:
    """Make the dataclass; raise TypeError unless the document has its fields with their types."""
    if not isinstance(document, dict) or document.keys() - _hints(kind).keys():
        raise TypeError("not a document with these fields")
    return kind(**{name: _typed(_hints(kind)[name], value) for name, value in document.items()})


def _typed(hint: Any, value: Any) -> Any:
    """The value, if it has the type that an annotation declares."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        if value is None and NoneType in arguments:
            return None
        [hint] = [argument for argument in arguments if argument is not NoneType]
        return _typed(hint, value)
    if is_dataclass(hint):
        return to_record(hint, value)  # type: ignore[arg-type]
    if type(value) is not {Mapping: dict}.get(origin, origin or hint):
        raise TypeError(f"{type(value).__name__} instead of {hint}")
    if isinstance(value, list):
        return [_typed(arguments[0], item) for item in value]
    if isinstance(value, dict):
        return {_typed(arguments[0], k): _typed(arguments[1], v) for k, v in value.items()}
    return value
