"""Save what changed in a database that is in use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.backup import blocks
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.sqlite import consistent_copy
from hermes_doctor.sqlite.live_copy import OFTEN, Progress, _held_still
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot
from hermes_doctor.system.workers import Child


def changes(
    source: Path,
    base: Path,
    target: Path,
    *,
    known: Sequence[bytes | None],
    examine: bool,
    in_place: bool,
    progress: Progress | None = None,
) -> tuple[str | None, blocks.Made] | None:
    """What is different in a database in use from an earlier copy of it; None when it is much.

    The copy stands nowhere as one file, so it is the reader that has SQLite examine its moment of
    the database, if it shall; and it says what it found. `known` are the sums of the pieces of
    that copy. Files are compared `in_place` only by a process of its own.
    """
    held = snapshot(source)
    try:
        with (
            disk.fresh(target, lasting=False) as fd,
            blocks.opened(base) as earlier,
            _held_still(source, examine=examine) as reader,
        ):
            most = int(os.fstat(earlier).st_size * blocks.MOST)
            mapped = None
            with contextlib.suppress(OSError, ValueError):  # no room for a map, or nothing in it
                mapped = blocks.Mapped(earlier) if in_place else None
            read = consistent_copy.read(source, held, mapped)
            content = _heeded(read, reader, progress)
            made = blocks.write(content, earlier, fd, most, known, mapped)
            if made is None:
                disk.remove(target)
                return None
            return (reader.hear()[1] if examine else None), made
    except (CannotFix, CouldNotLook) as why:
        disk.remove(target)
        raise Trouble(
            f"{source.name} is in use and cannot be copied ({why}). Stop the gateway and try again."
        ) from None


def _heeded(
    pieces: Iterator[bytes | range], reader: Child, progress: Progress | None
) -> Iterator[bytes | range]:
    """The pieces for as long as the reader holds the database still; it is looked at now and
    then, and when all are there."""
    since = 0

    def heed() -> None:
        if not reader.alive:
            raise CannotFix("the reader that held it still is gone")
        if progress:
            progress(since)

    for piece in pieces:
        yield piece
        since += len(piece)
        if since >= OFTEN:
            heed()
            since = 0
    heed()
