"""Find the SQLite version of a running gateway in the library file that it has loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import remembered_files
from hermes_doctor.core.system.files import MEGABYTE, open_regular
from hermes_doctor.hermes.processes import process_stat

MOST, MOST_DEEP = 8 * MEGABYTE, 128 * MEGABYTE
_SOURCE = pattern(rb"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d [0-9a-f]{40,64}")
_VERSION = pattern(rb"\x003\.(\d{1,3})\.(\d{1,3})(?:\.\d{1,3})?\x00")


class Library(NamedTuple):
    """The SQLite library that a process has loaded."""

    version: tuple[int, int, int]
    path: Path
    pid: int

    @property
    def risky(self) -> bool:
        """Whether two processes that write at the same time can damage a database in WAL mode.

        According to SQLite's notes: from 3.7.0 to 3.51.2, except the fixed 3.50.7 and 3.44.6.
        """
        if not (3, 7, 0) <= self.version <= (3, 51, 2):
            return False
        repaired = {(3, 50): 7, (3, 44): 6}.get(self.version[:2])
        return repaired is None or self.version[2] < repaired


def of(pid: int, *, deep: bool) -> Library | None:
    """Return the SQLite of a process; None if it has none, or the file is too large to search."""
    for path in _loaded(pid):
        for place in (Path(f"/proc/{pid}/root{path}"), path):  # it may live in a container
            try:
                fd = open_regular(place)
            except (FileNotFoundError, CouldNotLook):
                continue
            try:
                size = os.fstat(fd).st_size
                if size > (MOST_DEEP if deep else MOST):
                    break
                found = remembered_files.ask("sqlite", fd, place, partial(_version, fd, size))
            except OSError:
                break
            finally:
                os.close(fd)
            if found:
                return Library(found, path, pid)
            break
    return None


def _version(fd: int, size: int) -> tuple[int, int, int] | None:
    return version_in(os.pread(fd, size, 0))


def _loaded(pid: int) -> Iterator[Path]:
    """Yield the loaded files that can contain SQLite, the most likely first."""
    names = {line.partition("/")[2] for line in process_stat.maps(pid).splitlines()}
    if not names:
        raise CouldNotLook("you may not see the files of process {pid}", pid=pid)
    for part in ("libsqlite3", "_sqlite3", "libpython", "/python"):
        for name in sorted(names):
            if part in f"/{name}" and not name.endswith(" (deleted)"):
                yield Path(f"/{name}")


def version_in(data: bytes) -> tuple[int, int, int] | None:
    """Find the version of the SQLite in these bytes; None if they have no SQLite source id."""
    if not _SOURCE.search(data):
        return None
    found = {(3, int(match[1]), int(match[2])) for match in _VERSION.finditer(data)}
    return max(found, default=None)
