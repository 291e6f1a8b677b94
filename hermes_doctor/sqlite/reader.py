"""Query a database with SQL: on an image in memory, a connection, or in a separate process."""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import close_others
from hermes_doctor.sqlite import query_process

if TYPE_CHECKING:
    from hermes_doctor.core.system.privileges import Privileges

Row = list[Any]


_START = (
    "import sys; sys.path.append(sys.argv.pop(1).rpartition('/')[0]); "
    "import query_process; query_process.main(*sys.argv[1:])"
)
"""Starts the process with its compiled code; as a script, it would be compiled each time: 4 ms."""
UNFINISHED = "SQLITE_INTERRUPT"
"""SQLite's error name for a statement that was interrupted."""


class QueryResult(NamedTuple):
    """SQLite's answer to one statement."""

    rows: list[Row]
    error: str | None = None
    """SQLite's name for the error."""
    said: str = ""
    """SQLite's message. It may quote names from the file: parse it, but never show it."""
    log_index: bytes = b""
    """The header of SQLite's own index of the write-ahead log, if it made one."""

    @property
    def unfinished(self) -> bool:
        """Whether the statement was interrupted before it had an answer."""
        return self.error == UNFINISHED

    @property
    def damaged(self) -> bool:
        """Whether SQLite found something that cannot be in a sound database."""
        return bool(self.error) and str(self.error).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))

    @property
    def failed(self) -> bool:
        """Whether SQLite could not read the file, which says nothing about its content."""
        understood = self.unfinished or self.damaged or self.error == "SQLITE_ERROR"
        return bool(self.error) and not understood


class Reader:
    """Answers SQL queries, one statement at a time."""

    def __init__(self) -> None:
        self.guard = threading.Lock()

    def ask(
        self, sql: str, seconds: float | None = None, tables: Sequence[str] | None = None
    ) -> QueryResult:
        """Return the rows of one statement; the time limit is for an idle machine.

        With `tables` it may read only these; see `query_process`. Raises CouldNotLook if its time
        could not be limited.
        """
        with self.guard:
            limit = None if seconds is None else limits.stretch(seconds)
            answer = self.answer(sql, limit, None if tables is None else list(tables))
        if answer["error"] == query_process.NO_THREAD:
            raise CouldNotLook(limits.NO_THREAD)
        return QueryResult(**answer)

    def answer(self, sql: str, seconds: float | None, tables: list[str] | None) -> dict[str, Any]:
        """Run one statement."""
        raise NotImplementedError

    def close(self) -> None:
        """End the reader; it cannot be queried any more."""


class OnConnection(Reader):
    """Queries a connection that the caller has opened, for example on a private copy."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self.connection = connection
        self.timed_connection = query_process.TimedConnection(connection)

    def answer(self, sql: str, seconds: float | None, tables: list[str] | None) -> dict[str, Any]:
        """Run one statement."""
        return self.timed_connection.ask(sql, seconds, tables)


class InMemory(OnConnection):
    """Queries an image of the database in memory, which may also be written to."""

    def __init__(self, image: bytes) -> None:
        super().__init__(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
        self.connection.text_factory = bytes
        try:
            self.connection.deserialize(image)
        except (sqlite3.Error, AttributeError, MemoryError) as error:
            self.connection.close()
            raise CouldNotLook("SQLite could not open it in memory") from error

    def close(self) -> None:
        """Free the memory."""
        with self.guard:
            self.connection.close()


class InProcess(Reader):
    """Queries the file itself in a separate process that cannot write."""

    def __init__(self, path: Path, file_state: str, user: Privileges | None = None) -> None:
        """Start the process; it becomes another user if one is given."""
        import subprocess

        code = ["-c", _START, query_process.__file__]
        command = [sys.executable, "-I", "-S", "-B", *code, file_state, str(path)]
        if user is not None:
            command += map(str, (user.uid, user.gid, *user.groups))
        super().__init__()
        from hermes_doctor.core.system import root_parent

        try:
            if root_parent.is_separate():
                self.process: Any = _Forked(file_state, str(path))
            else:
                pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
                self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing)
        except (OSError, ValueError) as error:
            raise CouldNotLook("could not start a worker process") from error
        opened = self._answer()
        if opened.get("error"):
            self.close()
            raise CouldNotLook("SQLite cannot open it ({error})", error=opened["error"])

    def answer(self, sql: str, seconds: float | None, tables: list[str] | None) -> dict[str, Any]:
        """Run one statement."""
        assert self.process.stdin is not None
        try:
            marshal.dump((sql, seconds, tables), self.process.stdin)
            self.process.stdin.flush()
        except (OSError, ValueError):
            return {"rows": [], "error": "GONE"}
        return self._answer()

    def touched(self) -> int:
        """How many bytes of its files it has read so far; 0 if that is unknown."""
        try:
            with open(f"/proc/{self.process.pid}/statm") as file:
                return int(file.read().split()[2]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        try:
            answer: dict[str, Any] = marshal.load(self.process.stdout)
        except (OSError, ValueError, EOFError, TypeError):
            return {"rows": [], "error": "GONE"}
        return answer

    def close(self) -> None:
        """End the process."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError, ValueError):
                if stream is not None:
                    stream.close()
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()

    def __del__(self) -> None:
        if hasattr(self, "process"):
            self.close()


class _Forked:
    """A fork of this process, for a user who may be unable to start Python himself."""

    def __init__(self, file_state: str, path: str) -> None:
        (hearing, telling), (reading, writing) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._live(hearing, writing, file_state, path)
        os.close(hearing)
        os.close(writing)
        self.stdin, self.stdout = os.fdopen(telling, "wb"), os.fdopen(reading, "rb")
        self.ended = False

    @staticmethod
    def _live(hearing: int, writing: int, file_state: str, path: str) -> NoReturn:
        try:
            os.dup2(hearing, 0)
            os.dup2(writing, 1)
            close_others()
            query_process.main(file_state, path)
        finally:
            os._exit(0)

    def kill(self) -> None:
        """Kill it."""
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it has ended."""
        if not self.ended:
            self.ended = True
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
