"""One entry of a backup's manifest."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_doctor.lazy import EMPTY, NamedTuple


class BackupEntry(NamedTuple):
    """One path in a backup, with everything needed to restore it exactly."""

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
    """The digest of its content: plain, or by chunks (`digests`)."""
    target: str | None = None
    xattrs: Mapping[str, str] = EMPTY
    method: str = "bytes"
    """bytes (copied as it was) or sqlite (copied through SQLite from a database in use)."""
    integrity: str | None = None
    """SQLite's verdict on a database that was in use or is one of Hermes' own."""
    blocks: bool = False
    """Stored as an earlier whole copy and the blocks that differ from it (`blocks`)."""
    seen: tuple[int, ...] = ()
    """When the file was read, and the marks that identify its version (`unchanged.marks`)."""
    read_at: int = 0
    """When its copy was last read back, in nanoseconds."""
    examined_at: int = 0
    """When SQLite last examined it."""
    pieces: str = ""
    """The known digests of the chunks of its whole copy, or of its base."""

    def alone(self) -> BackupEntry:
        """The entry for a whole copy outside the vault, which shares nothing."""
        return self._replace(blocks=False, seen=(), pieces="")


def can_be_names(text: str) -> bool:
    """Whether a file system could have names with these characters."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
