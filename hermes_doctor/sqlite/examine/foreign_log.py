"""Decide whether the write-ahead log or the journal next to a database has to be set aside.

Damage in the two together proves nothing: the file's own log may contain a broken index and the
newest rows. The log is set aside only if the file is sound without it, and rows of the file are
unreachable with it. The log is foreign if it cannot have started from this file. If that is not
proven, the log is still set aside if the pair has damaged rows, because a repair of the pair could
lose rows that the file alone has.

The file's own journal undoes the half of the transaction that is in the file; a foreign journal
destroys rows. So two things are checked: whether the journal can belong to this file, and, if both
versions fit into memory, what SQLite says of the file with the journal and without it.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import open_regular
from hermes_doctor.sqlite import log_ancestry, query_process, wal
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine import condition
from hermes_doctor.sqlite.examine.condition import Condition, JournalVerdict, missing_pages
from hermes_doctor.sqlite.examine.soundness import OTHER_RELEASE
from hermes_doctor.sqlite.exclusive import in_use
from hermes_doctor.sqlite.files import OpenFiles, read_image
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.log_ancestry import IMPOSSIBLE, LIKELY, PROVEN, Ancestry, PageComparison
from hermes_doctor.sqlite.pages import DatabasePages
from hermes_doctor.sqlite.reader import InMemory, InProcess, QueryResult, Reader
from hermes_doctor.sqlite.wal import EMPTY

if TYPE_CHECKING:
    from hermes_doctor.sqlite.examine.condition import Condition
    from hermes_doctor.sqlite.examine.damage import Damage
    from hermes_doctor.sqlite.files import OpenFiles


_NO_TIME = (
    "it is damaged together with its write-ahead log (-wal), and there was no time to find out "
    "whether that log is its own: use --deep"
)
_NOT_PROVEN = (
    "with it SQLite finds damaged rows; it is not proven that it belongs to another database"
)


class ForeignLogTest:
    """Checks whether a damaged database is sound without its write-ahead log."""

    def __init__(
        self, files: OpenFiles, found: Condition, pages: DatabasePages, *, deep: bool
    ) -> None:
        assert files.log is not None
        self.pages = pages
        self.found = found
        self.open_files = files
        self.log = files.log
        self.deep = deep
        self.proven = True
        """Whether the log is proven to be foreign, not only to do damage."""

    def proof(self, with_log: Reader | None, damage: Damage | None) -> str:
        """Why the log has to be set aside; empty if it does not have to be.

        `with_log` reads the file with its log; it is None if pages are missing. Raises
        CouldNotLook if there was no time to compare the two files, or to check the file alone.
        """
        began = self.change_mark()
        why = self.contradiction(cut_off=with_log is None)
        if not why and damage is not None and damage.rows:
            why, self.proven = _NOT_PROVEN, False
        if not why:
            return ""
        try:
            alone = self.alone()
        except CouldNotLook:
            return ""
        try:
            if not self.is_sound(alone):
                return ""
            readable = with_log is not None and damage is not None and not damage.rows
            kept = readable and with_log is not None and self.holds(with_log, alone)
            return "" if kept or self.change_mark() != began else why
        finally:
            alone.close()

    def change_mark(self) -> tuple[int, int, bytes]:
        """A mark that changes when a process checkpoints the log or restarts it."""
        st = os.fstat(self.open_files.main)
        return st.st_size, st.st_mtime_ns, os.pread(self.log, 32, 0)

    def contradiction(self, *, cut_off: bool) -> str:
        """Why this log cannot have started from this file; empty if it can."""
        if cut_off:
            # A log contains all pages it adds, so its own database had the missing ones before.
            there = self.found.header.snapshot.size // self.pages.page_size
            pages = self.found.log.db_pages
            missing = missing_pages(self.pages, there, pages)
            return (
                f"it belongs to a database of {pages:,} pages; {missing:,} of them are in neither "
                f"file"
            )
        descent = log_ancestry.of_log(self.found.header, self.log, self.found.log)
        if descent.level == log_ancestry.IMPOSSIBLE:
            return descent.what
        assert self.found.catalog is not None
        compared = PageComparison(self.pages)
        compared.walk(
            self.found.catalog.trees, None if self.deep else condition.ATTRIBUTION_SECONDS
        )
        if compared.undecided:
            raise CouldNotLook(_NO_TIME)
        if not compared.foreign:
            return ""
        return f"{len(compared.between):,} pages of it do not fit the pages of the database"

    def is_sound(self, without_log: Reader) -> bool:
        """Whether SQLite finds the file sound without its log; CouldNotLook if time ran out.

        A full-text table that another SQLite version filled does not count as damage.
        """
        limit = None if self.deep else condition.ATTRIBUTION_SECONDS
        answer = without_log.ask("PRAGMA integrity_check(100)", limit)
        sentences = [str(row[0]) for row in answer.rows]
        if answer.unfinished:  # skip the full-text tables: they take longest
            sentences, answer = self.tables_of(without_log)
        if any(sentence != "ok" and OTHER_RELEASE not in sentence for sentence in sentences):
            return False
        if answer.unfinished:
            raise CouldNotLook(_NO_TIME)
        return not answer.error

    def tables_of(self, without_log: Reader) -> tuple[list[str], QueryResult]:
        """Check one table after the other with SQLite, without the full-text tables."""
        clock = limits.Stopwatch()
        listed = without_log.ask(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0",
            condition.ATTRIBUTION_SECONDS,
        )
        sentences: list[str] = []
        answer = listed
        for (name,) in listed.rows:
            left = condition.FILE_ALONE_SECONDS - clock.read()
            if left <= 0:
                return sentences, QueryResult([], "SQLITE_INTERRUPT")
            answer = without_log.ask(f"PRAGMA quick_check({quote_name(str(name))})", left)
            sentences += [str(row[0]) for row in answer.rows]
            if answer.error:
                break
        return sentences, answer

    def alone(self) -> Reader:
        """A reader of the file without its log."""
        if self.found.is_small(self.deep):
            return InMemory(
                read_image(self.open_files, max_bytes=2 * condition.SMALL_BYTES_DEEP, log=EMPTY)
            )
        return InProcess(self.found.files.path, query_process.NOT_IN_USE)

    def holds(self, log_reader: Reader, without_log: Reader) -> bool:
        """Whether each table has, with the log, at least as many rows and as high a rowid."""
        listed = without_log.ask(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
        )
        assert self.found.catalog is not None
        for name in (str(row[0]) for row in listed.rows):
            if name.startswith("sqlite_") or self.found.catalog.worth(name) != "rows":
                continue
            sql = f"SELECT count(*), max(rowid) FROM {quote_name(name)} NOT INDEXED"
            seconds = self.found.patience(self.deep, 100)
            with_log, without = log_reader.ask(sql, seconds), without_log.ask(sql, seconds)
            if with_log.error or without.error:
                return False
            counts = zip(with_log.rows[0], without.rows[0], strict=True)
            if any((more or 0) < (less or 0) for more, less in counts):
                return False
        return True


OWN, FOREIGN, DAMAGED, UNCLEAR = "own", "foreign", "damaged", "unclear"


def judge_journal(files: OpenFiles, found: Condition, *, deep: bool) -> JournalVerdict | None:
    """Judge a rollback journal, if SQLite would play it back when it next opens the file."""
    path = found.files.beside("-journal")
    try:
        fd = open_regular(path)
    except (FileNotFoundError, CouldNotLook):
        return None
    try:
        if os.fstat(fd).st_size < 512 or not wal.is_hot(fd):
            return None
        if found.holders or in_use(found.files.path):
            name = found.files.path.name
            raise CouldNotLook("{path}: another program is writing it now", path=name)
        undo = wal.read_journal(fd, found.header.page_size)
        log = files.read_log(live=False, seconds=0.03)
        kin = log_ancestry.of_journal(files.main, found.header, fd, undo, log)
        # A database that uses its write-ahead log leaves no journal: nothing to compare.
        sound = None if log.committed else _sound(files.main, found.header, fd, undo, deep=deep)
    finally:
        os.close(fd)
    kind = _kind(kin, sound)
    evidence = [kin.what]
    if sound is not None:
        words = {True: "sound", False: "damaged"}
        evidence.append(f"{words[sound[0]]} with it, {words[sound[1]]} without it")
    return JournalVerdict(kind, tuple(evidence), len(undo.places))


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


def _sound(main: int, header: Header, fd: int, undo: wal.Undo, *, deep: bool) -> Sound:
    most = condition.SMALL_BYTES_DEEP if deep else condition.SMALL_BYTES
    limit = None if deep else condition.ATTRIBUTION_SECONDS
    if max(header.snapshot.size, undo.pages * undo.page_size) > most:
        return None
    data = os.pread(main, min(most, os.fstat(main).st_size), 0)
    try:
        return _passes(wal.rolled_back(fd, undo, data), limit), _passes(data, limit)
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
