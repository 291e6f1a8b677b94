"""Messages with open files over a pair of sockets, as `separate_process` uses them."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Sequence

from hermes_doctor.model import CouldNotLook

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
