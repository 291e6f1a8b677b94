"""Convert the local times in a log to UTC by finding out the time zone they were written in.

Hermes writes the local time of its process without an offset. The zone of the process is used
first, unless the file contradicts it: its last line was written when the file was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import open_regular

_DAY = 86_400
_QUARTER = 900
"""Time zones differ by quarters of an hour."""
_NEAR, _CLOSE = 120.0, 5.0
"""How far a line may be from the file's mtime to show a zone, and to contradict a known one."""
_ODD = {-570, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 765, 825}
_OFFSETS = {60 * hours for hours in range(-12, 15)} | _ODD
"""The offsets of the world's time zones from UTC, in minutes."""
_BACK = 60.0
"""Seconds by which a line may be earlier than the one before it."""
_DAY_ONE = datetime(1970, 1, 1)
_SHAPE = pattern(rb"\d{4}-\d\d-\d\d[ T]")
_HOURS = {b"%02d:" % n: 3600 * n for n in range(24)}
_MINUTES = {b"%02d:" % n: 60 * n for n in range(60)}
_SECONDS = {b"%02d" % n: n for n in range(61)}


def seconds(stamp: bytes) -> float | None:
    """Parse a time like `2026-11-15 00:35:09` as if it were UTC."""
    day = _day(stamp[:11])
    if day is None:
        return None
    try:
        return day + _HOURS[stamp[11:14]] + _MINUTES[stamp[14:17]] + _SECONDS[stamp[17:19]]
    except KeyError:
        return None


@lru_cache(maxsize=1000)
def _day(text: bytes) -> float | None:
    if not _SHAPE.fullmatch(text):
        return None
    try:
        shown = datetime.fromisoformat(text[:10].decode())
    except ValueError:
        return None
    return (shown - _DAY_ONE).total_seconds()


class LogClock:
    """Converts the times of one file, by a zone or by a fixed number of seconds."""

    def __init__(self, zone: tzinfo | None = UTC, offset: float | None = None) -> None:
        """A `zone` of None is this machine's; `offset`, if given, is used instead of it."""
        self._zone = zone
        self.offset = 0.0 if zone is UTC and offset is None else offset
        self._offsets: tuple[float, float] = (0.0, 0.0)
        self._valid: tuple[float, float] = (0.0, 0.0)
        """The local times from which and before which these offsets are right."""
        self._last: float | None = None

    def utc(self, local: float) -> float:
        """Convert a local time; for an hour that occurs twice, the order of the lines decides."""
        if self.offset is not None:
            return local + self.offset
        first, second = self._both(local)
        at = first
        if first != second and self._last is not None and first < self._last - _BACK:
            at = second
        self._last = at
        return at

    def latest(self, local: float) -> float:
        """Return the latest UTC time that it can have been."""
        return local + self.offset if self.offset is not None else max(self._both(local))

    def twice(self, local: float) -> bool:
        """Tell whether this local time occurs twice, as when summer time ends."""
        return self.offset is None and len(set(self._both(local))) == 2

    def settle(self, shown: Iterable[float], written: float) -> None:
        """Decide whether the times shown are in the second of two equal hours.

        They are if the times never go back during this hour, unless the file was last written in
        the first of the two.
        """
        begin = previous = None
        for local in shown:
            if not self.twice(local):
                break
            if previous is not None and local < previous - _BACK:
                return
            previous = local
            begin = local if begin is None else begin
        else:
            if previous is not None and abs(written - min(self._both(previous))) < _NEAR:
                return
        if begin is not None:
            self._last = max(self._both(begin))

    def fits(self, local: float, utc: float) -> bool:
        """Tell whether this local time can have been shown at that UTC time."""
        return any(abs(at - utc) < 1 for at in self._both(local))

    def fits_near(self, local: float, utc: float) -> bool:
        """Tell whether a line with this local time can have been written about then."""
        return any(abs(at - utc) < _NEAR for at in self._both(local))

    def _both(self, local: float) -> tuple[float, float]:
        begin, end = self._valid
        if not begin <= local < end:
            self._offsets, self._valid = self._around(local)
        return local + self._offsets[0], local + self._offsets[1]

    def _around(self, local: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return both offsets, and the span in which they are valid: a day if both ends agree.

        No zone ever changed its offset twice within a day. Asking for each quarter of an hour takes
        5 to 7 ms more where the zone is not UTC: lines of a quiet bot are far apart.
        """
        day = local // _DAY * _DAY
        ends = {self._offset(at, fold) for at in (day, day + _DAY) for fold in (0, 1)}
        if len(ends) == 1:
            offset = ends.pop()
            return (offset, offset), (day, day + _DAY)
        quarter = local // _QUARTER * _QUARTER
        offsets = self._offset(local, 0), self._offset(local, 1)
        return offsets, (quarter, quarter + _QUARTER)

    def _offset(self, local: float, fold: int) -> float:
        try:
            shown = _DAY_ONE + timedelta(seconds=local)
            return shown.replace(tzinfo=self._zone, fold=fold).timestamp() - local
        except (ValueError, OverflowError, OSError):  # years outside the range of zones
            return 0.0


def clock_of_file(
    last: float | None,
    written: float | None,
    zone: tzinfo | None,
    newer: LogClock | None,
) -> LogClock:
    """Return the clock of a file from its last line's local time and its mtime.

    `written` is None if the mtime says nothing about the lines, as in a copy. `zone` is that of the
    process, if known; `newer` is the clock of the next newer file.
    """
    seen = None if last is None or written is None else _evidence(last, written)
    if last is None or seen is None:
        return newer if newer is not None and zone is None else LogClock(zone)
    behind, away = seen
    if zone is not None and (away > _CLOSE or LogClock(zone).fits(last, last + behind)):
        return LogClock(zone)
    return LogClock(None) if LogClock(None).fits(last, last + behind) else LogClock(UTC, behind)


def distance(last: float, written: float) -> float:
    """Return the seconds from the nearest quarter of an hour between a line and an mtime."""
    return written - last - round((written - last) / _QUARTER) * _QUARTER


def _evidence(last: float, written: float) -> tuple[float, float] | None:
    """Return how far a clock is behind UTC and how well the mtime fits; None if unclear."""
    behind = round((written - last) / _QUARTER) * _QUARTER
    away = abs(written - last - behind)
    if away > _NEAR or -behind // 60 not in _OFFSETS:
        return None
    return float(behind), away


_FIXED = pattern(r"(?:[A-Za-z]{3,}|<[+\-\w]{3,}>)([+-]?)(\d{1,2})(?::(\d\d))?")
_DATABASE = Path("usr/share/zoneinfo")
_LOCAL = Path("etc/localtime")
_UTC_BYTES, _UTC_END = 127, b"\nUTC0\n"
"""The file of a zone that has always been UTC is no longer than that, and ends so."""


def zone_of_process(pid: int, environment: Mapping[str, str] | None) -> tzinfo | None:
    """Return the zone of a running process, from its variables and its root file system.

    None if it is unclear; then it is derived from the files that the process writes.
    """
    if environment is None:
        return None
    root = Path(f"/proc/{pid}/root")
    named = environment.get("TZ")
    return _zone_in_file(root / _LOCAL) if named is None else zone_named(named, root)


def zone_named(name: str, root: Path = Path("/")) -> tzinfo | None:
    """Return the zone of a TZ value: `Asia/Shanghai`, `:/etc/localtime`, `CST-8`; else None."""
    name = name.removeprefix(":")
    if not name:
        return UTC
    if name.startswith("/"):
        return _zone_in_file(root / name.lstrip("/"))
    if ".." not in name.split("/") and (found := _zone_in_file(root / _DATABASE / name)):
        return found
    if match := _FIXED.fullmatch(name):
        away = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if away < timedelta(hours=24):  # POSIX counts positive offsets to the west
            return timezone(away if match[1] == "-" else -away)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)  # Python's own tables, if the machine has none
    except (OSError, ValueError, LookupError):
        return None


def _zone_in_file(path: Path) -> tzinfo | None:
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            if file.read(_UTC_BYTES + 1).endswith(_UTC_END):
                return UTC  # most servers; loading zoneinfo takes 6 ms of a check
            from zoneinfo import ZoneInfo

            file.seek(0)
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, CouldNotLook, EOFError):
        return None
