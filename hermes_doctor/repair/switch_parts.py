"""The parts of an atomic switch: the versions of the content and the sidecars of a database."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.home import database_of
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.records.journal import PathRecord, State
from hermes_doctor.system.files import ABSENT, snapshot


class SwitchVersion(NamedTuple):
    """One version of the content, and the file name it has while it is not in place."""

    path: Path
    state: State


class Sidecar(NamedTuple):
    """A file beside a database that is switched together with it."""

    path: Path
    record: PathRecord


def suffix_of(path: Path) -> str:
    """The suffix of a sidecar: `-wal`, `-shm` or `-journal`; empty for the database."""
    return path.name.removeprefix(database_of(path).name)


def is_same_file(one: Path, two: Path) -> bool:
    """Whether both names lead to the same file on the disk."""
    first, second = snapshot(one), snapshot(two)
    return first != ABSENT and (first.dev, first.ino) == (second.dev, second.ino)
