"""Reads the history with Python's own sqlite3, read-only, without changing or creating any file.

Only a writer sets a damaged file aside; a reader says what is wrong with it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.operations.history import place
from hermes_doctor.operations.history.layout import (
    APPLICATION,
    DAY,
    HOUR,
    from_text,
    hour_of,
    number,
    readable,
    refuse_newer,
    split_by_hour,
    to_text,
)
from hermes_doctor.operations.history.observation import Key, stored_key

_Row = TypeVar("_Row")
WEEK = 7 * DAY
BRIEFLY, PATIENTLY = 0.2, 5.0
"""Seconds that a reader waits for a writer: in `check`, and in `history`."""
_BAD = (sqlite3.Error, ValueError, TypeError, KeyError, OverflowError, IndexError, RecursionError)


class Episode(NamedTuple):
    """One episode of a problem."""

    code: str
    subject: str
    severity: str
    title: str
    first_seen: int
    last_seen: int
    ended: int | None
    how: str | None
    repair: str | None
    returns: int

    def seconds(self, now: int) -> int:
        """How long it lasted, until now if it is open."""
        return max(0, (now if self.ended is None else self.ended) - self.first_seen)


class HourShare(NamedTuple):
    """How many seconds of an hour the bot was in each condition; the rest is unknown."""

    hour: int
    working: int
    limited: int
    silent: int


class HistoryMark(NamedTuple):
    """A moment at which something changed."""

    at: int
    kind: str
    what: str
    code: str | None
    subject: str | None
    run: str | None
    times: int
    until: int | None


class HistoryRows(NamedTuple):
    """What the history knows of one home since some moment."""

    file: Path
    first_seen: int
    last_seen: int
    episodes: tuple[Episode, ...]
    """Those that were open at some time since then, oldest first."""
    hours: tuple[HourShare, ...]
    marks: tuple[HistoryMark, ...]
    skipped: int = 0
    """Damaged rows that were left out."""
    unread: tuple[str, ...] = ()
    """Why other files that may know the home could not be read."""


def load(home: Home, since: int, now: int) -> HistoryRows | None:
    """All rows of a home since a moment, from the file with the newest record.

    None if no history knows it; Trouble if none can be read.
    """
    known: list[HistoryRows] = []
    unread: list[Trouble] = []
    for path in place.files_of(home):
        try:
            with opened(path, PATIENTLY) as db:
                known += [rows for rows in [rows_of_home(db, path, home, since, now)] if rows]
        except Trouble as trouble:
            unread.append(trouble)
        except _BAD as error:
            unread.append(_explained(path, error))
    if unread and not known:
        raise unread[0]
    newest = max(known, key=lambda rows: rows.last_seen, default=None)
    return newest._replace(unread=tuple(map(str, unread))) if newest else None


def times_in_week(home: Home, keys: Iterable[Key], now: int) -> dict[Key, int] | None:
    """How often each problem appeared in the last 7 days, this time included.

    None without a history, or if it cannot be read: a check does not depend on it.
    """
    best: tuple[str, dict[Key, int]] = ("", {})
    for path in place.files_of(home):
        with contextlib.suppress(Trouble, OSError, *_BAD), opened(path, BRIEFLY) as db:
            row = _home_row(db, home)
            if row is not None and str(row["last_seen"]) > best[0]:
                best = (str(row["last_seen"]), _count(db, int(row["id"]), keys, now))
    return best[1] if best[0] else None


def _count(db: sqlite3.Connection, home: int, keys: Iterable[Key], now: int) -> dict[Key, int]:
    counted = {}
    for key in keys:
        counts = db.execute(
            "SELECT sum(1 + coalesce(returns, 0)), sum(ended IS NULL) FROM episodes "
            "WHERE home = ? AND code = ? AND subject = ? AND (ended IS NULL OR ended >= ?)",
            (home, *stored_key(*key), to_text(max(0, now - WEEK))),
        ).fetchone()
        counted[key] = int(counts[0] or 0) + (not counts[1])
    return counted


@contextlib.contextmanager
def opened(path: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """The history, opened read-only; symlinks are not followed."""
    with as_owner_of(path) as here:
        try:
            if not stat.S_ISREG(os.lstat(here).st_mode):
                raise Trouble("{path} is not a regular file, so it is not read.", path=path)
            address = f"file:{quote(os.fsencode(here))}?mode=ro"
            db = sqlite3.connect(address, uri=True, timeout=wait)
        except OSError as error:
            raise Trouble("Could not read {path}: {why}.", path=path, why=error.strerror) from None
        with contextlib.closing(db):
            db.row_factory, db.text_factory = sqlite3.Row, readable
            db.execute("BEGIN")
            known = db.execute("PRAGMA application_id").fetchone()[0]
            if known != APPLICATION:
                raise ValueError("it belongs to another program")
            refuse_newer(db.execute("PRAGMA user_version").fetchone()[0])
            yield db


def _home_row(db: sqlite3.Connection, home: Home) -> Mapping[str, Any] | None:
    rows = [dict(row) for row in db.execute("SELECT * FROM homes")]
    identity = place.identity_of(home.path)
    return place.find_row(rows, place.stored_path(home.path), identity, place.boot_id())


def rows_of_home(
    db: sqlite3.Connection, path: Path, home: Home, since: int, now: int
) -> HistoryRows | None:
    """What an open history knows of a home since a moment; None if it does not know it."""
    row = _home_row(db, home)
    if row is None:
        return None
    values = (row["id"], to_text(since))
    episodes = db.execute(
        "SELECT * FROM episodes WHERE home = ? AND (ended IS NULL OR ended >= ?) "
        "ORDER BY first_seen, id",
        values,
    )
    hours = db.execute(
        "SELECT * FROM hours WHERE home = ? AND hour >= ? ORDER BY hour",
        (row["id"], to_text(hour_of(since))),
    )
    marks = db.execute("SELECT * FROM marks WHERE home = ? AND at >= ? ORDER BY at, id", values)
    sound_episodes = _sound(episodes, lambda row: _episode(row, now))
    sound_hours = _sound(hours, _hour)
    sound_marks = _sound(marks, lambda row: _mark(row, now))
    return HistoryRows(
        file=path,
        first_seen=min(now, from_text(row["first_seen"])),
        last_seen=min(now, from_text(row["last_seen"])),
        episodes=sound_episodes[0],
        hours=_counted([share for share in sound_hours[0] if share.hour <= now], row, since, now),
        marks=sound_marks[0],
        skipped=sound_episodes[1] + sound_hours[1] + sound_marks[1],
    )


def _counted(
    hours: Sequence[HourShare], row: Mapping[str, Any], since: int, now: int
) -> tuple[HourShare, ...]:
    """The hours with the time since the last record, and without the time before `since`.

    While the next record is not overdue, nothing has changed since the last one.
    """
    by_hour = {share.hour: share for share in hours}
    until, name = row["counted_until"], str(row["condition"])
    start = now if until is None else from_text(until)
    if name in HourShare._fields[1:] and now - start <= number(row.get("due")):
        for hour, seconds in split_by_hour(max(start, since), now):
            share = by_hour.get(hour, HourShare(hour, 0, 0, 0))
            by_hour[hour] = share._replace(**{name: getattr(share, name) + seconds})
    return tuple(_after(by_hour[hour], since) for hour in sorted(by_hour))


def _after(share: HourShare, since: int) -> HourShare:
    """The part of an hour after a moment; if that is too short for its shares, all get less."""
    room, spent = share.hour + HOUR - max(share.hour, since), sum(share[1:])
    return (
        share if spent <= room else HourShare(share.hour, *(x * room // spent for x in share[1:]))
    )


def _sound(
    rows: Iterable[sqlite3.Row], make: Callable[[sqlite3.Row], _Row]
) -> tuple[tuple[_Row, ...], int]:
    """The rows without those that contain impossible values, and how many those were."""
    sound, skipped = [], 0
    for row in rows:
        try:
            sound.append(make(row))
        except (ValueError, TypeError, OverflowError):
            skipped += 1
    return tuple(sound), skipped


def _episode(row: sqlite3.Row, now: int) -> Episode:
    """One row; a time in the future, from a wrong clock, counts as now."""
    return Episode(
        code=str(row["code"]),
        subject=str(row["subject"]),
        severity=str(row["severity"]),
        title=str(row["title"] or ""),
        first_seen=min(now, from_text(row["first_seen"])),
        last_seen=min(now, from_text(row["last_seen"])),
        ended=None if row["ended"] is None else min(now, from_text(row["ended"])),
        how=row["how"],
        repair=row["repair"],
        returns=int(row["returns"] or 0),
    )


def _hour(row: sqlite3.Row) -> HourShare:
    shares = [max(0, int(row[name] or 0)) for name in ("working", "limited", "silent")]
    return HourShare(from_text(row["hour"]), *shares)


def _mark(row: sqlite3.Row, now: int) -> HistoryMark:
    return HistoryMark(
        at=min(now, from_text(row["at"])),
        kind=str(row["kind"]),
        what=str(row["what"]),
        code=row["code"],
        subject=row["subject"],
        run=row["run"],
        times=int(row["times"] or 1),
        until=None if row["until"] is None else min(now, from_text(row["until"])),
    )


def _explained(path: Path, error: Exception) -> Trouble:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return Trouble("You may not read {path}.", path=path)
    if code == sqlite3.SQLITE_BUSY:
        return Trouble("{path} is being written; try again.", path=path)
    if code == sqlite3.SQLITE_READONLY:
        return Trouble(
            "{path} is left in the middle of a write. The watch completes it at its next "
            "check, and so does: hermes-doctor check --record",
            path=path,
        )
    return Trouble(
        "The history is damaged ({why}): {path}. The watch sets it aside at its next check and "
        "starts a new one.",
        why=error,
        path=path,
    )
