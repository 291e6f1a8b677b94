"""Read pages of a database as the next reader would see them, write-ahead log included."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import header as headers, rollback_journal as journals
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.snapshot import OpenFiles
from hermes_doctor.sqlite.wal import WriteAheadLog
from hermes_doctor.system.files import MEGABYTE, Snapshot, open_regular, read_head, size

WAL_LIMIT = 64 * MEGABYTE
"""Only the frame headers of a log are read (24 bytes each), so this limits time, not memory."""


class DatabasePages:
    """Random access to the committed pages of one database."""

    def __init__(self, db: int, wal: int | None) -> None:
        self.db = db
        self.wal = wal
        head = headers.Header(os.pread(db, 128, 0), Snapshot.of(os.fstat(db)))
        if not head.magic or not head.page_size:
            raise CouldNotLook("it is not a database")
        if int.from_bytes(head.head[56:60], "big") not in (0, 1):
            raise CouldNotLook("its text is UTF-16, which hermes-doctor does not read")
        self.page_size = head.page_size
        self.usable = head.page_size - head.head[20]
        self.frames = _committed(wal, self.page_size) if wal is not None else {}
        self.count = max(head.snapshot.size // self.page_size, max(self.frames, default=0))

    def read(self, number: int) -> bytes:
        """One page; numbers start at 1."""
        if not 1 <= number <= self.count:
            raise CouldNotLook(text("page {number} is beyond the end of the file", number=number))
        if number in self.frames and self.wal is not None:
            page = os.pread(self.wal, self.page_size, self.frames[number])
        else:
            page = os.pread(self.db, self.page_size, (number - 1) * self.page_size)
        if len(page) < self.page_size:
            raise CouldNotLook(text("page {number} is cut off", number=number))
        return page


@contextmanager
def open_pages(path: Path) -> Iterator[DatabasePages]:
    """Open the pages of the database at `path`; nothing is locked, created or changed."""
    descriptors = [open_regular(path)]
    try:
        journal = path.with_name(path.name + "-journal")
        with suppress(FileNotFoundError):
            if read_head(journal, 8)[0] == journals.MAGIC:
                raise CouldNotLook("it has an unfinished transaction")
        with suppress(FileNotFoundError):
            descriptors.append(open_regular(path.with_name(path.name + "-wal")))
        yield DatabasePages(descriptors[0], descriptors[1] if len(descriptors) > 1 else None)
    except OSError as error:
        raise CouldNotLook(
            text("{path}: {reason}", path=path.name, reason=os.strerror(error.errno or 0).lower())
        ) from error
    finally:
        for fd in descriptors:
            os.close(fd)


def _committed(wal: int, page_size: int) -> dict[int, int]:
    """By page number: the offset of its newest committed version in the log.

    Salts distinguish the current frames from older ones. Checksums are not verified, because a
    wrong page can only make reading fail here, never a write.
    """
    length = os.fstat(wal).st_size
    if length < 32:
        return {}
    if length > WAL_LIMIT:
        raise CouldNotLook(
            text("its write-ahead log is too large to read ({size})", size=size(length))
        )
    head = os.pread(wal, 32, 0)
    magic, _, wal_page_size = struct.unpack_from(">III", head)
    if magic not in (0x377F0682, 0x377F0683) or wal_page_size != page_size:
        return {}
    salts = head[16:24]
    frames: dict[int, int] = {}
    pending: dict[int, int] = {}
    for offset in range(32, length - page_size - 23, page_size + 24):
        frame = os.pread(wal, 24, offset)
        if len(frame) < 24 or frame[8:16] != salts:
            break
        number, commit = struct.unpack_from(">II", frame)
        pending[number] = offset + 24
        if commit:
            frames.update(pending)
            pending.clear()
    return frames


class PagesWithLog(DatabasePages):
    """The pages of a database whose write-ahead log has already been read."""

    def __init__(self, files: OpenFiles, log: WriteAheadLog, header: Header) -> None:
        self.db = files.main
        self.wal = files.log
        self.frames = dict(log.pages)
        self.page_size = log.page_size if log.pages else header.page_size
        self.count = log.db_pages or header.snapshot.size // self.page_size
        self.usable = self.page_size - self.read(1)[20]
