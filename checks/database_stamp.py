"""Check that state.db is still the database that Hermes used before.

Hermes 0.21 and later gives each state.db a random number when it first opens it: in the header of
the file (application_id), and as text in the table state_meta. Copies keep it. A gateway that finds
another number stops writing; this check compares also when no gateway runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.tools import NamedTuple, clock, moment, read_json

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
