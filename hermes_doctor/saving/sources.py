"""The paths that a backup of the home covers, kept so that many of them take little memory."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, overload

from hermes_doctor.files import MEGABYTE, Snapshot
from hermes_doctor.manifest import Source
from hermes_doctor.model import Trouble

Found = tuple[str, str, Snapshot]
"""The name of a path in a backup, where it is, and what it is."""
AT_ONCE = 8192
"""Paths that are saved together, and kept as objects."""
KEPT = 16 * MEGABYTE
"""Bytes of names and marks that stay in memory; what is more goes into a temporary file."""
_KINDS = ("file", "symlink")
_HEAD = struct.Struct("<B8qI")


class Sources(Sequence[Source]):
    """Sources that are read again and again in one order."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=KEPT)  # noqa: SIM115
        self._count = 0
        self._live: frozenset[str] = frozenset()
        self._merged: frozenset[str] = frozenset()
        self._gone = 0

    def __del__(self) -> None:
        self._file.close()

    def add(self, found: Iterable[Found]) -> Iterator[str]:
        """Take paths in; yields where each is."""
        for name, place, taken in found:
            data = name.encode("utf-8", "surrogateescape")
            kind, numbers = _KINDS.index(taken.kind), taken[1:]
            try:
                self._file.write(_HEAD.pack(kind, *numbers, len(data)) + data)
            except OSError as error:
                why = os.strerror(error.errno or 0).lower()
                raise Trouble(
                    f"The list of files could not be written to {tempfile.gettempdir()} ({why}). "
                    "Nothing was changed. Make room there, or set TMPDIR."
                ) from None
            self._count += 1
            yield place

    def know_live(self, live: Collection[str], merged: Collection[str]) -> None:
        """Which databases are in use; their logs are in the copies that SQLite makes."""
        self._live, self._merged = frozenset(live), frozenset(merged)
        self._gone = sum(self._place(name) in self._merged for name, _ in self._read())

    def __len__(self) -> int:
        return self._count - self._gone

    def __iter__(self) -> Iterator[Source]:
        for name, taken in self._read():
            place = self._place(name)
            if place not in self._merged:
                yield Source(name, place, taken, live=place in self._live, patient=True)

    @overload
    def __getitem__(self, place: int) -> Source: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Source]: ...
    def __getitem__(self, place: int | slice) -> Source | Sequence[Source]:
        return list(self)[place]

    def _place(self, name: str) -> str:
        return name if name.startswith("/") else f"{self._home}/{name}"

    def _read(self) -> Iterator[tuple[str, Snapshot]]:
        at = 0
        while True:
            self._file.seek(at)
            data = self._file.read(MEGABYTE)
            if not data:
                self._file.seek(0, 2)
                return
            done = 0
            while len(data) - done >= _HEAD.size:
                kind, *numbers, length = _HEAD.unpack_from(data, done)
                end = done + _HEAD.size + length
                if end > len(data):
                    break
                name = data[done + _HEAD.size : end].decode("utf-8", "surrogateescape")
                yield name, Snapshot(_KINDS[kind], *numbers)
                done = end
            at += done


def batches(sources: Iterable[Source]) -> Iterator[list[Source]]:
    """Sources in lists that are not too long."""
    left = iter(sources)
    while batch := list(islice(left, AT_ONCE)):
        yield batch
