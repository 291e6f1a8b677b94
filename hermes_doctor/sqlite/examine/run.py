"""Examine one database, and repeat it if its files change during the examination."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import Snapshot
from hermes_doctor.sqlite import header as headers
from hermes_doctor.sqlite.examine.condition import (
    ATTRIBUTION_SECONDS,
    LEAST_ATTEMPTS,
    QUICK_CHECK_SECONDS,
    RETRY_SECONDS,
    SMALL_BYTES,
    SMALL_BYTES_DEEP,
    Condition,
    JournalVerdict,
    WatchProgress,
)
from hermes_doctor.sqlite.files import DatabaseFiles, OpenFiles, database_files, open_files


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
    while again < LEAST_ATTEMPTS or clock.read() < RETRY_SECONDS:
        using = tuple(holders())
        before = database_files(path)
        try:
            condition = _once(path, using, deep=deep, seconds=seconds, watch=watch)
        except CouldNotLook:
            if _unchanged(before):
                raise
        else:
            settled = again and using and not condition.doubt
            if not (condition.wrong or condition.doubt) or _unchanged(before) or settled:
                return condition
            if condition.reader is not None:
                condition.reader.close()
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
        header = headers.Header(os.pread(book.main, 128, 0), Snapshot.of(os.fstat(book.main)))
        condition = Condition(beside, header, holders)
        if header.empty:
            return condition._replace(log=book.read_log(max_frames=256))
        if beside.journal.kind == "file" and (cut := _cut_off(book, condition, deep=deep)):
            return condition._replace(journal=cut)
        from hermes_doctor.sqlite.examine.stages import Examination

        return Examination(book, condition, deep, seconds, watch).run()


def _cut_off(book: OpenFiles, condition: Condition, *, deep: bool) -> JournalVerdict | None:
    """Judge a rollback journal that SQLite would play back when it next opens the file."""
    from hermes_doctor.sqlite.examine import foreign_log
    from hermes_doctor.sqlite.exclusive import in_use

    path = condition.files.beside("-journal")
    if not foreign_log.is_hot(path):
        return None
    if condition.holders or in_use(condition.files.path):
        raise CouldNotLook(
            "{path}: another program is writing it now", path=condition.files.path.name
        )
    most, limit = (SMALL_BYTES_DEEP, None) if deep else (SMALL_BYTES, ATTRIBUTION_SECONDS)
    return foreign_log.judge(book, path, condition.header, max_bytes=most, limit=limit)
