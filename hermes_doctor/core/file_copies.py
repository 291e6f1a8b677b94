"""Copies of files, from which a repair can take what a damaged file has lost."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple


class DatabaseCopy(NamedTuple):
    """A copy of a database: a file, or a `member` of a zip, which may be of another home."""

    path: Path
    size: int
    mtime_ns: int
    member: str = ""
    doubtful: bool = False
    rows: int | None = None
    """How many messages or tasks it has; None if that is not known."""
    newest_row: float | None = None
    """When the newest of them was written, in seconds since 1970."""

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts copies: those of this home first, then by their newest content.

        The time of the file decides only if the content is not known: a person may have copied an
        old database a minute ago.
        """
        return self.doubtful, -(self.newest_row or self.mtime_ns / 1e9)

    @property
    def written_at(self) -> datetime:
        """When its newest content was written, as far as that is known."""
        return datetime.fromtimestamp(self.newest_row or self.mtime_ns / 1e9, UTC)


class TextCopy(NamedTuple):
    """A copy of a small file, with its bytes."""

    label: str
    data: bytes
    modified: datetime
    anywhere: bool = False  # in a folder that all homes of this user share
