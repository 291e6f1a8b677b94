"""Check the write-ahead log (-wal) and the journal beside every database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, size, text

if TYPE_CHECKING:
    from hermes_doctor.api import Condition, Cutoff

HUGE, VERY_HUGE = 64 * 1024**2, 512 * 1024**2
_CODES = ["DB-WAL-STALE", "DB-WAL-BROKEN", "DB-WAL-HUGE", "DB-JOURNAL"]


@check(id="database-log", group="databases", codes=_CODES)
def database_log(probes: Probes) -> Iterator[Finding]:
    """Does the log beside every database belong to it, and is it whole?"""
    if not probes.databases().paths:
        raise Skip("there is no database yet")
    for name, _, found in probes.conditions():
        if found.journal:
            yield _journal(name, found, found.journal)
        elif found.stale_log:
            yield _stale(name, found)
            continue  # no other finding: this log must not be merged into the database
        elif found.log.broken is not None or found.log.head == "damaged":
            yield from _broken(name, found)
        if found.files.wal.size > max(HUGE, 2 * min(found.files.main.size, VERY_HUGE // 2)):
            yield _huge(name, found)


def _stale(name: str, found: Condition) -> Finding:
    log = f"{found.log.committed:,} frames, {size(found.log.size)}: {found.stale_log}"
    if found.foreign_log:
        title = f"{name} is whole; the -wal file beside it is not its own"
        detail = (
            "But Hermes would mix old pages of this write-ahead log (-wal) into it at the next "
            "start. Restoring a copy beside the log of a crashed gateway does this."
        )
    else:
        title = f"{name} is whole, but not together with its -wal file"
        detail = (
            "But with this write-ahead log (-wal) Hermes cannot read all of its rows. The log may "
            "be of another database, or damaged. Rows that are only in the log can be added "
            "afterwards."
        )
    return Finding(
        code="DB-WAL-STALE",
        severity=Severity.CRITICAL,
        title=title,
        subject=name,
        detail=text("No row of it is lost. {detail}", detail=detail),
        evidence=(
            Evidence(name, "sound without the log, damaged with it"),
            Evidence(f"{name}-wal", log),
        ),
        fix="set-aside-log",
        data={"wal": found.files.wal},
    )


def _broken(name: str, found: Condition) -> Iterator[Finding]:
    log = found.log
    if not log.lost_commits:
        return
    if log.head == "damaged":
        what = f"its head is damaged; at least {log.lost_commits} transactions behind it are whole"
    else:
        what = (
            f"frame {(log.broken or 0) + 1} is damaged; at least {log.lost_commits} whole "
            "transactions come after it"
        )
    yield Finding(
        code="DB-WAL-BROKEN",
        severity=Severity.ERROR,
        title=text("the log of {name} is broken, so what was written last is ignored", name=name),
        subject=name,
        detail=(
            "SQLite stops at the first damaged frame without a word, and the next start throws "
            "the rest away. Copy the database and its log before Hermes starts again."
        ),
        evidence=(Evidence(f"{name}-wal", what),),
        fix="salvage-rows",
        data={"frame": log.broken, "head": log.head},
    )


def _huge(name: str, found: Condition) -> Finding:
    held = bool(found.holders)
    return Finding(
        code="DB-WAL-HUGE",
        severity=Severity.WARNING,
        title=text(
            "the log of {name} has grown to {size}", name=name, size=size(found.files.wal.size)
        ),
        subject=name,
        detail=(
            "Reading slows down, the disk fills, and a copy without the log lacks all of it. "
            + (
                "Some process has been reading without a pause, or checkpoints fail."
                if held
                else "No process has it open, so it can be taken in at any time."
            )
        ),
        evidence=(
            Evidence(
                f"{name}-wal",
                f"{size(found.files.wal.size)}, the database {size(found.files.main.size)}",
            ),
        ),
        fix=None if held else "checkpoint-wal",
        data={"held": held},
    )


_JOURNALS: dict[str, tuple[Severity, str, str, str | None]] = {
    "own": (
        Severity.WARNING,
        "{} was left in the middle of a transaction",
        "SQLite takes the half that is in the file back at the next opening. Keep both files "
        "together: without the journal that half stays for good.",
        "roll-back",
    ),
    "foreign": (
        Severity.CRITICAL,
        "a journal beside {} is not its own",
        "The next start writes old pages from the journal over the database, and rows are lost. "
        "Do not start Hermes before the journal is set aside.",
        "set-aside-log",
    ),
    "damaged": (
        Severity.CRITICAL,
        "{} is damaged, with the journal beside it and without",
        "Do not start Hermes: it would play the journal back, whosever it is. Keep both files.",
        "salvage-rows",
    ),
    "unclear": (
        Severity.CRITICAL,
        "whose journal lies beside {} cannot be told",
        "If it is the database's own, setting it aside keeps half a transaction for good; if it "
        "is not, the next start writes old pages over the database. So nothing is done by itself: "
        "copy both files away before Hermes starts again.",
        None,
    ),
}
"""Severity, title, detail and fix for each kind of journal."""


def _journal(name: str, found: Condition, cut: Cutoff) -> Finding:
    severity, title, detail, fix = _JOURNALS[cut.kind]
    journal = found.files.journal
    what = f"{size(journal.size)}, {cut.records} pages: {cut.evidence[0]}"
    return Finding(
        code="DB-JOURNAL",
        severity=severity,
        title=title.format(name),
        subject=name,
        detail=detail,
        evidence=(
            Evidence(f"{name}-journal", what),
            *(Evidence(name, said) for said in cut.evidence[1:]),
        ),
        since=_moment(journal.mtime_ns),
        fix=fix,
        data={"kind": cut.kind},
    )


def _moment(ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None
