"""Compare the number of pages and the encoding in a header with the file and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.sqlite.condition import Condition
from hermes_doctor.sqlite.first_page import FirstPageFault
from hermes_doctor.sqlite.pages import DatabasePages

if TYPE_CHECKING:
    from hermes_doctor.sqlite.verdict import Damage


def wrong_encoding(found: Condition) -> FirstPageFault | None:
    """The fault if the header says UTF-16 but the table names are readable as UTF-8."""
    assert found.catalog is not None
    if found.log.pages or found.header.head[56:60] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return None
    if not any(entry.kind in ("table", "index") for entry in found.catalog.entries):
        return None
    return FirstPageFault("fields", "its header has a wrong encoding", {"encoding": 1})


def wrong_count(
    found: Condition, damage: Damage | None, pages: DatabasePages
) -> FirstPageFault | None:
    """The fault if the header claims too few pages and the damage is in the pages beyond."""
    there, uneven = divmod(found.header.snapshot.size, pages.page_size)
    if not damage or uneven or found.log.pages or there <= found.header.page_count:
        return None
    if not any(found.header.page_count < page <= there for page in damage.pages):
        return None
    what = f"its header claims {found.header.page_count} pages, and there are {there}"
    return FirstPageFault("fields", what, {"page_count": there})


def truncation(found: Condition, pages: DatabasePages) -> tuple[int, int] | None:
    """Actual and expected page count if pages are neither in the file nor in the log."""
    there = found.header.snapshot.size // pages.page_size
    first = pages.read(1)
    trusted = first[24:28] == first[92:96]
    claimed = found.log.db_pages or (int.from_bytes(first[28:32], "big") if trusted else 0)
    if claimed <= there:
        uneven = found.header.snapshot.size % pages.page_size
        return (there, there + 1) if uneven and not found.log.pages else None
    if not missing_pages(pages, there, claimed):
        return None
    return there, claimed


def missing_pages(pages: DatabasePages, actual: int, claimed: int) -> int:
    """How many pages behind the end of the file are not in the write-ahead log."""
    # A forged log may claim any number of pages, so they are not counted one by one.
    unwritten = 0x40000000 // pages.page_size + 1  # SQLite's lock bytes; never written
    not_missing = {*pages.frames, unwritten}
    return claimed - actual - sum(actual < number <= claimed for number in not_missing)
