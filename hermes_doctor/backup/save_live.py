"""Save the changed blocks of a database that is in use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.backup import blocks
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.sqlite import consistent_copy
from hermes_doctor.sqlite.live_copy import OFTEN, Progress, _held_still
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot
from hermes_doctor.system.workers import Worker


def write_changes(
    source: Path,
    base: Path,
    target: Path,
    *,
    known: Sequence[bytes | None],
    examine: bool,
    in_place: bool,
    progress: Progress | None = None,
) -> tuple[str | None, blocks.BlocksResult] | None:
    """Write the blocks in which a database in use differs from an earlier copy, its base.

    Returns None if there are too many. The new version is never one file, so SQLite's verdict comes
    from the reader that holds the database still, if `examine` is set. `known` are the chunk
    digests of the base. `in_place` compares through memory maps, only in a worker process.
    """
    held = snapshot(source)
    try:
        with (
            disk.new_file(target, durable=False) as fd,
            blocks.open_as_owner(base) as earlier,
            _held_still(source, examine=examine) as reader,
        ):
            most = int(os.fstat(earlier).st_size * blocks.MAX_CHANGED_SHARE)
            mapped = None
            with contextlib.suppress(OSError, ValueError):  # no memory for a map, or an empty file
                mapped = blocks.MappedBase(earlier) if in_place else None
            read = consistent_copy.read_chunks(source, held, mapped)
            content = _heeded(read, reader, progress)
            made = blocks.write(content, earlier, fd, most, known, mapped)
            if made is None:
                disk.remove(target)
                return None
            return (reader.receive()[1] if examine else None), made
    except (CannotFix, CouldNotLook) as why:
        disk.remove(target)
        raise Trouble(
            text(
                "{file} is in use and could not be copied ({reason}). Stop the gateway "
                "and try again.",
                file=source.name,
                reason=why,
            )
        ) from None


def _heeded(
    pieces: Iterator[bytes | range], reader: Worker, progress: Progress | None
) -> Iterator[bytes | range]:
    """Yield the chunks, and raise CannotFix if the reader that holds the database still is gone.

    The reader is checked now and then, and at the end.
    """
    since = 0

    def heed() -> None:
        if not reader.alive:
            raise CannotFix("the helper process that kept it unchanged has stopped")
        if progress:
            progress(since)

    for piece in pieces:
        yield piece
        since += len(piece)
        if since >= OFTEN:
            heed()
            since = 0
    heed()
