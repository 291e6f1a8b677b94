"""Turns what a process of a round found into bytes, and the bytes into the same values again.

Only plain values and the classes listed here pass, so bytes cannot make anything else happen in the
process that reads them. `Finding.data` does not pass: a repair examines again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from hermes_doctor import model
from hermes_doctor.history.receipts import EndedRun, RepairedItem
from hermes_doctor.history.recorder import Written
from hermes_doctor.lazy import EMPTY
from hermes_doctor.message import Message
from hermes_doctor.watch.events import EventKind, WatchEvent
from hermes_doctor.watch.state import FailedRepair

_TUPLES: dict[str, Any] = {
    one.__name__: one
    for one in (
        model.CheckResult,
        model.Effect,
        model.Evidence,
        model.Finding,
        model.Gateway,
        model.Part,
        model.PartState,
        model.Report,
        model.Rung,
        model.Verdict,
        WatchEvent,
        FailedRepair,
        Written,
        EndedRun,
        RepairedItem,
    )
}
_ENUMS: dict[str, type[StrEnum]] = {
    one.__name__: one
    for one in (
        model.Mark,
        model.RungState,
        model.Safety,
        model.Severity,
        model.Status,
        model.VerdictKind,
        EventKind,
    )
}
_PLAIN = (bool, int, float, type(None))


def dump(value: object) -> bytes:
    """Return the bytes of a value; raise TypeError if it may not pass."""
    return json.dumps(_packed(value)).encode()


def parse(data: bytes) -> Any:
    """Return the value; bytes that `dump` did not make raise ValueError."""
    try:
        return _unpacked(json.loads(data))
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError("not the bytes of a value") from error


def _packed(value: Any) -> Any:
    """The value as JSON data: plain values as they are, all others as a list with their kind."""
    kind = type(value)
    if kind is str or kind in _PLAIN:
        return value
    if _TUPLES.get(kind.__name__) is kind:
        if kind is model.Finding:
            value = value._replace(data=EMPTY)
        return [kind.__name__, *map(_packed, value)]
    if _ENUMS.get(kind.__name__) is kind:
        return [kind.__name__, value.value]
    if kind in (tuple, list, frozenset):
        return [kind.__name__, *map(_packed, value)]
    return _packed_other(value)


def _packed_other(value: Any) -> Any:
    if isinstance(value, Mapping):
        return ["mapping", *([_packed(key), _packed(one)] for key, one in value.items())]
    if isinstance(value, Message):
        try:
            return ["text", value.template, _packed(value.values)]
        except TypeError:  # a value that may not pass: the finished text is enough
            return str.__str__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, datetime):
        return ["time", value.isoformat()]
    if isinstance(value, timedelta):
        return ["seconds", value.total_seconds()]
    if isinstance(value, Path):
        return ["path", str(value)]
    raise TypeError(f"a {type(value).__name__} may not pass")


def _unpacked(data: Any) -> Any:
    if not isinstance(data, list):
        if isinstance(data, dict):
            raise TypeError("not a value")
        return data
    kind, *rest = data
    if kind in _TUPLES:
        return _TUPLES[kind](*map(_unpacked, rest))
    if kind in _ENUMS:
        return _ENUMS[kind](*rest)
    match kind:
        case "tuple":
            return tuple(map(_unpacked, rest))
        case "list":
            return [*map(_unpacked, rest)]
        case "frozenset":
            return frozenset(map(_unpacked, rest))
        case "mapping":
            return {_unpacked(key): _unpacked(one) for key, one in rest}
        case "text":
            return Message(rest[0], _unpacked(rest[1]))
        case "time":
            return datetime.fromisoformat(*rest)
        case "seconds":
            return timedelta(seconds=rest[0])
        case "path":
            return Path(*rest)
    raise ValueError(f"unknown kind {kind!r}")
