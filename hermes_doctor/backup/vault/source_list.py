"""The list of paths that a backup covers; a long list is stored in a temporary file."""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, overload

from hermes_doctor.backup.vault.manifest import BackupSource
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import MEGABYTE, Snapshot

FoundPath = tuple[str, str, Snapshot]
"""The name of a path in a backup, its place on disk, and its snapshot."""
AT_ONCE = 4096
"""How many paths are saved together, and kept as objects."""
KEPT = 4 * MEGABYTE
"""Bytes of the packed list that stay in memory; a longer list is written to a temporary file."""
_KINDS = ("file", "symlink")
_HEAD = struct.Struct("<B8qI")


class Sources(Sequence[BackupSource]):
    """A sequence of sources that takes little memory and is always read in the same order."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._few: list[BackupSource] | None = []
        """All sources as objects, while they are few."""
        self._file: IO[bytes] | None = None
        self._count = 0
        self._live: frozenset[str] = frozenset()
        self._merged: frozenset[str] = frozenset()
        self._gone = 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, paths: Iterable[FoundPath]) -> Iterator[str]:
        """Add paths; yield the place of each."""
        for name, place, state in paths:
            if self._few is not None and len(self._few) < AT_ONCE:
                self._few.append(BackupSource(name, place, state, patient=True))
            else:
                self._put_away()
                self._write(name, state)
            self._count += 1
            yield place

    def _put_away(self) -> None:
        """Move the sources so far to the packed list."""
        if self._few is not None:
            import tempfile

            few, self._few = self._few, None
            self._file = tempfile.SpooledTemporaryFile(max_size=KEPT)  # noqa: SIM115
            for source in few:
                self._write(source.name, source.expect)

    def _write(self, name: str, state: Snapshot) -> None:
        assert self._file is not None
        data = name.encode("utf-8", "surrogateescape")
        try:
            self._file.write(_HEAD.pack(_KINDS.index(state.kind), *state[1:], len(data)) + data)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise Trouble(
                "Could not write the list of files to a temporary file ({reason}). "
                "Nothing was changed. Free some space there, or set TMPDIR to another "
                "folder.",
                reason=why,
            ) from None

    def know_live(self, live: Collection[str], merged: Collection[str]) -> None:
        """Mark the databases in use, and drop their logs, which SQLite merges into the copies."""
        self._live, self._merged = frozenset(live), frozenset(merged)
        if self._few is not None:
            self._few = [
                source._replace(live=True) if source.path_str in self._live else source
                for source in self._few
                if source.path_str not in self._merged
            ]
            self._count = len(self._few)
        elif merged:
            self._gone = sum(self._place(name) in self._merged for name, _ in self._read())

    def __len__(self) -> int:
        return self._count - self._gone

    def __iter__(self) -> Iterator[BackupSource]:
        if self._few is not None:
            yield from self._few
            return
        for name, state in self._read():
            place = self._place(name)
            if place not in self._merged:
                yield BackupSource(name, place, state, live=place in self._live, patient=True)

    @overload
    def __getitem__(self, place: int) -> BackupSource: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[BackupSource]: ...
    def __getitem__(self, place: int | slice) -> BackupSource | Sequence[BackupSource]:
        return list(self)[place]

    def _place(self, name: str) -> str:
        return name if name.startswith("/") else f"{self._home}/{name}"

    def _read(self) -> Iterator[tuple[str, Snapshot]]:
        assert self._file is not None
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


def batches(sources: Iterable[BackupSource]) -> Iterator[list[BackupSource]]:
    """Split sources into lists of limited length."""
    left = iter(sources)
    while batch := list(islice(left, AT_ONCE)):
        yield batch
