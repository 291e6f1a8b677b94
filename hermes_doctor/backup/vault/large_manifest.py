"""Read and write the manifest of a large backup, one page of its entries at a time.

A home of 200,000 files has a manifest of about 90 MB, and as objects its entries take several
times as much. While such a backup is made, its entries are lines of a file. When it is read, only a
few bytes of each entry stay in memory; the rest is read when needed. The file has the usual format:
one JSON document with one entry per line.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from hermes_doctor.backup.vault.blocks import open_as_owner
from hermes_doctor.backup.vault.manifest import (
    DAMAGE,
    MANIFEST,
    OPENING,
    Backup,
    BackupEntry,
    backup_of,
    damaged_manifest,
    entries_of,
    entry_lines,
    head_document,
    head_of,
)
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, open_regular, snapshot

NAME = "entries"
_LAST_LINES = b"\n]}\n"


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
        for chunk in chunks(self._path):
            sealed.update(chunk)
        sealed.update(_LAST_LINES)
        head = head_of(document | {"seal": sealed.hexdigest()})
        content = itertools.chain([head], chunks(self._path), [_LAST_LINES])
        disk.save_all(self._path.with_name(MANIFEST), content)
        disk.remove(self._path)


def chunks(path: Path) -> Iterator[bytes]:
    """Read a file of the vault in chunks."""
    with open_as_owner(path) as fd:
        read: Callable[[], bytes] = lambda: os.read(fd, MEGABYTE)  # noqa: E731
        yield from iter(read, b"")


PAGE = 128
"""How many entries are read at once."""
CACHED = 64
"""How many pages are cached: files are looked up in nearly the order of the manifest."""
LONGEST_HEAD = 16 * 1024 * 1024
_CLOSING = b"]}\n"
_PAGE_BITS = 24
_HASH_MASK = (1 << (63 - _PAGE_BITS)) - 1


class Page(NamedTuple):
    """A page of consecutive entries."""

    entries: tuple[BackupEntry, ...]
    by_path: dict[str, BackupEntry]


class PagedEntries(Sequence[BackupEntry]):
    """The entries of a manifest that stays on disk."""

    def __init__(self, path: Path, snapshot: Snapshot) -> None:
        self.path = path
        self.snapshot = snapshot
        self.size = 0
        """Bytes of all files."""
        self.sound = True
        self._places = array("q")
        """The offset of each page in the file; the last value is the end of the entries."""
        self._count = 0
        self._index = array("q")
        """For each entry some bits of its path's hash, then its page; sorted on first use."""
        self._is_sorted = False
        self._sizes = array("q")
        self._read_at = array("q")
        """When each file's copy was last read; -1 if there is no copy."""
        self._cache: dict[int, Page] = {}

    def add(self, entries: Sequence[BackupEntry], start: int) -> None:
        """Add the next page, which starts at this offset in the file."""
        page = len(self._places)
        self._places.append(start)
        for entry in entries:
            is_file = entry.kind == "file"
            self._index.append((hash(entry.path) & _HASH_MASK) << _PAGE_BITS | page)
            self._sizes.append(entry.size if is_file and not entry.blocks else 0)
            self._read_at.append(entry.read_at if is_file else -1)
            self.size += entry.size if is_file else 0
            self.sound = self.sound and entry.integrity in (None, "ok")
        self._count += len(entries)

    def end(self, offset: int) -> None:
        """Record the offset of the end of the entries."""
        self._places.append(offset)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[BackupEntry]:
        for page in range(len(self._places) - 1):
            yield from self._read(page)

    @overload
    def __getitem__(self, place: int) -> BackupEntry: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[BackupEntry]: ...
    def __getitem__(self, place: int | slice) -> BackupEntry | Sequence[BackupEntry]:
        numbers = range(self._count)[place]
        if isinstance(numbers, int):
            return self._page(numbers // PAGE).entries[numbers % PAGE]
        return [self._page(number // PAGE).entries[number % PAGE] for number in numbers]

    def find(self, path: str) -> BackupEntry | None:
        """The entry of a path, or None."""
        if not self._is_sorted:
            self._index = array("q", sorted(self._index))
            self._is_sorted = True
        wanted = hash(path) & _HASH_MASK
        at = bisect_left(self._index, wanted << _PAGE_BITS)
        while at < len(self._index) and self._index[at] >> _PAGE_BITS == wanted:
            page = self._page(self._index[at] & ((1 << _PAGE_BITS) - 1))
            if path in page.by_path:
                return page.by_path[path]
            at += 1
        return None

    def longest_ago(self, share: int) -> set[str]:
        """The files whose copies were read longest ago, about 1/`share` of all bytes."""
        wanted = sum(self._sizes) / share
        heap: list[tuple[int, int]] = []
        """The chosen files, the most recently read first."""
        chosen = 0
        for number, read_at in enumerate(self._read_at):
            if read_at < 0 or (heap and chosen >= wanted and -heap[0][0] <= read_at):
                continue
            heapq.heappush(heap, (-read_at, -number))
            chosen += self._sizes[number]
            while heap and chosen - self._sizes[-heap[0][1]] >= wanted:
                chosen -= self._sizes[-heapq.heappop(heap)[1]]
        numbers = sorted(-number for _, number in heap) if wanted > 0 else []
        return {self[number].path for number in numbers}

    def _page(self, page: int) -> Page:
        cached = self._cache.get(page)
        if cached is None:
            entries = self._read(page)
            cached = Page(entries, {entry.path: entry for entry in entries})
            if len(self._cache) >= CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[page] = cached
        return cached

    def _read(self, page: int) -> tuple[BackupEntry, ...]:
        """Read a page from the file and check it again: the file may have changed since."""
        start, end = self._places[page], self._places[page + 1]
        try:
            if snapshot(self.path)[:5] != self.snapshot[:5]:
                raise ValueError("it was replaced")
            with os.fdopen(open_regular(self.path), "rb", buffering=0) as file:
                return _parsed(os.pread(file.fileno(), end - start, start))
        except (OSError, CouldNotLook, *DAMAGE):
            raise damaged_manifest(self.path.parent) from None


def _parsed(data: bytes) -> tuple[BackupEntry, ...]:
    documents = json.loads(b"[" + data.rstrip(b",\n") + b"]")
    return entries_of(documents)


def load(folder: Path) -> Backup | None:
    """Load a backup whose manifest stays on disk; None if it has the former, indented format.

    Raises ValueError or another of `manifest.DAMAGE` if it is damaged.
    """
    path = folder / MANIFEST
    fd = open_regular(path)
    with os.fdopen(fd, "rb", buffering=1024 * 1024) as file:
        state = Snapshot.of(os.fstat(fd))
        head = file.readline(LONGEST_HEAD)
        if not head.endswith(OPENING):
            return None
        document: dict[str, Any] = json.loads(head + b"]}")
        rest = {name: value for name, value in document.items() if name != "entries"}
        if head_of(rest) != head:
            raise ValueError("seal")
        closing = rest.pop("seal")
        sealed = hashlib.sha256(head_of(rest))
        pages = PagedEntries(path, state)
        lines: list[bytes] = []
        start = at = len(head)
        while (line := file.readline()) != _CLOSING:
            if not line.endswith(b"\n"):
                raise ValueError("it ends too early")
            sealed.update(line)
            lines.append(line)
            at += len(line)
            if len(lines) == PAGE:
                pages.add(_parsed(b"".join(lines)), start)
                lines, start = [], at
        if lines:
            pages.add(_parsed(b"".join(lines)), start)
        pages.end(at)
        sealed.update(_CLOSING)
        if file.read(1) or closing != sealed.hexdigest():
            raise ValueError("seal")
    return backup_of(folder, document, pages)
