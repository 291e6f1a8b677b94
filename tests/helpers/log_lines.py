"""Write logs in the format of Hermes, for tests that read them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.hermes.logs.entry import LogEntry, Unread
from hermes_doctor.hermes.logs.stream import LogStream, read
from tests.helpers import support

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()


def line(
    at: float,
    text: str = "something",
    level: str = "INFO",
    logger: str = "gateway.run",
    session: str = "",
    zone: tzinfo = UTC,
) -> str:
    """Return one line with a time in a time zone."""
    shown = datetime.fromtimestamp(round(at, 3), zone)
    tag = f" [{session}]" if session else ""
    milliseconds = shown.microsecond // 1000
    return f"{shown:%Y-%m-%d %H:%M:%S},{milliseconds:03} {level}{tag} {logger}: {text}"


def write(path: Path, lines: Iterable[str] | bytes, written: float) -> Path:
    """Write a file with this modification time."""
    data = lines if isinstance(lines, bytes) else "".join(f"{one}\n" for one in lines).encode()
    support.put(path, data)
    os.utime(path, (written, written))
    return path


def reading(home: Path, since: float = 0, **options: object) -> LogStream:
    """A reading of all of a window."""
    return read(Home(home), since=since, **({"max_bytes": None} | options))  # type: ignore[arg-type]


def entries(home: Path, since: float = 0, **options: object) -> list[LogEntry]:
    """Return all entries of a home; every source must be readable."""
    found = reading(home, since, **options)
    got = list(found)
    assert found.unread == []
    return got


def texts(home: Path, since: float = 0, **options: object) -> list[str]:
    """Return the texts of all entries."""
    return [entry.text for entry in entries(home, since, **options)]


def unread(home: Path, since: float = 0, **options: object) -> list[Unread]:
    """Return what could not be read."""
    found = reading(home, since, **options)
    list(found)
    return found.unread


def refuse(unread: Unread) -> None:
    """Fail the test; for sources that must be readable."""
    raise AssertionError(unread)
