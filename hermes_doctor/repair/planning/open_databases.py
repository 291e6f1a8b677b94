"""Find databases that a process has open although they or their logs were deleted or renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.diagnosis.probes.database_users import LostFile, OpenFile, identity
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning.lost_rows import OpenDatabase

SUFFIXES = ("", "-wal", "-shm")


def find(probes: Probes) -> tuple[OpenDatabase, ...]:
    """Find every open database that was deleted or whose log was deleted.

    A renamed database counts if there is none at its path: it is put back.
    """
    found: dict[tuple[object, ...], OpenDatabase] = {}
    for lost in probes.databases.lost_files():
        if lost.cause == "renamed" and identity(lost.database) is not None:
            continue
        for files in _opened(probes, lost):
            key = (
                lost.database,
                *(files[s].identity if s in files else None for s in ("", "-wal")),
            )
            known = found.get(key)
            pids = {*(known.pids if known else ()), lost.pid}
            replaced = files[""].identity != identity(lost.database)
            listed = tuple(files.items())
            found[key] = OpenDatabase(lost.database, tuple(sorted(pids)), listed, replaced)
    return tuple(found.values())


def _opened(probes: Probes, lost: LostFile) -> Iterator[dict[str, OpenFile]]:
    """The files of a database that one process has open, for each of its logs.

    A process that opened the database again after the log was deleted has two of them. If the
    database was deleted more than once, each deleted file has a log of its own.
    """
    real = Path(os.path.realpath(lost.database))
    mine = [open_file for open_file in probes.databases.users().open if open_file.pid == lost.pid]
    places = {suffix: {beside(real, suffix)} for suffix in SUFFIXES}
    if lost.cause == "renamed":
        places[""] |= {lost.path}
    mains, logs, indexes = ([one for one in mine if one.path in places[s]] for s in SUFFIXES)
    main_of, log_of = _owners(mains, logs), _owners(logs, indexes)
    used = {one.identity for one in main_of.values()}
    for log in _each(logs) if mains else ():
        if not log.deleted and _is_empty(log):
            continue  # created when the process opened the database again; empty
        others = sorted(mains, key=lambda one: (one.identity in used, one.deleted != log.deleted))
        shared = sorted(
            indexes,
            key=lambda one: (not _same(log_of.get(one.identity), log), one.deleted != log.deleted),
        )
        files = {"": main_of.get(log.identity, others[0]), "-wal": log}
        yield files | ({"-shm": shared[0]} if shared else {})
    if all(log.deleted for log in logs):
        alone = [one for one in _each(mains) if one.deleted and one.identity not in used]
        for main in alone if alone or logs else mains[:1]:
            yield {"": main}


def _same(open_file: OpenFile | None, other: OpenFile) -> bool:
    return open_file is not None and open_file.identity == other.identity


def _each(files: Sequence[OpenFile]) -> list[OpenFile]:
    """The files, each with one of its descriptors."""
    return list({file.identity: file for file in reversed(files)}.values())[::-1]


def _owners(
    files: Sequence[OpenFile], beside: Sequence[OpenFile]
) -> dict[tuple[int, int], OpenFile]:
    """Which of several files each file beside them belongs to, by the identity of the latter.

    SQLite opens a database, then its log, then the index of the log, so their descriptors are
    close to each other. Both are deleted, or none is.
    """
    gaps = sorted(
        (int(second.fd) - int(first.fd), first, second)
        for first in files
        for second in beside
        if first.deleted == second.deleted and int(second.fd) > int(first.fd)
    )
    found: dict[tuple[int, int], OpenFile] = {}
    for _, first, second in gaps:
        taken = {open_file.identity for open_file in found.values()}
        if second.identity not in found and first.identity not in taken:
            found[second.identity] = first
    return found


def beside(path: Path, suffix: str) -> Path:
    """The path of a file that SQLite keeps next to a database."""
    return path.with_name(path.name + suffix)


def _is_empty(file: OpenFile) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{file.pid}/fd/{file.fd}").st_size == 0
    return False
