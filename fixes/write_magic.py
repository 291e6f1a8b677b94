"""Write the magic bytes of a database back."""

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import CannotFix, Finding, Probes, ReplaceDatabase, Safety, Step, fix

MAGIC = b"SQLite format 3\0"


@fix(id="write-magic", codes=["DB-NOTADB"], safety=Safety.SAFE)
def write_magic(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the 16 magic bytes back on a copy, have SQLite check all of it, and swap it in."""
    path = probes.home / finding.subject
    header = probes.header(path)
    if header.magic:
        return
    if not header.rest_is_sound:
        raise CannotFix("more than the magic bytes is damaged")
    yield ReplaceDatabase(
        path, _rebuild, why="write its 16 magic bytes back", expect=header.snapshot
    )


def _rebuild(copy: Path) -> None:
    with copy.open("r+b") as file:
        file.write(MAGIC)
