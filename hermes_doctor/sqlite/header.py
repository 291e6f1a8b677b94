"""Read the 100-byte header of a database and check whether it is plausible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system.files import Snapshot, open_regular, read_head

MAGIC = b"SQLite format 3\0"
PAGE_SIZES = frozenset(1 << n for n in range(9, 17))


class Header(NamedTuple):
    """The header of a database file, and the file's actual size."""

    head: bytes
    snapshot: Snapshot

    @property
    def empty(self) -> bool:
        """Whether the file has zero bytes: SQLite treats that as a new database."""
        return self.snapshot.size == 0

    @property
    def magic(self) -> bool:
        """Whether the file starts with SQLite's magic bytes."""
        return self.head.startswith(MAGIC)

    @property
    def page_size(self) -> int:
        """Bytes per page; 0 if the field is invalid."""
        return page_size_of(self.head) if len(self.head) >= 100 else 0

    @property
    def keeps_no_log(self) -> bool:
        """Whether the file is in rollback mode: its transactions use a journal, not a log."""
        return self.head[18:20] == b"\1\1"

    @property
    def application_id(self) -> int:
        """The number that an application stores in the file; 0 if it stores none."""
        return int.from_bytes(self.head[68:72], "big")

    @property
    def page_count(self) -> int:
        """The number of pages that the header claims."""
        return int.from_bytes(self.head[28:32], "big")

    @property
    def rest_is_sound(self) -> bool:
        """Whether everything after the magic bytes is what SQLite would have written.

        The fixed bytes, the ranges, the page count against the file's size, and the type of the
        first page together match by chance in less than one file in 2**60.
        """
        if not self.page_size:
            return False
        head = self.head
        write, read_, reserved, *fractions = head[18:24]
        return (
            write in (1, 2)
            and read_ in (1, 2)
            and reserved <= 32
            and fractions == [64, 32, 32]
            and int.from_bytes(head[44:48], "big") in (1, 2, 3, 4)
            and int.from_bytes(head[56:60], "big") in (1, 2, 3)
            and not any(head[72:92])
            and head[100:101] in (b"\x05", b"\x0d")
            and self.page_count * self.page_size == self.snapshot.size
        )

    @property
    def looks_like(self) -> str:
        """What kind of file it is instead, according to its first bytes."""
        head = self.head
        if not any(head):
            return _ZEROS
        for start, name in _OTHERS:
            if head.startswith(start):
                return name
        printable = sum(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head[:100])
        return "text" if printable >= len(head[:100]) else _BYTES


_ZEROS, _BYTES = "zeros", "bytes of no known kind"
UNKNOWN = (_ZEROS, _BYTES)
"""What a damaged database can look like, too."""
_OTHERS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x16\x03", "a TLS record"),
    (b"\x17\x03", "a TLS record"),
    (b"\x37\x7f\x06\x82", "a write-ahead log (a -wal file in the place of its database)"),
    (b"\x37\x7f\x06\x83", "a write-ahead log (a -wal file in the place of its database)"),
    (b"-- ", "an SQL dump"),
    (b"BEGIN TRANSACTION", "an SQL dump"),
    (b"PRAGMA ", "an SQL dump"),
    (b"version https://git-lfs", "a Git LFS pointer"),
)


def page_size_of(head: bytes) -> int:
    """The page size in a header; 0 if it is not one that SQLite has."""
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    return size if size in PAGE_SIZES else 0


def read(path: Path, opener: Callable[[Path], int] = open_regular) -> Header:
    """Read the header of one database file."""
    head, state = read_head(path, 128, opener)
    return Header(head, state)
