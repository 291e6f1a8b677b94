"""Repair the header, the indexes, or an interrupted transaction of a database."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import progress
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine.soundness import integrity_errors
from hermes_doctor.sqlite.header import MAGIC, PAGE_SIZES
from hermes_doctor.sqlite.repairs.work import delete_schema_rows, open_copy

_KINDS = (b"\x05", b"\x0d")
"""Valid types of the first page: interior or leaf page of a table."""


def write_magic(copy: Path) -> list[str]:
    """Write the 16 magic bytes at the start, and nothing else."""
    with copy.open("r+b") as file:
        file.write(MAGIC)
    return ["Its first 16 bytes were restored; every row is kept."]


def rewrite_header(copy: Path) -> list[str]:
    """Write a new header: correct the fixed fields, count the pages, and find the page size.

    The page size is the first that SQLite accepts. The freelist is dropped, because only the
    header pointed to it; VACUUM then frees these pages.
    """
    size = copy.stat().st_size
    with copy.open("rb") as file:
        head = file.read(108)
    if len(head) < 108 or head[100:101] not in _KINDS:
        raise CannotFix("its first page is lost, not only the header")
    stored = int.from_bytes(head[16:18], "big")
    likely = 65536 if stored == 1 else stored
    for page_size in sorted(PAGE_SIZES, key=lambda one: (one != likely, one != 4096, one)):
        if size % page_size or not 0 < size // page_size < 2**32:
            continue
        for reserved in sorted({head[20], 0}, key=lambda one: one != head[20]):
            with copy.open("r+b") as file:
                file.write(_header(head, page_size, size // page_size, reserved))
            try:
                return _agreed(copy)
            except CannotFix:
                continue
    raise CannotFix("SQLite cannot open it with any header")


def _header(head: bytes, page_size: int, pages: int, reserved: int) -> bytes:
    """A header for these pages that keeps the plausible counters of the old one."""
    new = bytearray(head[:100])
    new[:16] = MAGIC
    new[16:18] = (1 if page_size == 65536 else page_size).to_bytes(2, "big")
    new[18:20] = head[18:20] if set(head[18:20]) <= {1, 2} else b"\x02\x02"
    new[20] = reserved
    new[21:24] = bytes([64, 32, 32])
    new[28:32] = pages.to_bytes(4, "big")
    new[32:40] = bytes(8)
    if int.from_bytes(head[44:48], "big") not in (1, 2, 3, 4):
        new[44:48] = (4).to_bytes(4, "big")
    new[48:56] = bytes(8)
    new[56:60] = (1).to_bytes(4, "big")
    new[64:68] = bytes(4)
    new[72:92] = bytes(20)
    new[92:96] = new[24:28]  # SQLite uses the page count only if these two are equal
    return bytes(new)


def _agreed(copy: Path) -> list[str]:
    with open_copy(copy) as connection:
        left = integrity_errors(connection)
        if left and all(
            "never used" in sentence for line in left for sentence in line.splitlines()[1:]
        ):
            connection.execute("VACUUM")
            left = integrity_errors(connection)
        if left:
            raise CannotFix("more than its header is damaged")
    return ["The header was written again."]


_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'index' AND typeof(name) = 'text'"


def reindex(copy: Path) -> list[str]:
    """Rebuild every index; pages that the damage had orphaned are freed."""
    with open_copy(copy) as connection:
        names = [row[0] for row in connection.execute(_INDEXES)]
        for place, name in enumerate(names):
            progress.report("rebuilding its indexes", place / len(names))
            connection.execute(f"REINDEX {quote_name(name)}")
        progress.report("letting SQLite check every page")
        left = integrity_errors(connection)
        if left:
            connection.execute("VACUUM")  # "page is never used": the damage had orphaned it
            left = integrity_errors(connection)
        if left:
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(names)} indexes were rebuilt from the rows."]


def compact(copy: Path) -> list[str]:
    """Compact the database with VACUUM, which removes unused pages."""
    before = copy.stat().st_size
    with open_copy(copy) as connection:
        connection.execute("VACUUM")
    saved = before - copy.stat().st_size
    return [f"{saved / 1024**2:.0f} MB of unused pages were removed."]


def remake(copy: Path) -> list[str]:
    """Delete indexes that are too damaged for REINDEX from the schema, and create them again."""
    with open_copy(copy) as connection:
        declared = connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND typeof(sql) = 'text'"
        ).fetchall()
    delete_schema_rows(copy, "type = 'index' AND sql IS NOT NULL", [])
    with open_copy(copy) as connection:
        connection.execute("VACUUM")  # frees their pages, which no index owns now
        connection.execute("REINDEX")
        for (sql,) in declared:
            connection.execute(sql)
        if integrity_errors(connection):
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(declared)} indexes were declared again and rebuilt from the rows."]


def roll_back(copy: Path) -> list[str]:
    """Open the copy with its journal, so that SQLite plays the journal back."""
    journal = copy.with_name(copy.name + "-journal")
    if snapshot(journal).kind != "file":
        raise CannotFix("the journal is missing")
    with open_copy(copy) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if snapshot(journal).kind != "absent":
        raise CannotFix("SQLite did not roll the transaction back")
    return ["The unfinished transaction was undone."]
