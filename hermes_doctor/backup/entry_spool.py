"""Write the entries of a large backup to disk while it is made, to save memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import overload

from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import MANIFEST, Backup, entry_lines, head_document, head_of
from hermes_doctor.system import disk
from hermes_doctor.system.files import MEGABYTE

NAME = "entries"
_CLOSING = b"\n]}\n"


class Lines(Sequence[BackupEntry]):
    """The entries of an unfinished manifest, as lines in a temporary file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._count = 0
        with disk.new_file(self._path, durable=False):
            pass

    def add(self, entries: Sequence[BackupEntry]) -> None:
        """Append entries."""
        if entries:
            lines = b",\n".join(entry_lines(entries))
            disk.append(self._path, b",\n" + lines if self._count else lines)
            self._count += len(entries)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> BackupEntry: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[BackupEntry]: ...
    def __getitem__(self, place: int | slice) -> BackupEntry | Sequence[BackupEntry]:
        raise IndexError("they can be read when the manifest is finished")

    def finish(self, backup: Backup) -> None:
        """Write the manifest, with the same bytes that `manifest.seal` would make."""
        document = head_document(backup)
        sealed = hashlib.sha256(head_of(document))
        for chunk in self._chunks():
            sealed.update(chunk)
        sealed.update(_CLOSING)
        head = head_of(document | {"seal": sealed.hexdigest()})
        disk.save_all(self._path.with_name(MANIFEST), self._manifest(head))
        disk.remove(self._path)

    def _manifest(self, head: bytes) -> Iterator[bytes]:
        yield head
        yield from self._chunks()
        yield _CLOSING

    def _chunks(self) -> Iterator[bytes]:
        yield from chunks(self._path)


def chunks(path: Path) -> Iterator[bytes]:
    """Read a file of the vault in chunks."""
    from hermes_doctor.backup.blocks import open_as_owner

    with open_as_owner(path) as fd:
        read: Callable[[], bytes] = lambda: os.read(fd, MEGABYTE)  # noqa: E731
        yield from iter(read, b"")
