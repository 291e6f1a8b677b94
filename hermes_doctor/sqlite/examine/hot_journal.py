"""Decide whether the journal of an interrupted transaction is played back or set aside.

The file's own journal undoes the half of the transaction that is in the file; a foreign journal
destroys rows. So two things are checked: whether the journal can belong to this file, and, if both
versions fit into memory, what SQLite says of the file with the journal and without it.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import open_regular
from hermes_doctor.sqlite import log_ancestry, rollback_journal as journals
from hermes_doctor.sqlite.files import OpenFiles
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.log_ancestry import IMPOSSIBLE, LIKELY, PROVEN, Ancestry
from hermes_doctor.sqlite.reader import InMemory

OWN, FOREIGN, DAMAGED, UNCLEAR = "own", "foreign", "damaged", "unclear"


class JournalVerdict(NamedTuple):
    """The verdict on the journal of an interrupted transaction, with the evidence for it.

    The kind is own (play it back), foreign (set it aside), damaged (save the rows of both) or
    unclear (a person has to decide).
    """

    kind: str
    evidence: tuple[str, ...]
    records: int = 0


def judge(
    files: OpenFiles, path: Path, header: Header, *, max_bytes: int, limit: float | None
) -> JournalVerdict:
    """Judge the journal at `path`; SQLite is asked about files of up to `max_bytes`."""
    fd = open_regular(path)
    try:
        undo = journals.read(fd, header.page_size)
        log = files.read_log(live=False, seconds=0.03)
        kin = log_ancestry.of_journal(files.main, header, fd, undo, log)
        # A database that uses its write-ahead log leaves no journal: nothing to compare.
        sound = None if log.committed else _sound(files.main, header, fd, undo, max_bytes, limit)
    finally:
        os.close(fd)
    kind = _kind(kin, sound)
    return JournalVerdict(kind, (kin.what, *_told(sound)), len(undo.places))


def is_hot(path: Path) -> bool:
    """Whether SQLite would play this journal back when it next opens the database."""
    try:
        fd = open_regular(path)
    except (FileNotFoundError, CouldNotLook):
        return False
    try:
        return os.fstat(fd).st_size >= 512 and journals.is_hot(fd)
    finally:
        os.close(fd)


Sound = tuple[bool, bool] | None
"""Whether the database is sound with its journal, and without it; None if not checked."""


def _kind(kin: Ancestry, sound: Sound) -> str:
    if kin.level == IMPOSSIBLE:
        return UNCLEAR if sound == (True, False) else FOREIGN
    if kin.level == PROVEN:
        return UNCLEAR if sound == (False, True) else OWN
    if kin.level == LIKELY:
        return FOREIGN if sound == (False, True) else OWN
    return {(True, False): OWN, (False, True): FOREIGN, (False, False): DAMAGED}.get(
        sound or (True, True), UNCLEAR
    )


def _told(sound: Sound) -> tuple[str, ...]:
    if sound is None:
        return ()
    words = {True: "sound", False: "damaged"}
    return (f"{words[sound[0]]} with it, {words[sound[1]]} without it",)


def _sound(
    main: int, header: Header, fd: int, undo: journals.Undo, max_bytes: int, limit: float | None
) -> Sound:
    if max(header.snapshot.size, undo.pages * undo.page_size) > max_bytes:
        return None
    data = os.pread(main, min(max_bytes, os.fstat(main).st_size), 0)
    try:
        return _passes(journals.rolled_back(fd, undo, data), limit), _passes(data, limit)
    except CouldNotLook:
        return None


def _passes(data: bytes, limit: float | None) -> bool:
    """Whether SQLite finds an in-memory image sound; raises if the time ran out."""
    if len(data) < 512:
        return not data
    with closing(InMemory(data[:18] + b"\1\1" + data[20:])) as reader:
        answer = reader.ask("PRAGMA integrity_check(1)", limit)
    if answer.unfinished:
        raise CouldNotLook("it takes too long")
    return [row[0] for row in answer.rows] == ["ok"]
