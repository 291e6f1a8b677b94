"""Read pages of a damaged database, optionally with its write-ahead log or journal applied."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite import rollback_journal as journals
from hermes_doctor.sqlite.header import MAGIC
from hermes_doctor.sqlite.salvage import geometry, log as logs
from hermes_doctor.system.files import open_regular

BLOCK = 1 << 20
"""Bytes read at once when all pages are read."""
GAP = 1 << 20
"""The most pages that the size in a log or journal may exceed the file by."""


class DamagedFile:
    """Random access to pages; bytes outside the file read as zeros."""

    def __init__(self, fd: int, wal: int | None, journal: int | None) -> None:
        self.fd = fd
        self.size = os.fstat(fd).st_size
        self.page_size = geometry.page_size(fd, self.size)
        self.reserved = geometry.reserved_bytes(fd, self.size, self.page_size)
        self.usable = self.page_size - self.reserved
        self.file_pages = -(-self.size // self.page_size)
        self.wal = wal
        self.journal = journal
        self.log = logs.read(wal, self.page_size) if wal is not None else logs.DamagedLog()
        self.undo = (
            journals.read(journal, self.page_size) if journal is not None else journals.NOTHING
        )
        if self.undo.page_size != self.page_size:
            self.undo = journals.NOTHING  # of another database
        self.count = 0
        self.over: Mapping[int, int] = {}
        self.over_fd = -1
        self.use_log()

    def use_log(self) -> None:
        """Read the file with its write-ahead log applied, as SQLite would."""
        self._overlay(self.log.places, self.wal)
        if not self.log.damaged and self.log.pages:
            self.count = min(self.log.pages, self._reach(len(self.over)))

    def use_journal(self) -> None:
        """Read the file as it was before the transaction that the journal undoes."""
        self._overlay(self.undo.places, self.journal)
        if self.undo.pages:
            self.count = min(self.count, self.undo.pages)

    def use_file(self) -> None:
        """Read the file alone."""
        self._overlay({}, None)

    @property
    def in_wal_mode(self) -> bool:
        """Whether the file was last written in WAL mode, which uses no rollback journal."""
        return os.pread(self.fd, 2, 18) == b"\x02\x02"

    @property
    def claimed(self) -> int:
        """The page count before a possible truncation: other pages may point past the end."""
        first = self.page(1)
        said = int.from_bytes(first[28:32], "big") if first.startswith(MAGIC) else 0
        return max(self.count, said)

    @property
    def auto_vacuum(self) -> int:
        """The auto_vacuum mode of the file: 0 none, 1 full, 2 incremental."""
        first = self.page(1)
        if first[:16] != MAGIC or not any(first[52:56]):
            return 0
        return 2 if any(first[64:68]) else 1

    def counter(self) -> int:
        """The change counter of the file."""
        return int.from_bytes(os.pread(self.fd, 4, 24), "big")

    def counter_before_journal(self) -> int | None:
        """The change counter before the transaction that the journal undoes, if it has page 1."""
        at = self.undo.places.get(1)
        if at is None or self.journal is None:
            return None
        return int.from_bytes(os.pread(self.journal, 4, at + 24), "big")

    def _overlay(self, places: Mapping[int, int], fd: int | None) -> None:
        reach = self._reach(len(places))
        self.over = {page: at for page, at in places.items() if page <= reach}
        self.over_fd = -1 if fd is None else fd
        self.count = max(self.file_pages, max(self.over, default=0))

    def _reach(self, places: int) -> int:
        """The highest plausible page number, because a hostile log may name any.

        If the file is missing or truncated, the size in its log or journal counts.
        """
        told = max(self.log.pages, self.undo.pages)
        return max(self.file_pages + places, min(told, self.file_pages + GAP))

    def page(self, number: int) -> bytes:
        """One page, counted from 1."""
        at = self.over.get(number)
        if at is not None:
            page = os.pread(self.over_fd, self.page_size, at)
        else:
            page = os.pread(self.fd, self.page_size, (number - 1) * self.page_size)
        missing = self.page_size - len(page)
        return page + bytes(missing) if missing else page

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """All pages in order."""
        size, over = self.page_size, self.over
        each = max(1, BLOCK // size)
        for first in range(0, self.count, each):
            block = os.pread(self.fd, each * size, first * size)
            for number in range(first, min(first + each, self.count)):
                if number + 1 in over:
                    yield number + 1, self.page(number + 1)
                    continue
                page = block[(number - first) * size : (number - first + 1) * size]
                missing = size - len(page)
                yield number + 1, page + bytes(missing) if missing else page


@contextmanager
def open_image(source: Path) -> Iterator[DamagedFile]:
    """Open the database at `source` with its sidecar files."""
    with ExitStack() as stack:

        def descriptor(path: Path) -> int:
            fd = open_regular(path)
            stack.callback(os.close, fd)
            return fd

        try:
            main = descriptor(source)
            if geometry.is_utf16(main, os.fstat(main).st_size):
                raise CannotFix(
                    text(
                        "the text of {source} is UTF-16, which hermes-doctor does not read",
                        source=source.name,
                    )
                )
            sidecars: list[int | None] = [None, None]
            for place, suffix in enumerate(("-wal", "-journal")):
                with suppress(FileNotFoundError):
                    sidecars[place] = descriptor(source.with_name(source.name + suffix))
            image = DamagedFile(main, *sidecars)
        except OSError as error:
            raise CouldNotLook(
                text(
                    "{source}: {reason}",
                    source=source.name,
                    reason=os.strerror(error.errno or 0).lower(),
                )
            ) from error
        yield image
