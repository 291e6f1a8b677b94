"""A transaction that was cut off: whether its journal is to be played back or set aside.

A journal of its own database undoes the half that is in the file; a foreign one destroys rows.
So two things are asked: whether it can be of this file at all, and, where there is room for both
pictures, what SQLite says of the file with the journal and without it.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import journal as journals, log_ancestry
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.log_ancestry import IMPOSSIBLE, LIKELY, PROVEN, Descent
from hermes_doctor.sqlite.reader import InMemory
from hermes_doctor.sqlite.snapshot import Book
from hermes_doctor.system.files import open_regular

OWN, FOREIGN, DAMAGED, UNCLEAR = "own", "foreign", "damaged", "unclear"


class Cutoff(NamedTuple):
    """What is to become of a journal: own (play it back), foreign (set it aside), damaged (save
    the rows of both), unclear (somebody has to decide)."""

    kind: str
    evidence: tuple[str, ...]
    records: int = 0


def judge(book: Book, path: Path, header: Header, *, most: int, limit: float | None) -> Cutoff:
    """The verdict on the journal at `path`; SQLite is asked about files of up to `most` bytes."""
    fd = open_regular(path)
    try:
        undo = journals.read(fd, header.page_size)
        log = book.read_log(live=False, seconds=0.03)
        kin = log_ancestry.of_journal(book.main, header, fd, undo, log)
        # Over a file with a log in use no two pictures are needed: it leaves no journal.
        sound = None if log.committed else _sound(book.main, header, fd, undo, most, limit)
    finally:
        os.close(fd)
    kind = _kind(kin, sound)
    return Cutoff(kind, (kin.what, *_told(sound)), len(undo.places))


def hot(path: Path) -> bool:
    """Whether SQLite would play this journal back at the next opening."""
    try:
        fd = open_regular(path)
    except (FileNotFoundError, CouldNotLook):
        return False
    try:
        return os.fstat(fd).st_size >= 512 and journals.is_hot(fd)
    finally:
        os.close(fd)


Sound = tuple[bool, bool] | None
"""Whether the database is sound with its journal, and without it; None when nobody looked."""


def _kind(kin: Descent, sound: Sound) -> str:
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
    main: int, header: Header, fd: int, undo: journals.Undo, most: int, limit: float | None
) -> Sound:
    if max(header.snapshot.size, undo.pages * undo.page_size) > most:
        return None
    data = os.pread(main, most, 0)
    try:
        return _passes(journals.rolled_back(fd, undo, data), limit), _passes(data, limit)
    except CouldNotLook:
        return None


def _passes(data: bytes, limit: float | None) -> bool:
    """Whether SQLite finds nothing wrong with a picture; raises when it had no time to tell."""
    if len(data) < 512:
        return not data
    with closing(InMemory(data[:18] + b"\1\1" + data[20:])) as reader:
        answer = reader.ask("PRAGMA integrity_check(1)", limit)
    if answer.unfinished:
        raise CouldNotLook("there was no time for it")
    return [row[0] for row in answer.rows] == ["ok"]
