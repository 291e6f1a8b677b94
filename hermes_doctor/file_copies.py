"""Copies of files, from which a repair can take what a damaged file has lost."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hermes_doctor.lazy import NamedTuple


class DatabaseCopy(NamedTuple):
    """A copy of a database: a file, or a `member` of a zip, which may be of another home."""

    path: Path
    size: int
    mtime_ns: int
    member: str = ""
    doubtful: bool = False


class TextCopy(NamedTuple):
    """A copy of a small file, with its bytes."""

    label: str
    data: bytes
    modified: datetime
    anywhere: bool = False  # in a folder that all homes of this user share
