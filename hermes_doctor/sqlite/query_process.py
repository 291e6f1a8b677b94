"""Run SQLite on a file of a home in a separate process that cannot write.

`reader` runs `main` in a new Python, with HOW PATH [UID GID GROUP…]. It reads queries from
standard input and writes each answer to standard output. There are three reasons for a separate
process: SQLite's locks belong to a process and are lost when another part of the tool closes the
same file; a file that shrinks while it is mapped kills the process that maps it; and the call with
which SQLite opens files is replaced here by one that opens read-only, creates nothing and keeps the
access time. It imports as little as possible, because each import makes a quick examination slower.
"""

from __future__ import annotations

import _sqlite3
import _thread
import marshal
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

NOT_IN_USE, IN_USE, LEFTOVER_LOG = "rest", "live", "left"
"""Not in use and without a write-ahead log; in use by others; with a log that no process uses."""
OPTIONS = {
    NOT_IN_USE: "mode=ro&immutable=1",
    IN_USE: "mode=ro&readonly_shm=1",
    LEFTOVER_LOG: "mode=ro",
}
MOST_ROWS = 500
NO_THREAD = "NO_THREAD"
"""The error if the time of a statement cannot be limited, because no thread can be started."""
CHANGING = "SQLITE_READONLY_RECOVERY"
"""SQLite's error name if the index of the log is incomplete: its writer was killed, or is just
changing it."""
MOST_REPEATS = 30
"""How often queries are repeated after that error, all together; a writer is soon ready."""
_NOATIME = getattr(os, "O_NOATIME", 0)
HARMLESS = frozenset(
    {
        "coalesce",
        "count",
        "ifnull",
        "iif",
        "json_extract",
        "json_object",
        "json_type",
        "json_valid",
        "length",
        "lower",
        "nullif",
        "substr",
        "substring",
        "typeof",
        "upper",
    }
)
"""Functions that read only their arguments, return no more than these contain, and are fast."""


def main(file_state: str, path: str, *user: str) -> None:
    """Answer queries until standard input ends; as another user, if his ids are given."""
    if user:
        become(*map(int, user))
    index: list[int] = []
    if not only_reading(path, index if file_state == LEFTOVER_LOG else None):
        say({"error": "NO_HOOK"})
        return
    try:
        connection = _sqlite3.connect(
            address(path, file_state), uri=True, isolation_level=None, timeout=1
        )
    except _sqlite3.Error as error:
        say({"error": name(error)})
        return
    connection.text_factory = bytes
    questions = os.fdopen(0, "rb", closefd=False)
    asked = TimedConnection(connection)
    asked.ask(f"PRAGMA mmap_size={1 << 40}")
    say({"error": None})
    repeats = 0
    while True:
        try:
            sql, seconds, tables = marshal.load(questions)
        except EOFError:
            return
        answer = asked.ask(sql, seconds, tables)
        while answer["error"] == CHANGING and repeats < MOST_REPEATS:
            repeats += 1
            time.sleep(0.01)
            answer = asked.ask(sql, seconds, tables)
        answer["log_index"] = os.pread(index[-1], 136, 0) if index else b""
        say(answer)


def become(uid: int, gid: int, *groups: int) -> None:
    """Become another user permanently, who may be unable to read Python's own files."""
    import ctypes  # noqa: F401 (needed later)

    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def say(answer: dict[str, Any]) -> None:
    """Write one answer to standard output."""
    data = memoryview(marshal.dumps(answer))
    while data:
        data = data[os.write(1, data) :]


def address(path: str, file_state: str) -> str:
    """The file as an SQLite URI, with the options for its state."""
    return f"{escaped(path)}?{OPTIONS[file_state]}"


def escaped(path: str) -> str:
    """The file as an SQLite URI without options, with all special bytes escaped."""
    return "file:" + "".join(
        chr(byte) if 48 <= byte < 58 or 65 <= (byte & 0xDF) < 91 or byte == 47 else f"%{byte:02x}"
        for byte in os.fsencode(path)
    )


class TimedConnection:
    """Runs one statement after another on a connection, each with a time limit."""

    def __init__(self, connection: _sqlite3.Connection) -> None:
        self.connection = connection
        connection.create_function("fingerprint", -1, fingerprint)
        self.guard = _thread.allocate_lock()
        self.bell = _thread.allocate_lock()
        self.bell.acquire()
        self.end: float | None = None
        """The deadline of the running statement; None if none is running."""
        self.wakes: float | None = None
        """When the interrupting thread wakes up next; None if there is no such thread."""

    def ask(
        self, sql: str, seconds: float | None = None, tables: list[str] | None = None
    ) -> dict[str, Any]:
        """The rows of one statement, or SQLite's name for the error.

        With `tables` the statement may only read these tables and call harmless functions. This
        is for statements that evaluate a view, because the view's SQL comes from the file.
        """
        if tables is not None:
            self.connection.set_authorizer(reads_only(tables))
        try:
            return self.answer(sql, seconds)
        finally:
            if tables is not None:
                self.connection.set_authorizer(None)

    def answer(self, sql: str, seconds: float | None) -> dict[str, Any]:
        """Run one statement with the current authorizer."""
        if seconds is not None:
            try:
                self.limit(seconds)
            except RuntimeError:  # memory or the number of processes is limited
                return {"rows": [], "error": NO_THREAD, "said": ""}
        rows: list[tuple[object, ...]] = []
        try:
            for row in self.connection.execute(sql):
                rows.append(row)
                if len(rows) == MOST_ROWS:
                    break
        except _sqlite3.Error as error:
            # A check of a damaged table may fail after it has reported where the damage is.
            kept = [[plain(value) for value in row] for row in rows] if "_check" in sql else []
            return {"rows": kept, "error": name(error), "said": str(error)[:400]}
        except (UnicodeError, OverflowError, ValueError, MemoryError) as error:
            return {"rows": [], "error": type(error).__name__, "said": ""}
        finally:
            with self.guard:
                self.end = None
        told = [[plain(value) for value in row] for row in rows]
        return {"rows": told, "error": None, "said": ""}

    def limit(self, seconds: float) -> None:
        """Limit the next statement to so many seconds; only an interrupt stops an integrity check.

        One thread serves all statements, because starting one takes longer than most of them.
        """
        with self.guard:
            self.end = time.monotonic() + seconds
            if self.wakes is None:
                _thread.start_new_thread(self.interrupt, ())
                self.wakes = self.end
            elif self.end < self.wakes and self.bell.locked():
                self.bell.release()

    def interrupt(self) -> None:
        """Interrupt a statement that takes too long; return when no statement is running.

        It interrupts repeatedly, because SQLite forgets an interrupt from before the statement.
        """
        while True:
            with self.guard:
                now = time.monotonic()
                if self.end is None:
                    self.wakes = None
                    return
                if now >= self.end:
                    try:
                        self.connection.interrupt()
                    except _sqlite3.Error:  # closed
                        self.wakes = None
                        return
                self.wakes = max(self.end, now + 0.005)
                left = self.wakes - now
            self.bell.acquire(timeout=left)


def reads_only(tables: Iterable[str], writes: Iterable[str] = ()) -> Callable[..., int]:
    """An authorizer for reading these tables, for harmless functions, and for rows of `writes`."""
    written = {table.lower() for table in writes}
    allowed = {table.lower() for table in tables} | written
    changes = (_sqlite3.SQLITE_INSERT, _sqlite3.SQLITE_UPDATE, _sqlite3.SQLITE_DELETE)

    def permitted(action: int, one: str, two: str) -> bool:
        if action == _sqlite3.SQLITE_READ:
            return one in allowed
        if action in changes:
            return one in written
        if action == _sqlite3.SQLITE_PRAGMA:  # FTS5 asks whether another connection has written
            return bool(written) and one == "data_version"
        if action == _sqlite3.SQLITE_FUNCTION:
            return two in HARMLESS
        return action == _sqlite3.SQLITE_SELECT

    def judge(action: int, one: str | None, two: str | None, *_: object) -> int:
        fine = permitted(action, (one or "").lower(), (two or "").lower())
        return _sqlite3.SQLITE_OK if fine else _sqlite3.SQLITE_DENY

    return judge


def fingerprint(key: bytes, *values: bytes | None) -> int:
    """A 64-bit digest of a row, so that rows can be compared without copying their content."""
    from hashlib import blake2b

    digest = blake2b(key=key, digest_size=8)
    for value in values:
        digest.update(b"-" if value is None else b"%d:" % len(value))
        digest.update(value or b"")
    return int.from_bytes(digest.digest(), "big", signed=True)


def plain(value: object) -> object:
    """Decode text for the answer; text of a damaged file may not be UTF-8."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def name(error: _sqlite3.Error) -> str:
    """SQLite's name for an error."""
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


_kept: list[Callable[..., object]] = []
"""Keeps the callbacks alive, because SQLite calls them until the process ends."""


def only_reading(path: str, index: list[int] | None) -> bool:
    """Make SQLite open every file read-only; False if its system calls cannot be replaced.

    With `index`, the -shm file is created in memory and its descriptor is appended there: SQLite
    needs one to use a write-ahead log, and one next to the database must not be touched.
    """
    import ctypes

    number, text, pointer = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p

    class Vfs(ctypes.Structure):
        """The C structure sqlite3_vfs, up to the function that is needed."""

        _fields_ = (
            ("version", number),
            ("sizes", number * 2),
            ("next", pointer),
            ("name", text),
            ("data", pointer),
            ("calls", pointer * 13),
            ("set_system_call", ctypes.CFUNCTYPE(number, pointer, text, pointer)),
        )

    own = os.fsencode(path) + b"-shm"

    def open_(name: bytes, flags: int, _: int) -> int:
        try:
            if index is not None and name == own:
                index.append(os.memfd_create("index"))
                return index[-1]
            return _open(name, flags)
        except OSError as error:
            ctypes.set_errno(error.errno or 5)
            return -1

    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
        vfs = library.sqlite3_vfs_find(None)
        if not vfs or vfs.contents.version < 3:
            return False
        # As root, SQLite changes the owner of a log to that of its database, even when reading.
        leave = ctypes.CFUNCTYPE(number, number)(lambda _: 0)
        calls = {
            b"open": ctypes.CFUNCTYPE(number, text, number, number, use_errno=True)(open_),
            b"fchown": leave,
            b"fchmod": leave,
            b"unlink": ctypes.CFUNCTYPE(number, pointer)(lambda _: -1),
        }
        _kept.extend(calls.values())
        this = ctypes.addressof(vfs.contents)
        replace = vfs.contents.set_system_call
        return not any(replace(this, name, ctypes.cast(f, pointer)) for name, f in calls.items())
    except (AttributeError, OSError, TypeError):
        return False


def _open(name: bytes, flags: int) -> int:
    """Open an existing file read-only, with the other flags as given."""
    keep = flags & ~(os.O_CREAT | os.O_RDWR | os.O_WRONLY | os.O_TRUNC | os.O_EXCL)
    try:
        return os.open(name, keep | os.O_NONBLOCK | _NOATIME)
    except PermissionError:  # only the owner and root may keep the access time
        return os.open(name, keep | os.O_NONBLOCK)
