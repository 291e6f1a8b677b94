"""Check the write-ahead log (-wal) and the journal beside every database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.tools import count, size

if TYPE_CHECKING:
    from hermes_doctor.api.database import Condition, JournalVerdict

_MEGABYTE = 1024**2
SMALL, LARGE, HUGE, VERY_HUGE = 16 * _MEGABYTE, 48 * _MEGABYTE, 64 * _MEGABYTE, 512 * _MEGABYTE
_CODES = ["DB-WAL-STALE", "DB-WAL-BROKEN", "DB-WAL-HUGE", "DB-JOURNAL", "DB-JOURNAL-MODE"]
_CHOOSES = ("state.db", "kanban.db")
"""The databases to which `database.journal_mode` applies."""


@check(id="database-log", group="databases", codes=_CODES)
def database_log(probes: Probes) -> Iterator[Finding]:
    """Is the write-ahead log (-wal) of every database intact?"""
    if not probes.databases.files().paths:
        raise Skip("no database yet")
    wanted = _journal_mode(probes)
    for name, _, condition in probes.databases.conditions():
        if wanted == "delete" and name in _CHOOSES and condition.header.head[18:20] == b"\2\2":
            yield _ignored(name, condition)
        if condition.journal:
            yield _journal(name, condition, condition.journal)
        elif condition.stale_log:
            yield _stale(name, condition)
            continue  # no other finding: this log must not be merged into the database
        elif condition.header.keeps_no_log and condition.log.committed and not condition.holders:
            yield _leftover(name, condition)
        elif condition.log.broken is not None or condition.log.head == "damaged":
            yield from _broken(name, condition)
        if _is_huge(condition):
            yield _huge(name, condition)


def _is_huge(condition: Condition) -> bool:
    """Tell whether the write-ahead log is too large for its database.

    SQLite merges it every 4 MB unless a reader prevents that, and one large transaction, such as a
    VACUUM, writes about as much as the database has. A new database may be in its log only. After
    a merge SQLite keeps the file and uses it again from the start, so the part in use counts more.
    """
    log = condition.log
    main = max(condition.files.main.size, log.db_pages * log.page_size)
    most = max(HUGE, 2 * min(main, VERY_HUGE // 2))
    used, whole = log.committed * (log.page_size + 24), condition.files.wal.size
    return used > min(max(SMALL, 4 * main), most) or whole > min(max(LARGE, 4 * main), most)


def _stale(name: str, condition: Condition) -> Finding:
    log = text(
        "{frames}, {size}: {reason}",
        frames=count(condition.log.committed, "frame"),
        size=size(condition.log.size),
        reason=condition.stale_log,
    )
    if condition.foreign_log:
        title = text("{name} has a -wal file of another database", name=name)
        detail = text(
            "No row is lost yet. At its next start Hermes mixes old pages of this write-ahead log "
            "(-wal) into the database."
        )
    else:
        title = text("{name} is intact, but its -wal file is wrong", name=name)
        detail = text(
            "Hermes cannot read all rows while this write-ahead log (-wal) is there. It is damaged "
            "or belongs to another database. No row is lost."
        )
    return Finding(
        code="DB-WAL-STALE",
        severity=Severity.CRITICAL,
        title=title,
        subject=name,
        detail=detail,
        next="Do not start Hermes before the repair.",
        evidence=(
            Evidence(
                name,
                "intact without the -wal file, damaged with it"
                if condition.damage or not condition.header.keeps_no_log
                else "intact and in rollback mode, which uses no -wal file",
            ),
            Evidence(f"{name}-wal", log),
        ),
        fix="set-aside-log",
        data={"wal": condition.files.wal},
    )


def _leftover(name: str, condition: Condition) -> Finding:
    """A log beside a file in rollback mode that may be its own all the same."""
    what = text(
        "{frames}, {size}",
        frames=count(condition.log.committed, "frame"),
        size=size(condition.log.size),
    )
    return Finding(
        code="DB-WAL-STALE",
        severity=Severity.WARNING,
        title=text("{name} has a -wal file although it uses none", name=name),
        subject=name,
        detail=(
            "At its next start Hermes writes this log into the database. If it is old, newer rows "
            "disappear without an error."
        ),
        next="Copy both files to another place before Hermes starts again.",
        evidence=(
            Evidence(name, "in rollback mode (journal_mode delete)"),
            Evidence(f"{name}-wal", what),
        ),
        data={"wal": condition.files.wal},
    )


def _journal_mode(probes: Probes) -> str:
    """The journal mode that config.yaml asks for; empty if it does not."""
    try:
        written = probes.settings.config()
    except CouldNotLook:
        return ""
    block = ((written.values if written else None) or {}).get("database")
    said = block.get("journal_mode") if isinstance(block, dict) else None
    return said.strip().lower() if isinstance(said, str) else ""


def _ignored(name: str, condition: Condition) -> Finding:
    log = condition.files.wal.size
    return Finding(
        code="DB-JOURNAL-MODE",
        severity=Severity.WARNING,
        title=text("journal_mode: delete has no effect on {name}", name=name),
        subject=name,
        detail=(
            "Hermes never changes a database that keeps a write-ahead log (-wal), so the risks of "
            "that log remain."
        ),
        next=text(
            "Stop every Hermes process, then run `sqlite3 {name} 'PRAGMA journal_mode=delete'` in "
            "the home.",
            name=name,
        ),
        evidence=(
            Evidence("config.yaml", "database.journal_mode: delete"),
            Evidence(
                f"{name}-wal" if log else name,
                size(log) if log else "its header says that it keeps a -wal file",
            ),
        ),
    )


def _broken(name: str, condition: Condition) -> Iterator[Finding]:
    log = condition.log
    if not log.lost_commits:
        return
    if log.head == "damaged":
        what = text(
            "header damaged; at least {transactions} after it can be read",
            transactions=count(log.lost_commits, "transaction"),
        )
    else:
        what = text(
            "frame {frame} damaged; at least {transactions} after it can be read",
            frame=(log.broken or 0) + 1,
            transactions=count(log.lost_commits, "transaction"),
        )
    yield Finding(
        code="DB-WAL-BROKEN",
        severity=Severity.ERROR,
        title=text("{name}-wal is damaged: the newest rows are missing", name=name),
        subject=name,
        detail=(
            "SQLite reads this write-ahead log (-wal) only up to the damage, and deletes it at the "
            "next start of Hermes."
        ),
        next="Do not start Hermes before the repair.",
        evidence=(Evidence(f"{name}-wal", what),),
        fix="salvage-rows",
        data={"frame": log.broken, "head": log.head},
    )


def _huge(name: str, condition: Condition) -> Finding:
    held = bool(condition.holders)
    return Finding(
        code="DB-WAL-HUGE",
        severity=Severity.WARNING,
        title=text("{name}-wal grew to {size}", name=name, size=size(condition.files.wal.size)),
        subject=name,
        detail=(
            "The bot gets slower and the disk fills up. A process reads without a pause, or "
            "SQLite cannot merge this write-ahead log (-wal)."
            if held
            else "The bot gets slower and the disk fills up. No process uses this write-ahead log "
            "(-wal), so it can be merged now."
        ),
        next=(
            "Restart the gateway; SQLite merges the log when no process uses it." if held else ""
        ),
        evidence=(Evidence(name, size(condition.files.main.size)),),
        fix=None if held else "checkpoint-wal",
        data={"held": held},
    )


_JOURNALS: dict[str, tuple[Severity, str, str, str, str | None]] = {
    "own": (
        Severity.WARNING,
        "a write to {name} was interrupted",
        "SQLite undoes the unfinished part when it next opens the file. It needs the journal for "
        "that, so keep both files together.",
        "",
        "roll-back",
    ),
    "foreign": (
        Severity.CRITICAL,
        "{name} has a journal of another database",
        "At the next start SQLite writes old pages from this journal over the database, and rows "
        "are lost.",
        "Do not start Hermes before the repair.",
        "set-aside-log",
    ),
    "damaged": (
        Severity.CRITICAL,
        "{name} is damaged, with and without its journal",
        "At the next start SQLite writes the journal into the database, even if it belongs to "
        "another one.",
        "Do not start Hermes before the repair, and keep both files.",
        "salvage-rows",
    ),
    "unclear": (
        Severity.CRITICAL,
        "{name} has a journal that may belong to another database",
        "Could not determine which database it belongs to. If it belongs to another one, the "
        "next start of Hermes overwrites rows with old ones.",
        "Copy both files to another place before Hermes starts again.",
        None,
    ),
}
"""Severity, title, detail, next step and fix for each kind of journal."""


def _journal(name: str, condition: Condition, cut: JournalVerdict) -> Finding:
    severity, title, detail, step, fix = _JOURNALS[cut.kind]
    journal = condition.files.journal
    what = text(
        "{size}, {pages}: {reason}",
        size=size(journal.size),
        pages=count(cut.records, "page"),
        reason=cut.evidence[0],
    )
    return Finding(
        code="DB-JOURNAL",
        severity=severity,
        title=text(title, name=name),
        subject=name,
        detail=detail,
        next=step,
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
