"""Turns what another process of ours found into bytes, and the bytes into the same values again.

Only plain values, those of `hermes_doctor.core.model` and those of the modules that the reader
names pass, so bytes cannot make anything else happen in the process that reads them. Of
`Finding.data`, only what a screen may need passes: a repair examines again. `send` and `receive`
pass messages with open files over a pair of sockets, for `separate_process`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from hermes_doctor.core import model
from hermes_doctor.core.message import Message
from hermes_doctor.core.model import CouldNotLook

_PLAIN = (bool, int, float, type(None))
Classes = Mapping[str, type[Any]]


def dump(value: object, modules: tuple[str, ...] = ()) -> bytes:
    """Return the bytes of a value; raise TypeError if it may not pass."""
    return json.dumps(_packed(value, _classes(modules))).encode()


def parse(data: bytes, modules: tuple[str, ...] = ()) -> Any:
    """Return the value; bytes that `dump` did not make raise ValueError."""
    try:
        return _unpacked(json.loads(data), _classes(modules))
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError("not the bytes of a value") from error


@cache
def _classes(modules: tuple[str, ...]) -> Classes:
    """The named tuples and the enumerations that the modules define, all of them loaded."""
    return {
        name: one
        for module in (model.__name__, *modules)
        for name, one in vars(sys.modules[module]).items()
        if isinstance(one, type) and one.__module__ == module and one.__name__ == name
        if issubclass(one, StrEnum) or (issubclass(one, tuple) and hasattr(one, "_fields"))
    }


def _packed(value: Any, classes: Classes) -> Any:
    """The value as JSON data: plain values as they are, all others as a list with their kind."""
    kind = type(value)
    if kind is str or kind in _PLAIN:
        return value
    if classes.get(kind.__name__) is kind:
        if issubclass(kind, StrEnum):
            return [kind.__name__, value.value]
        if kind is model.Finding:
            value = value._replace(data=_simple(value.data))
        return [kind.__name__, *(_packed(one, classes) for one in value)]
    if kind in (tuple, list, frozenset):
        return [kind.__name__, *(_packed(one, classes) for one in value)]
    return _packed_other(value, classes)


def _simple(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a screen may need: words, numbers, and tuples of them."""
    kinds = (str, *_PLAIN)
    return {
        name: value
        for name, value in data.items()
        if type(value) in kinds
        or (type(value) is tuple and all(type(one) in kinds for one in value))
    }


def _packed_other(value: Any, classes: Classes) -> Any:
    if isinstance(value, Mapping):
        pairs = ([_packed(key, classes), _packed(one, classes)] for key, one in value.items())
        return ["mapping", *pairs]
    if isinstance(value, Message):
        said = str.__str__(value)
        try:
            return ["text", said, value.template, _packed(value.values, classes)]
        except TypeError:  # a value that may not pass: the finished text is enough
            return said
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, datetime):
        return ["time", value.isoformat()]
    if isinstance(value, timedelta):
        return ["seconds", value.total_seconds()]
    if isinstance(value, Path):
        return ["path", str(value)]
    raise TypeError(f"a {type(value).__name__} may not pass")


def _unpacked(data: Any, classes: Classes) -> Any:
    if not isinstance(data, list):
        if isinstance(data, dict):
            raise TypeError("not a value")
        return data
    kind, *rest = data
    if kind in classes:
        return classes[kind](*(_unpacked(one, classes) for one in rest))
    match kind:
        case "tuple":
            return tuple(_unpacked(one, classes) for one in rest)
        case "list":
            return [_unpacked(one, classes) for one in rest]
        case "frozenset":
            return frozenset(_unpacked(one, classes) for one in rest)
        case "mapping":
            return {_unpacked(key, classes): _unpacked(one, classes) for key, one in rest}
        case "text":
            said, template, values = rest
            return _message(said, template, _unpacked(values, classes))
        case "time":
            return datetime.fromisoformat(*rest)
        case "seconds":
            return timedelta(seconds=rest[0])
        case "path":
            return Path(*rest)
    raise ValueError(f"unknown kind {kind!r}")


def _message(said: str, template: str, values: dict[str, object]) -> Message:
    """Make a text again without filling its template, which comes from the other process."""
    message = str.__new__(Message, said)
    message.template, message.values = template, values
    return message


MOST_BYTES = 64 * 1024 * 1024
"""The largest message."""
MOST_DESCRIPTORS = 2
"""How many open files may come with a message."""
CUT_OFF = "the process that worked in the home was cut off"


class CutOff(CouldNotLook):
    """The other process has ended without an answer."""


def send(line: socket.socket, message: bytes, descriptors: Sequence[int] = ()) -> None:
    length = struct.pack("=I", len(message))
    if descriptors:
        socket.send_fds(line, [length], list(descriptors))
        line.sendall(message)
    else:
        line.sendall(length + message)


def receive(
    line: socket.socket, when_still: Callable[[], None] = lambda: None
) -> tuple[bytes, list[int]]:
    """Return a message and the open files that came with it."""
    head, descriptors = b"", []
    try:
        while len(head) < 4:
            piece, passed = _head(line, 4 - len(head), when_still)
            head += piece
            descriptors += passed
        (length,) = struct.unpack("=I", head)
        if length > MOST_BYTES:
            raise CouldNotLook("the process that worked in the home sent too much")
        return _exactly(line, length, when_still), descriptors
    except BaseException:
        for fd in descriptors:
            os.close(fd)
        raise


def _head(
    line: socket.socket, count: int, when_still: Callable[[], None]
) -> tuple[bytes, list[int]]:
    while True:
        try:
            piece, descriptors, _, _ = socket.recv_fds(
                line, count, MOST_DESCRIPTORS, getattr(socket, "MSG_CMSG_CLOEXEC", 0)
            )
        except TimeoutError:
            when_still()
            continue
        if not piece:
            raise CutOff(CUT_OFF)
        return piece, descriptors


def _exactly(line: socket.socket, count: int, when_still: Callable[[], None]) -> bytes:
    data = bytearray()
    while len(data) < count:
        try:
            piece = line.recv(min(count - len(data), 1 << 20))
        except TimeoutError:
            when_still()
            continue
        if not piece:
            raise CutOff(CUT_OFF)
        data += piece
    return bytes(data)
