"""Copy a database while a process writes to it, without blocking the writer."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.sqlite import consistent_copy
from hermes_doctor.sqlite.errors import name_of
from hermes_doctor.sqlite.soundness import address, background_check, check_structure
from hermes_doctor.system import digests, disk
from hermes_doctor.system.files import MEGABYTE, snapshot
from hermes_doctor.system.workers import (
    SendLine,
    Worker,
    lines_from_parent,
    run_as_owner,
    start_worker,
)

LONGEST = 3600.0
"""Seconds after which the reader ends its transaction, in case this process hangs."""
OFTEN = 2 * MEGABYTE
"""Bytes after which the reader is checked again."""
READY = 30.0
"""Seconds within which the reader must have started its transaction."""

Progress = Callable[[int], None]


class CopyResult(NamedTuple):
    """The result of copying a database in use."""

    verdict: str
    """SQLite's verdict on the copy."""
    sha256: str
    """The digest of the file as it was read back, computed from its chunks (`digests`)."""
    pieces: str
    """The digests of the chunks."""


def copy(source: Path, target: Path, progress: Progress | None = None) -> CopyResult:
    """Copy a database in use into a new file.

    During the copy a worker holds a read transaction. That never blocks a writer of a database
    in WAL mode. It must be another process: closing the file that we read would drop the locks
    that our own process holds on it. A second worker reads the copy back as it grows and hashes
    it. At the end SQLite examines the copy while it is flushed to the disk.
    """
    held = snapshot(source)
    try:
        with _followed(target) as follower:
            with disk.new_file(target, durable=False) as fd, _held_still(source) as reader:
                final = 0
                for now in consistent_copy.write_copy(source, fd, held):
                    follower.send(str(now))
                    if progress and now > final:
                        progress(now - final)
                    final = now
                    if not reader.alive:
                        raise CannotFix("the process that kept it unchanged has stopped")
            follower.close_input()
            follower.receive()  # it has opened the copy, which may be moved now
            places: list[Path] = []
            verdict = run_as_owner(target, lambda place: _finished(place, places))
            sha256, _, pieces = follower.receive()[1].partition(" ")
        moved = places and places[0] != target
        if moved and disk.digest(target, like=sha256) != sha256:
            raise CannotFix("the copy differs from the original")
        return CopyResult(verdict, sha256, pieces)
    except (CannotFix, CouldNotLook) as why:
        disk.remove(target)
        raise Trouble(
            text(
                "{source} is in use and could not be copied ({why}). "
                "Stop the gateway and try again.",
                source=source.name,
                why=why,
            )
        ) from None


def _finished(place: Path, places: list[Path]) -> str:
    """Flush the copy to the disk while SQLite examines it; return SQLite's verdict."""
    places.append(place)
    with background_check(place) as verdict:
        disk.sync_file(place)
        return verdict()


@contextmanager
def _followed(target: Path) -> Iterator[Worker]:
    """Start a worker that hashes a file while it is written; we send it the final length so far."""

    def follow(say: SendLine) -> str:
        arriving = map(int, lines_from_parent())
        next(arriving, None)  # now the file exists

        def lengths() -> Iterator[int]:
            say("it is open")
            yield from arriving

        pieces = disk.hash_while_written(target, lengths())
        return f"{digests.combine(pieces)} {digests.to_text(pieces)}"

    with start_worker(target, follow) as follower:
        yield follower


@contextmanager
def _held_still(source: Path, *, examine: bool = False) -> Iterator[Worker]:
    """Start a worker that keeps a read transaction open and can also examine the database."""

    def hold(say: SendLine) -> str:
        try:
            with contextlib.closing(sqlite3.connect(address(source), uri=True)) as reader:
                reader.isolation_level = None
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
                say("it is held")
                if examine:
                    say(check_structure(reader))
                time.sleep(LONGEST)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise CannotFix(name_of(error)) from None
        return ""

    with start_worker(source, hold) as reader:
        reader.receive(READY)
        yield reader
