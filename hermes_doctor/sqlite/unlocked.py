"""Let SQLite read a file of a home in this process, without locks and without writing.

SQLite's file functions that take no locks ("unix-none") are used with one change: they open every
file read-only and keep its access time. In exclusive mode SQLite then keeps its index of the
write-ahead log in memory, so no -shm file is mapped or made, and nothing waits for us.

Because nothing is locked, a checkpoint of the gateway can change a page while we read. So the
reader notes the state of the files when it opens them. If it is another one after a query, the file
is opened again and the query is repeated. If that happens again, a separate process answers, which
uses locks. The queries of a transaction must see the same data, so a change during a transaction is
reported to the caller, who starts over.

With a separate process (`reader.InProcess`), `check` takes 30 ms more CPU: 415 ms instead
of 385 ms, on a used home with a running gateway (`benchmarks/trees.py`).
"""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
import os
import sqlite3
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import inspector
from hermes_doctor.sqlite.reader import InProcess, QueryResult, Reader
from hermes_doctor.system import time_limits
from hermes_doctor.system.files import open_regular

NAME = "hermes-doctor-reads"
ATTEMPTS = 2
"""How often a query is tried without locks while another program writes the file."""
_READ_ONLY = 0x1
_WRITING = 0x2 | 0x4 | 0x8 | 0x10
"""SQLite's flags to open for writing, to create, to delete when closed, and to open only if new."""
_LOGS, _OTHER = 0x80000 | 0x800, 0x4000
"""SQLite's flags for a log or journal, whose owner it changes as root, and for another file."""
_CANNOT_OPEN = 14
_DESCRIPTOR_AT = 24
"""Where SQLite's structure of an open file has its descriptor, after three pointers."""
_kept: list[object] = []
"""Keeps the functions alive, because SQLite calls them until the process ends."""


@cache
def _register() -> str:
    """Register the file functions and return their name; raise if this SQLite is unusual."""
    number, pointer, name = ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p
    opening = ctypes.CFUNCTYPE(number, pointer, pointer, pointer, number, ctypes.POINTER(number))
    deleting = ctypes.CFUNCTYPE(number, pointer, pointer, number)

    class Vfs(ctypes.Structure):
        """The C structure sqlite3_vfs, version 3."""

        _fields_ = (
            ("version", number),
            ("sizes", number * 2),
            ("next", pointer),
            ("name", name),
            ("data", pointer),
            ("open", opening),
            ("delete", deleting),
            ("others", pointer * 14),
        )

    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
        usual = library.sqlite3_vfs_find(b"unix-none")
        if not usual or usual.contents.version < 3 or ctypes.sizeof(pointer) != 8:
            raise CouldNotLook("this SQLite cannot read without locks")
        ours = Vfs.from_buffer_copy(usual.contents)
        original = usual.contents.open

        def open_(_: int, path: int, file: int, flags: int, told: object) -> int:
            wanted = (flags & ~_WRITING) | _READ_ONLY
            if flags & _LOGS:
                wanted = (wanted & ~_LOGS) | _OTHER
            failed: int = original(ctypes.addressof(usual.contents), path, file, wanted, told)
            return failed or (0 if _keep_access_time(path, file) else _CANNOT_OPEN)

        ours.name = NAME.encode()
        ours.open = opening(open_)
        ours.delete = deleting(lambda *_: 0)
        _kept.extend((ours, ours.open, ours.delete, usual))
        if library.sqlite3_vfs_register(ctypes.byref(ours), 0):
            raise CouldNotLook("this SQLite cannot read without locks")
    except (AttributeError, OSError, TypeError, ValueError) as error:
        raise CouldNotLook("this SQLite cannot read without locks") from error
    return NAME


def _keep_access_time(path: int, file: int) -> bool:
    """Let reading not change the access time; False if the descriptor is not of this file."""
    import fcntl

    try:
        descriptor = ctypes.c_int.from_address(file + _DESCRIPTOR_AT).value
        opened, named = os.fstat(descriptor), os.stat(ctypes.string_at(path))
        if (opened.st_dev, opened.st_ino) != (named.st_dev, named.st_ino):
            return False
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | getattr(os, "O_NOATIME", 0))
    except PermissionError:  # only the owner and root may keep the access time
        return True
    except (OSError, ValueError):
        return False
    return True


def open_large(path: Path, file_state: str, *, here: bool) -> Reader:
    """Open a file that is too large for memory: `here`, or in a separate process.

    An unusual build of SQLite is always used in a separate process.
    """
    if here:
        with contextlib.suppress(CouldNotLook):
            return Unlocked(path, file_state)
    return InProcess(path, file_state)


class Unlocked:
    """Queries the file itself, in this process."""

    def __init__(self, path: Path, file_state: str) -> None:
        """The write-ahead log of a file that is not in use is ignored."""
        self.address = f"{inspector.escaped(str(path))}?mode=ro&vfs={_register()}"
        self.path = path
        self.file_state = file_state
        self.with_log = file_state != inspector.NOT_IN_USE
        self.locked: InProcess | None = None
        """What answers instead, once a writer has come between twice."""
        self.guard = threading.Lock()
        self.reading = False
        """Whether the caller has begun a transaction."""
        self._open()

    def _open(self) -> None:
        self.state = self._state()
        alone = not self.with_log or not os.path.exists(f"{self.path}-wal")
        address = f"{self.address}&immutable=1" if alone else self.address
        try:
            self.connection = sqlite3.connect(
                address, uri=True, isolation_level=None, check_same_thread=False, timeout=0
            )
        except sqlite3.Error as error:
            raise CouldNotLook(
                text("SQLite cannot open it ({error})", error=inspector.name(error))
            ) from error
        self.connection.text_factory = bytes
        self.timed = inspector.TimedConnection(self.connection)
        self.timed.ask("PRAGMA mmap_size=0")  # a mapped file that shrinks kills its process
        self.timed.ask("PRAGMA locking_mode=EXCLUSIVE")

    def _state(self) -> object:
        """Return values that change when another program writes the file or restarts its log."""
        if not self.with_log:
            return None
        try:
            main = os.stat(self.path)
            with os.fdopen(open_regular(Path(f"{self.path}-wal")), "rb", 0) as log:
                head = log.read(32)
        except (OSError, CouldNotLook) as error:
            return str(error)
        return main.st_ino, main.st_mtime_ns, main.st_size, head

    def ask(
        self, sql: str, seconds: float | None = None, tables: Sequence[str] | None = None
    ) -> QueryResult:
        """Return the rows of one statement, from one state of the file."""
        allowed = None if tables is None else list(tables)
        limit = None if seconds is None else time_limits.stretch(seconds)
        with self.guard:
            for attempt in range(ATTEMPTS if self.locked is None else 0):
                if attempt:
                    self.connection.close()
                    self._open()
                answer = QueryResult(**self.timed.ask(sql, limit, allowed))
                if sql == "ROLLBACK":
                    self.reading = False
                    return answer
                if self._state() == self.state:
                    self.reading = self.reading or sql == "BEGIN"
                    return answer
                if self.reading:
                    raise CouldNotLook(
                        text("{path}: another program is writing it now", path=self.path.name)
                    )
            if self.locked is None:
                self.locked = InProcess(self.path, self.file_state)
            return self.locked.ask(sql, seconds, tables)

    def close(self) -> None:
        """Close the file; it has no lock that could be lost.

        It stays open if an abandoned thread still waits for the disk, which may be for ever.
        """
        if not self.guard.acquire(blocking=False):
            return
        try:
            self.connection.close()
            if self.locked is not None:
                self.locked.close()
        finally:
            self.guard.release()
