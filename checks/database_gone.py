"""Find databases that are missing or were replaced although traces of the old ones are left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    snapshot,
    text,
)
from hermes_doctor.api.database import DatabaseCopy, LostFile
from hermes_doctor.api.tools import (
    CACHES,
    NamedTuple,
    clock,
    known_or,
    moment,
    read_json,
    sentences,
    size,
)

_BESIDE = {
    "-wal": "write-ahead log of the missing database, {size}",
    "-journal": "journal of the missing database, {size}",
}
_EMPTY = "At its next start Hermes creates an empty database without the old data."


@check(id="database-gone", group="databases", codes=["DB-GONE"], limit=10)
def database_gone(probes: Probes) -> Iterator[Finding]:
    """Is every database still there?"""
    missing = [path for path in probes.databases.files().missing if not _disposable(probes, path)]
    if not missing:
        raise Skip("no database is missing")
    for path in missing:
        yield from _gone(probes, path)


def _disposable(probes: Probes, path: Path) -> bool:
    return probes.home.name_of(path) in CACHES


def _gone(probes: Probes, path: Path) -> Iterator[Finding]:
    name = probes.home.name_of(path)
    beside = {
        suffix: taken.size
        for suffix in _BESIDE
        if (taken := snapshot(path.with_name(path.name + suffix))).kind == "file" and taken.size
    }
    users = [
        lost_file
        for lost_file in probes.databases.lost_files()
        if lost_file.database == path and lost_file.kind == "database"
    ]
    copies = _copies(probes, path, known=bool(beside or users))
    evidence = _evidence(probes, path, beside, users, copies)
    if not evidence:
        return
    yield Finding(
        code="DB-GONE",
        severity=Severity.CRITICAL if path.name == "state.db" else Severity.ERROR,
        title=text("{name} is missing", name=name),
        subject=name,
        detail=_detail(probes, path, users, beside, copies),
        next=_next(probes, path, users, beside, copies),
        evidence=tuple(evidence),
        fix=_fix(probes, path, users, beside, copies),
        data={
            "copies": tuple(copy.path for copy in copies),
            "log": bool(beside),
            **({"pid": users[0].pid} if users else {}),
        },
    )


def _copies(probes: Probes, path: Path, *, known: bool) -> list[DatabaseCopy]:
    """All copies of a database that was there; searching everywhere takes a moment."""
    searched = known or path.name in ("state.db", "kanban.db") or probes.databases.copies(path)
    return probes.databases.all_copies(path) if searched else []


def _evidence(
    probes: Probes,
    path: Path,
    beside: Mapping[str, int],
    users: Sequence[LostFile],
    copies: Sequence[DatabaseCopy],
) -> list[Evidence]:
    """What shows that the database was there, the most useful first."""
    from hermes_doctor.api.repairs import copy_evidence

    name = probes.home.name_of(path)
    evidences = [
        Evidence(f"/proc/{lost_file.pid}/fd/{lost_file.fd}", f"{name}, {lost_file.cause}")
        for lost_file in users
    ]
    evidences += [
        Evidence(f"{name}{suffix}", text(_BESIDE[suffix], size=size(length)))
        for suffix, length in beside.items()
    ]
    own = [copy for copy in copies if not copy.doubtful]
    own = own or probes.databases.damaged_copies(path)
    traces = [Evidence(trace.where, trace.what) for trace in probes.databases.traces(path)]
    if not evidences and not own and not traces:
        return []  # a copy that may be of another home does not show that this one was used
    evidences += copy_evidence(probes.home, path.name, own or copies)
    return [*evidences, *([] if own or users or beside else traces[:3])]


def _detail(
    probes: Probes,
    path: Path,
    users: Sequence[LostFile],
    beside: Mapping[str, int],
    copies: Sequence[DatabaseCopy],
) -> str:
    from hermes_doctor.api.repairs import DAMAGED_COPY, NO_COPY

    if users and users[0].cause == "renamed":
        return text(
            "The process continues to use {file}. At its next start Hermes creates an empty "
            "database.",
            file=users[0].path.name,
        )
    if users:
        return "A process still has the file open. When it stops, the data is lost."
    if beside:
        return (
            "At its next start Hermes creates an empty database, and SQLite deletes what is left "
            "of the old one."
        )
    if copies:
        return _EMPTY
    return sentences(_EMPTY, DAMAGED_COPY if probes.databases.damaged_copies(path) else NO_COPY)


def _next(
    probes: Probes,
    path: Path,
    users: Sequence[LostFile],
    beside: Mapping[str, int],
    copies: Sequence[DatabaseCopy],
) -> str:
    if users:
        return "Do not stop or start anything on this home before the repair."
    if beside:
        return "Do not start Hermes before the repair."
    if copies or probes.databases.damaged_copies(path):
        return ""
    return probes.databases.advice_without_copy(path)


def _fix(
    probes: Probes,
    path: Path,
    users: Sequence[LostFile],
    beside: Mapping[str, int],
    copies: Sequence[DatabaseCopy],
) -> str:
    if users:
        return "restart-after-saving" if users[0].pid in _gateways(probes) else "save-deleted-log"
    if beside or (not copies and probes.databases.damaged_copies(path)):
        return "salvage-rows"
    return "restore-database" if copies else "start-empty"


def _gateways(probes: Probes) -> set[int]:
    return known_or(set(), lambda: {gateway.pid for gateway in probes.gateway.running()})


_NAME = "state.db"
_TOKEN = "SELECT value FROM state_meta WHERE key = 'db_file_generation'"
_RECENT = timedelta(days=7)
_MOST = 8
"""How many of the newest copies are compared."""


class _Seen(NamedTuple):
    """A number that state.db had, where that is written, and when."""

    stamp: int
    where: str
    at: datetime


@check(id="database-stamp", group="databases", codes=["DB-REPLACED"])
def database_stamp(probes: Probes) -> Iterator[Finding]:
    """Is state.db the same database as before?"""
    path = probes.home / _NAME
    if path not in probes.databases.files().paths:
        raise Skip("no state.db yet")
    try:
        if probes.databases.is_reported(path):
            raise Skip("state.db cannot be read; another check reports it")
        current = _current(probes, path)
    except FileNotFoundError:
        raise Skip("no state.db yet") from None
    if not current:
        raise Skip("this Hermes does not number its databases")
    said = _token(probes, path)
    if said and said != current:
        yield Finding(
            code="DB-REPLACED",
            severity=Severity.WARNING,
            title="state.db is a mixture of two databases",
            subject=_NAME,
            detail=(
                "Messages may be missing or old. Another file was copied over state.db, or "
                "another write-ahead log (-wal) was applied to it."
            ),
            next="Stop the gateway. Then `hermes-doctor fix --deep` shows what can be repaired.",
            evidence=(
                Evidence(_NAME, text("number in the header: {stamp:08x}", stamp=current)),
                Evidence(_NAME, text("number in state_meta: {stamp:08x}", stamp=said)),
            ),
        )
        return
    earlier = max(_earlier(probes, path), key=lambda one: one.at, default=None)
    if earlier is not None and earlier.stamp != current:
        yield Finding(
            code="DB-REPLACED",
            severity=Severity.WARNING,
            title="state.db was replaced by another database",
            subject=_NAME,
            detail=(
                "The bot does not remember what is only in the earlier database. It was restored, "
                "copied or created again."
            ),
            next=(
                "If you did not do this, stop the gateway and compare both files before you "
                "restore one."
            ),
            evidence=(
                Evidence(_NAME, text("number {stamp:08x}", stamp=current)),
                Evidence(
                    earlier.where,
                    text("number {stamp:08x}, {time}", stamp=earlier.stamp, time=clock(earlier.at)),
                ),
            ),
            since=earlier.at,
        )


def _current(probes: Probes, path: Path) -> int:
    """The number of the database; its log may have a newer header than the file."""
    head = probes.databases.header(path)
    if not head.magic or not head.application_id:
        return 0
    rows = probes.databases.rows(path, "PRAGMA application_id")
    found = rows[0][0] if rows else 0
    return found if isinstance(found, int) else 0


def _token(probes: Probes, path: Path) -> int:
    """The number that state_meta has; 0 if it has none."""
    rows = probes.databases.rows(path, _TOKEN, "state_meta")
    said = str(rows[0][0]) if rows else ""
    try:
        return (int(said[:8], 16) & 0x7FFFFFFF) or 1
    except ValueError:
        return 0


def _earlier(probes: Probes, path: Path) -> Iterator[_Seen]:
    """The numbers in recent copies of state.db, and in the notes of logs that were set aside."""
    since = datetime.now(UTC) - _RECENT
    for copy in probes.databases.copies(path)[:_MOST]:
        at = moment(copy.mtime_ns)
        if at < since:
            break
        try:
            head = probes.databases.header(copy.path)
        except (CouldNotLook, FileNotFoundError):
            continue
        if head.magic and head.application_id:
            yield _Seen(head.application_id, probes.home.name_of(copy.path), at)
    for kept in probes.stores.unsaved_turns().retired[-_MOST:]:
        stamp = _noted(kept.path / "manifest.json")
        if stamp and kept.at >= since:
            yield _Seen(stamp, kept.path.name, kept.at)


def _noted(manifest: Path) -> int:
    """The number of the database beside which a log was set aside."""
    try:
        said = read_json(manifest)
    except (CouldNotLook, FileNotFoundError, ValueError):
        return 0
    for key in ("main", "header", "application_id"):
        said = said.get(key) if isinstance(said, dict) else None
    return said if isinstance(said, int) else 0
