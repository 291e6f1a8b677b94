"""Examine one database in stages, and repeat it if its files change during the examination."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import Snapshot
from hermes_doctor.sqlite import log_ancestry, query_process, schema
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine import condition, first_page, known_sound
from hermes_doctor.sqlite.examine.condition import QUICK_CHECK_SECONDS, Condition, WatchProgress
from hermes_doctor.sqlite.examine.fulltext_check import (
    FulltextCheck,
    FulltextFlaw,
    Unchecked,
    differs_by_release,
    passes_own_check,
)
from hermes_doctor.sqlite.files import (
    DatabaseFiles,
    OpenFiles,
    database_files,
    open_files,
    read_image,
)
from hermes_doctor.sqlite.header import MAGIC, Header
from hermes_doctor.sqlite.pages import DatabasePages, pages_with_log
from hermes_doctor.sqlite.reader import InMemory, InProcess, QueryResult, Reader
from hermes_doctor.sqlite.wal import EMPTY, ShmHeader

if TYPE_CHECKING:
    from hermes_doctor.sqlite.examine.damage import Damage


def examine(
    path: Path,
    *,
    holders: Callable[[], Sequence[int]],
    deep: bool,
    seconds: float = QUICK_CHECK_SECONDS,
    watch: WatchProgress | None = None,
) -> Condition:
    """Examine a database; repeat if something looks wrong and its files changed.

    `holders` is called for each attempt, because processes come and go. `watch` receives a
    function that returns the progress of a long examination, from 0 to 1.
    """
    clock = limits.Stopwatch()
    again = 0
    while again < condition.LEAST_ATTEMPTS or clock.read() < condition.RETRY_SECONDS:
        using = tuple(holders())
        before = database_files(path)
        try:
            found = _once(path, using, deep=deep, seconds=seconds, watch=watch)
        except CouldNotLook:
            if _unchanged(before):
                raise
        else:
            settled = again and using and not found.doubt
            if not (found.wrong or found.doubt) or _unchanged(before) or settled:
                return found
            if found.reader is not None:
                found.reader.close()
        again += 1
        time.sleep(0.01 * again)
    raise CouldNotLook("{path}: another program is writing it now", path=path.name)


def _unchanged(before: DatabaseFiles) -> bool:
    """Whether the files are unchanged since they were examined."""
    now = database_files(before.path)
    return (now.main, now.wal, now.journal) == (before.main, before.wal, before.journal)


def _once(
    path: Path,
    holders: tuple[int, ...],
    *,
    deep: bool,
    seconds: float,
    watch: WatchProgress | None,
) -> Condition:
    beside = database_files(path)
    if beside.main.kind != "file":
        raise CouldNotLook("{path}: not a regular file", path=path.name)
    with open_files(beside.path) as book:
        header = Header(os.pread(book.main, 128, 0), Snapshot.of(os.fstat(book.main)))
        found = Condition(beside, header, holders)
        if header.empty:
            return found._replace(log=book.read_log(max_frames=256))
        if beside.journal.kind == "file":
            from hermes_doctor.sqlite.examine.foreign_log import judge_journal

            if cut := judge_journal(book, found, deep=deep):
                return found._replace(journal=cut)
        return Examination(book, found, deep, seconds, watch).run()


def _complaints(answers: list[tuple[str, QueryResult]]) -> list[tuple[str, str]]:
    return [
        (table, str(row[0]))
        for table, answer in answers
        for row in answer.rows
        if row and row[0] != "ok"
    ]


class Examination:
    """The stages of one examination; a stage ends it if the following ones cannot work."""

    def __init__(
        self,
        files: OpenFiles,
        found: Condition,
        deep: bool,
        seconds: float,
        watch: WatchProgress | None,
    ) -> None:
        self.open_files, self.found = files, found
        self.deep, self.seconds, self.watch = deep, seconds, watch

    def run(self) -> Condition:
        how = self.how()
        reader: Reader | None = None
        doubt: str | None = None
        log = EMPTY
        if how == query_process.LEFTOVER_LOG:
            try:
                reader = InProcess(self.found.files.path, how)
                seconds = self.found.patience(self.deep, 1)
                answer = reader.ask("SELECT count(*) FROM sqlite_master", seconds)
                index = ShmHeader.parse(answer.log_index)  # tells how many frames are valid
                committed = index.committed if index else 0
                log = self.open_files.read_log(live=False, committed=committed, seconds=0.03)
            except CouldNotLook as why:
                doubt = str(why)
                log = self.open_files.read_log(live=False, seconds=0.03)
        elif self.open_files.log is not None:
            log = self.open_files.read_log(live=bool(self.found.holders), seconds=0.03)
        self.found = self.found._replace(log=log)
        fault = self.first_page()
        if fault is not None:
            return self.end(reader, fault=fault)
        pages = pages_with_log(self.open_files, log, self.found.header)
        truncated = condition.truncation(self.found, pages)
        if truncated:
            return self.end(reader, **self.cut_off(pages, truncated))
        self.found = self.found._replace(
            catalog=schema.read_catalog(pages), free=condition.read_freelist(pages)
        )
        if encoded := condition.wrong_encoding(self.found):
            return self.end(reader, fault=encoded)
        try:
            if reader is None:
                reader = self.open(how, self.small)
        except CouldNotLook as why:
            doubt = str(why)
        if reader is None:
            return self.found._replace(doubt=doubt, damage=self.by_hand(pages))
        if self.watch and isinstance(reader, InProcess):
            touched, size = reader.touched, max(1, self.found.files.main.size)
            self.watch(lambda: min(1.0, touched() / size))
        reader.ask("BEGIN")  # so that a writer does not change the data between queries
        try:
            return self.ask_sqlite(reader, pages)
        finally:
            reader.ask("ROLLBACK")

    def end(self, reader: Reader | None, **changes: object) -> Condition:
        if reader is not None:
            reader.close()
        return self.found._replace(**changes)  # type: ignore[arg-type]

    @property
    def small(self) -> bool:
        return self.found.is_small(self.deep)

    def how(self) -> str:
        """The state of the files, as one of the three constants in `query_process`."""
        beside = self.found.files.sidecars
        if self.found.holders and ("-wal" in beside or "-shm" in beside):
            return query_process.IN_USE
        log = self.found.files.wal
        left = log.kind == "file" and log.size >= 32
        return query_process.LEFTOVER_LOG if left else query_process.NOT_IN_USE

    def first_page(self) -> first_page.FirstPageFault | None:
        at = self.found.log.pages.get(1)
        newest = None
        if at is not None and self.open_files.log is not None:
            newest = os.pread(self.open_files.log, self.found.log.page_size, at)
            if newest[:16] != MAGIC:
                newest = None
        main, header, log = self.open_files.main, self.found.header, self.found.log
        if newest is not None and len(log.pages) < log.db_pages and not self.found.holders:
            return first_page.not_a_database(main, header, log.page_size)
        return None if newest is not None else first_page.judge(main, header)

    def open(self, file_state: str, in_memory: bool) -> Reader:
        if in_memory and file_state != query_process.LEFTOVER_LOG:
            try:
                most = 2 * condition.SMALL_BYTES_DEEP
                return InMemory(read_image(self.open_files, max_bytes=most))
            except CouldNotLook:  # a busy writer can prevent a consistent image
                if file_state != query_process.IN_USE:
                    raise
        if self.found.holders and self.found.header.head[18:20] != b"\x02\x02":
            raise CouldNotLook("it is in use, and reading it would block its writer")
        if file_state == query_process.IN_USE and (
            self.open_files.log is None or self.open_files.index is None
        ):
            raise CouldNotLook(
                "it is in use, but its write-ahead log (-wal) or its index (-shm) is missing"
            )
        return InProcess(self.found.files.path, file_state)

    def ask_sqlite(self, reader: Reader, pages: DatabasePages) -> Condition:
        """Ask SQLite for its verdict and interpret it."""
        try:
            path, state = self.found.files.path, self.how()
            damage, finished = known_sound.ask(path, state, lambda: self.verdict(reader, pages))
            if damage is None and not finished and self.suspicious():
                self.seconds = condition.ATTRIBUTION_SECONDS
                damage, finished = self.verdict(reader, pages)
        except CouldNotLook as doubt:
            return self.end(reader, doubt=str(doubt))
        if counted := condition.wrong_count(self.found, damage, pages):
            return self.end(reader, fault=counted)
        # SQLite applies a log also beside a file that keeps none. SQLite deletes the log before it
        # marks the file so, so this log is from before that, or of another file. With it newer
        # rows disappear, and the file still passes every check.
        beside_rollback = not self.found.holders and self.found.header.keeps_no_log
        if damage is not None or beside_rollback:
            try:
                if self.foreign(pages, reader, damage):
                    return self.found._replace(damage=damage, reader=reader)
            except CouldNotLook as doubt:
                return self.end(reader, doubt=str(doubt))
        found = self.found._replace(damage=damage)
        if damage and damage.schema:
            return found._replace(reader=reader)
        catalog = found.catalog
        assert catalog is not None
        if damage and damage.inverted:
            same = [t for t in damage.inverted if differs_by_release(reader, catalog, t)]
            found = found._replace(benign=frozenset(same))
        if damage and damage.indexes and not damage.rows:
            from hermes_doctor.sqlite.examine.damage import with_disputed_rows

            limit = None if self.deep else condition.ATTRIBUTION_SECONDS
            found = found._replace(damage=with_disputed_rows(damage, reader, catalog, limit))
        whole = self.deep or self.small
        search = FulltextCheck(reader, catalog, found.patience(self.deep, 1), whole=whole)
        results = list(search.flaws())
        seen = tuple(result for result in results if isinstance(result, FulltextFlaw))
        unjudged = tuple(result for result in results if isinstance(result, Unchecked))
        found = found._replace(rebuild=search.rebuild, unjudged=unjudged)
        if self.deep and damage is None:
            seen += tuple(self.run_fts5_check(reader, seen))
            if catalog.searches and not self.small:
                found = found._replace(partly="its search was not compared word by word")
        elif not finished:
            found = found._replace(partly="only a part of its pages was read")
        return found._replace(flaws=seen, reader=reader)

    def verdict(self, reader: Reader, pages: DatabasePages) -> tuple[Damage | None, bool]:
        """Return what is damaged, and whether all was read; raise if SQLite failed to read it."""
        assert self.found.catalog is not None
        whole = self.deep or self.small
        answers: list[tuple[str, QueryResult]] = []
        if whole:
            limit = None if self.deep else max(self.seconds, condition.SMALL_QUERY_SECONDS)
            answers.append(("", reader.ask("PRAGMA integrity_check(100)", limit)))
        failed = whole and (answers[0][1].damaged or answers[0][1].error == "SQLITE_ERROR")
        if not whole or _complaints(answers) or failed:
            # The check of the whole database reports at most a hundred errors, and it stops at a
            # full-text table whose tokenizer is not loaded.
            answers += self.slices(reader, "integrity_check" if whole else "quick_check")
        complaints = _complaints(answers)
        errors = [answer for _, answer in answers if answer.damaged]
        opening = next((answer for _, answer in answers if answer.error == "SQLITE_ERROR"), None)
        if opening is not None and "malformed database schema" in opening.said:
            errors.append(opening)
        finished = not any(answer.unfinished for _, answer in answers)
        free = self.found.free.fault if self.found.free else None
        if not complaints and not errors and not free:
            if error := next((answer.error for _, answer in answers if answer.failed), None):
                raise CouldNotLook("SQLite cannot read it ({error})", error=error)
            return None, finished
        from hermes_doctor.sqlite.examine.damage import find_damage

        damage = find_damage(
            [*complaints, *([("", f"freelist: {free}")] if free else [])],
            errors[0].said or "damaged" if errors else "",
            self.found.catalog,
            pages,
            seconds=60.0 if self.deep else condition.ATTRIBUTION_SECONDS,
        )
        return (damage if damage.any else None), finished

    def slices(self, reader: Reader, pragma: str) -> list[tuple[str, QueryResult]]:
        """Check the schema, then table by table: briefly for a large file, all for a damaged one.

        An interrupted check returns nothing, so it is done in small parts.
        """
        assert self.found.catalog is not None
        seconds = self.seconds if pragma == "quick_check" else condition.ATTRIBUTION_SECONDS
        clock, limit = limits.Stopwatch(), 3600.0 if self.deep else seconds
        schema = reader.ask("SELECT count(*) FROM sqlite_master", seconds)
        if schema.error:
            return [("", schema)]
        answers: list[tuple[str, QueryResult]] = []
        tables = [name for name in self.found.catalog.tables if not name.startswith("sqlite_")]
        worths = {name: self.found.catalog.worth(name) == "search" for name in tables}
        for name in sorted(tables, key=lambda name: (worths[name], name)):
            left = limit - clock.read()
            if left <= 0:
                return [*answers, ("", QueryResult([], "SQLITE_INTERRUPT"))]
            if not self.found.catalog.sql_of("table", name).lower().startswith("create virtual"):
                answers.append((name, reader.ask(f"PRAGMA {pragma}({quote_name(name)})", left)))
        return answers

    def cut_off(self, pages: DatabasePages, truncated: tuple[int, int]) -> dict[str, object]:
        """Decide whether missing pages mean a truncated file or a foreign write-ahead log."""
        try:
            return {} if self.foreign(pages) else {"truncated": truncated}
        except CouldNotLook as doubt:
            return {"doubt": str(doubt)}

    def suspicious(self) -> bool:
        """Whether the change counters prove that an unused log does not belong to the file."""
        if self.found.holders or not self.found.log.committed or self.open_files.log is None:
            return False
        ancestry = log_ancestry.of_log(self.found.header, self.open_files.log, self.found.log)
        return ancestry.level == log_ancestry.IMPOSSIBLE

    def foreign(
        self, pages: DatabasePages, with_log: Reader | None = None, damage: Damage | None = None
    ) -> bool:
        """Whether the file is sound only without its log; the result is stored in `found`."""
        if not self.found.log.committed or self.open_files.log is None:
            return False
        from hermes_doctor.sqlite.examine.foreign_log import ForeignLogTest

        suspicion = ForeignLogTest(self.open_files, self.found, pages, deep=self.deep)
        why = suspicion.proof(with_log, damage)
        self.found = self.found._replace(stale_log=why, foreign_log=bool(why) and suspicion.proven)
        return bool(why)

    def run_fts5_check(self, reader: Reader, flaws: tuple[FulltextFlaw, ...]) -> list[FulltextFlaw]:
        """Run FTS5's own check, which writes, on an in-memory image of a small database."""
        assert self.found.catalog is not None
        known = {flaw.table for flaw in flaws}
        tables = [
            entry.name
            for entry in self.found.catalog.entries
            if entry.name in self.found.catalog.searches
            and entry.name not in known
            and not schema.foreign_tokenizer(entry.sql)
        ]
        if not tables or not self.small:
            return []
        picture = reader
        try:
            if not isinstance(reader, InMemory):
                log = None if self.found.holders else self.found.log
                most = 2 * condition.SMALL_BYTES_DEEP
                picture = InMemory(read_image(self.open_files, max_bytes=most, log=log))
            return [
                FulltextFlaw(name, "it contradicts itself", "search")
                for name in tables
                if not passes_own_check(picture, name)
                and not differs_by_release(picture, self.found.catalog, name)
            ]
        except CouldNotLook:
            return []
        finally:
            if picture is not reader:
                picture.close()

    def by_hand(self, pages: DatabasePages) -> Damage | None:
        """Damage that our own parser found, for files that SQLite cannot be asked about."""
        assert self.found.catalog is not None
        broken = self.found.free is not None and self.found.free.fault is not None
        if not self.found.catalog.damaged and not broken:
            return None
        from hermes_doctor.sqlite.examine.damage import find_damage

        return find_damage(
            [], "damaged", self.found.catalog, pages, seconds=condition.ATTRIBUTION_SECONDS
        )
