"""One path of a backup as its manifest has it."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_doctor.lazy import NOTHING, NamedTuple


class Entry(NamedTuple):
    """One path as it was: enough to give it back exactly."""

    path: str
    """Relative to the home, or absolute for a file that a symlink of the home leads to."""
    kind: str
    """file, symlink, absent, or mode (only mode and owner matter; no copy is kept)."""
    size: int = 0
    mode: int = 0
    uid: int = -1
    gid: int = -1
    mtime_ns: int = 0
    sha256: str | None = None
    """Of its content: plain, or by its pieces (`digests`)."""
    target: str | None = None
    xattrs: Mapping[str, str] = NOTHING
    method: str = "bytes"
    """bytes (as it lay there) or sqlite (through SQLite, from a database in use)."""
    integrity: str | None = None
    """What SQLite says of a database: of any that was in use, and of Hermes' own."""
    blocks: bool = False
    """Kept as an earlier whole copy and the blocks that differ from it (`blocks`)."""
    seen: tuple[int, ...] = ()
    """When the file was read, and what told then that it was this one (`sharing`)."""
    read_at: int = 0
    """When its copy was last read back, in nanoseconds."""
    examined_at: int = 0
    """When SQLite last examined it."""
    pieces: str = ""
    """The SHA-256 of each piece of its whole copy, or its base's, where they are known."""

    def alone(self) -> Entry:
        """The same of a copy in one piece, somewhere where there is no other to share with."""
        return self._replace(blocks=False, seen=(), pieces="")


def can_be_names(text: str) -> bool:
    """Whether a disk could have names of these characters."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
