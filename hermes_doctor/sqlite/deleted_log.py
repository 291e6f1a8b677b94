"""Copy and compare databases whose write-ahead log was deleted while a process has it open.

The files are read through open descriptors. In WAL mode only a checkpoint changes the database
file, and it copies only pages of the current log. So the file, read first, and the log, read after
it, are one consistent state if the log was not restarted in between: a page that a checkpoint
wrote meanwhile is also in the log.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.workers import run_as_owner
from hermes_doctor.sqlite import wal
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine.soundness import (
    OK,
    OTHER_RELEASE,
    address,
    integrity_errors,
    name_of,
)
from hermes_doctor.sqlite.files import OpenFiles
from hermes_doctor.sqlite.header import page_size_of

TRIES = 20


class DatabaseImage:
    """The pages of a database with its write-ahead log applied."""

    def __init__(self, main: int, log: int | None) -> None:
        self.main = main
        self.log_fd = log
        self.log = wal.read(log) if log is not None else wal.EMPTY
        self.page_size = (
            self.log.page_size if self.log.pages else page_size_of(os.pread(main, 18, 0)) or 4096
        )
        size = os.fstat(main).st_size
        self.count = self.log.db_pages if self.log.pages else size // self.page_size

    def page(self, number: int) -> bytes:
        """One page, counted from 1; empty past the end."""
        if number > self.count:
            return b""
        if number in self.log.pages and self.log_fd is not None:
            return os.pread(self.log_fd, self.page_size, self.log.pages[number])
        return os.pread(self.main, self.page_size, (number - 1) * self.page_size)

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """All pages with their numbers."""
        return ((number, self.page(number)) for number in range(1, self.count + 1))

    def equals(self, other: DatabaseImage) -> bool:
        """Whether both have the same bytes."""
        same = (self.page_size, self.count) == (other.page_size, other.count)
        return same and all(page == other.page(number) for number, page in self.pages())

    def extends(self, earlier: DatabaseImage) -> bool:
        """Whether this log is the earlier one with frames appended."""
        same = self.log.salts == earlier.log.salts and self.log.salts != b""
        return same and self.log.committed >= earlier.log.committed

    def is_made_of(self, images: tuple[DatabaseImage, ...]) -> bool:
        """Whether each page equals a version of it in the file or the log of one of the others."""
        versions: dict[int, list[tuple[int, int]]] = {}
        for other in images:
            for number, place in other.frames():
                versions.setdefault(number, []).append((other.log_fd or 0, place))
        for number, page in self.pages():
            places = [(image.main, (number - 1) * self.page_size) for image in images]
            places += versions.get(number, ())
            in_files = any(os.pread(fd, len(page), place) == page for fd, place in places)
            if not in_files and not any(page == image.page(number) for image in images):
                return False
        return True

    def frames(self) -> Iterator[tuple[int, int]]:
        """The page number of each frame of the log, and the offset of its bytes."""
        step = wal.FRAME + self.log.page_size
        for frame in range(self.log.frames if self.log_fd is not None else 0):
            assert self.log_fd is not None
            at = wal.LOG_HEAD + frame * step
            (number,) = struct.unpack(">I", os.pread(self.log_fd, 4, at))
            yield number, at + wal.FRAME

    def write(self, path: Path) -> None:
        """Write the image as one new file without a log."""
        with disk.new_file(path) as fd:
            length = self.count * self.page_size
            disk.copy_range(self.main, fd, 0, min(length, os.fstat(self.main).st_size))
            for number in self.log.pages:
                disk.write_at(fd, self.page(number), (number - 1) * self.page_size)


def copy(main: int, log: int | None, index: int | None, target: Path) -> dict[Path, str]:
    """Copy a file and its log, which a process may be writing, as one consistent state.

    The new files are named `target`, with -wal and -shm. Each is returned with the SHA-256 of what
    was read, which is compared with the disk. Raises CannotFix if the writer is too fast.
    """
    targets = tuple(target.with_name(target.name + suffix) for suffix in ("", "-wal", "-shm"))
    for _ in range(TRIES):
        for path in targets:
            disk.remove(path)
        before, known = _mark(main, log), OpenFiles(main, log, index).shm_header()
        digests = {
            path: _copy(fd, path)
            for path, fd in zip(targets, (main, log, index), strict=True)
            if fd is not None
        }
        if _mark(main, log) == before and _holds(targets[1], known, log):
            if all(disk.digest(path) == sha256 for path, sha256 in digests.items()):
                return digests
            raise CannotFix("the copy of {target} differs from the original", target=target.name)
    for path in targets:
        disk.remove(path)
    raise CannotFix("{target} changes too fast to be copied", target=target.name)


def _copy(source: int, target: Path) -> str:
    """Copy the current content of a file; return the SHA-256 of what was read."""
    total, at = hashlib.sha256(), 0
    with disk.new_file(target) as fd:
        while chunk := os.pread(source, disk.CHUNK, at):
            disk.write(fd, chunk)
            total.update(chunk)
            at += len(chunk)
    return total.hexdigest()


def _mark(main: int, log: int | None) -> tuple[object, ...]:
    """A mark that changes when the log is restarted, or when a file without a log is written."""
    if log is not None and (head := os.pread(log, wal.LOG_HEAD, 0)):
        return (head,)
    st = os.fstat(main)
    return st.st_size, st.st_mtime_ns, st.st_ctime_ns


def _holds(path: Path, known: wal.ShmHeader | None, log: int | None) -> bool:
    """Whether a copy of a log has every frame that was committed when copying started."""
    if log is None or known is None:
        return True
    with path.open("rb") as file:
        copied = wal.read(file.fileno())
    return copied.salts != known.salts or copied.committed >= known.committed


class DatabaseComparison(NamedTuple):
    """SQLite's verdict on two databases, and which rows of the first the second lacks."""

    first: str
    second: str
    missing: dict[str, int]
    """By table: rows of the first whose rowid is not in the second."""
    different: dict[str, int]
    """By table: rows that are in both and differ."""


def compare(first: Path, second: Path) -> DatabaseComparison:
    """Compare two databases that are not in use; both are in one folder."""
    return DatabaseComparison(*json.loads(run_as_owner(first, lambda here: _compare(here, second))))


class HistoryComparison(NamedTuple):
    """How a database compares with the one that was lost."""

    common: int
    """How many of its messages, or of its tasks, the lost one has, too."""
    lost: int
    """How many the lost one has."""
    current: int

    @property
    def started_over(self) -> bool:
        """Whether the current one was created empty after the other was lost."""
        return not self.common and (self.current < self.lost or not self.current)


def compare_histories(lost: Path, current: Path) -> HistoryComparison:
    """Compare the messages, or the tasks, of two databases that are not in use."""
    counts = run_as_owner(lost, lambda here: _compare_histories(here, current))
    return HistoryComparison(*json.loads(counts))


_KEYS = {"messages": "session_id, role, timestamp", "tasks": "id"}
"""What identifies a row of these tables, also if it got another number."""


def _compare_histories(lost: Path, current: Path) -> str:
    counts = [0, 0, 0]
    with contextlib.closing(sqlite3.connect(address(lost, "&immutable=1"), uri=True)) as db:
        db.execute("ATTACH ? AS other", (address(current, "&immutable=1"),))
        for table, columns in _KEYS.items():
            with contextlib.suppress(sqlite3.OperationalError):  # one of them lacks the table
                counts[1] += db.execute(f"SELECT count(*) FROM main.{table}").fetchone()[0]
                counts[2] += db.execute(f"SELECT count(*) FROM other.{table}").fetchone()[0]
                mine, theirs = (
                    f"SELECT {columns} FROM {schema}.{table}" for schema in ("main", "other")
                )
                both = f"SELECT count(*) FROM ({theirs} INTERSECT {mine})"
                counts[0] += db.execute(both).fetchone()[0]
    return json.dumps(counts)


def verdict(path: Path) -> str:
    """SQLite's verdict on a database that is not in use."""
    return run_as_owner(path, _verdict)


def _compare(first: Path, second: Path) -> str:
    verdicts = [_verdict(path) for path in (first, second)]
    missing, different = Counter[str](), Counter[str]()
    if verdicts == [OK, OK]:
        with contextlib.closing(sqlite3.connect(address(first, "&immutable=1"), uri=True)) as db:
            db.execute("ATTACH ? AS other", (address(second, "&immutable=1"),))
            for table in ordinary_tables(db, "main"):
                missing[table], different[table] = _rows(db, table)
    return json.dumps([*verdicts, +missing, +different])


def _verdict(path: Path) -> str:
    try:
        with contextlib.closing(sqlite3.connect(address(path, "&immutable=1"), uri=True)) as db:
            errors = integrity_errors(db)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return name_of(error)
    return OK if all(error.startswith(OTHER_RELEASE) for error in errors) else "damaged"


def ordinary_tables(db: sqlite3.Connection, schema: str) -> list[str]:
    """The ordinary tables, without full-text tables, whose content comes from the others."""
    rows = db.execute(
        f"SELECT name, sql FROM {schema}.sqlite_master WHERE type = 'table'"
    ).fetchall()
    virtual = {name for name, sql in rows if sql and sql.upper().startswith("CREATE VIRTUAL")}
    inner = ("sqlite_", *(f"{name}_" for name in virtual))
    return [name for name, _ in rows if name not in virtual and not name.startswith(inner)]


def _rows(db: sqlite3.Connection, table: str) -> tuple[int, int]:
    """How many rows the other database lacks, and how many differ in it."""
    name = quote_name(table)
    columns = [row[1] for row in db.execute(f"PRAGMA main.table_info({name})")]
    theirs = [row[1] for row in db.execute(f"PRAGMA other.table_info({name})")]
    total = db.execute(f"SELECT count(*) FROM main.{name}").fetchone()[0]
    if columns != theirs:
        return (total, 0) if not theirs else (0, total)
    unequal = " OR ".join(f"a.{name} IS NOT b.{name}" for name in map(quote_name, columns))
    joined = f"FROM main.{name} a LEFT JOIN other.{name} b ON a.rowid = b.rowid"
    try:
        missing = db.execute(f"SELECT count(*) {joined} WHERE b.rowid IS NULL").fetchone()[0]
        where = f"b.rowid IS NOT NULL AND ({unequal})"
        return missing, db.execute(f"SELECT count(*) {joined} WHERE {where}").fetchone()[0]
    except sqlite3.OperationalError:  # a table WITHOUT ROWID
        rest = f"SELECT * FROM main.{name} EXCEPT SELECT * FROM other.{name}"
        return db.execute(f"SELECT count(*) FROM ({rest})").fetchone()[0], 0
