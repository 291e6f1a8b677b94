"""The entry of a log, and how the files that Hermes writes are parsed into entries.

The format of its logs since 0.13 has head lines, and continuation lines without a head:

    2026-11-15 00:35:12,118 INFO [20261115_001248_df794ef7] gateway.run: what it says

`parse_log` is performance-critical: a window may contain a million lines. What most lines share
(the second, and everything between time and message) is cached, not parsed again. The time of an
unwanted line is not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.logs.block_reader import Lines
from hermes_doctor.hermes.logs.clock import LogClock, seconds


class LogEntry(NamedTuple):
    """A log entry with its following lines, whose text is never shown whole."""

    at: float
    """The time in seconds since 1970, UTC."""
    level: str
    """DEBUG, INFO, WARNING, ERROR or CRITICAL."""
    logger: str
    """Empty where the source has none."""
    text: str
    """The message without time, level and logger."""
    session: str = ""
    """The tag that Hermes puts before the logger while it answers."""
    more: tuple[str, ...] = ()
    """The following lines: a traceback or the rest of a long message. Their number is limited."""
    source: str = ""
    """The file's name in the home, or `journal`, `stderr`."""
    offset: int = 0
    """The byte in the file, or the line of another source."""
    kind: str = "log"
    """log, journal, stderr, exit-diary or update."""


class Unread(NamedTuple):
    """A source that could not be read, or only in part, and why."""

    source: str
    why: str
    partly: bool = False
    """Only a limited amount was read; older parts of the window were left out."""


Wanted = Callable[[str, str], bool]
"""Tells whether entries of a level and a logger are wanted."""
WantedSince = Callable[[str, str], float]
"""Tells since when entries of a level and a logger are wanted."""

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LONG = 16 * 1024
"""The text of a line is cut after this many bytes."""
MORE_LINES = 200
MORE_BYTES = 64 * 1024
"""How much is kept of the lines that follow an entry."""


class LogWindow(NamedTuple):
    """The time span and filter of the entries to read."""

    since: float
    until: float = float("inf")
    wanted: Wanted | None = None
    wanted_since: WantedSince | None = None
    """Says of which entries the older ones are not wanted."""

    def has(self, at: float, level: str, logger: str) -> bool:
        """Tell whether an entry with these values is wanted."""
        return (
            self.since <= at <= self.until
            and (self.wanted is None or self.wanted(level, logger))
            and (self.wanted_since is None or self.wanted_since(level, logger) <= at)
        )


class Format(NamedTuple):
    """A log format."""

    kind: str
    """The kind of its entries, as in `Entry.kind`."""
    local: Callable[[bytes], float | None]
    """Parses a line's local time as if it were UTC; None if it has none."""
    parse: Callable[[Lines, LogClock, LogWindow, str, str], Iterator[LogEntry]]
    """Parses lines into entries, given their clock, the span, their source and kind."""
    utc: bool = False
    """Whether its times are UTC."""


def decode_line(line: bytes) -> str:
    """Decode a line of any bytes, cut to a maximum length."""
    try:
        return line[:LONG].decode()  # faster than naming an encoding
    except UnicodeDecodeError:
        return line[:LONG].decode("utf-8", "replace")


_HEAD = pattern(rf" ({'|'.join(LEVELS)})(?: \[([^\]\s]+)\])? ([A-Za-z_][\w.\-]*)", re.ASCII)
_MILLISECONDS = {b"%03d" % n: n / 1000 for n in range(1000)}
_MOST_HEADS = 20_000
_LONGEST_HEAD = 300
_NEVER = b"no line begins so"


class _Head(NamedTuple):
    level: str
    session: str
    logger: str
    wanted: bool
    since: float
    earliest: bytes
    """Lines that come before this text were written before `since`."""


def local_time(line: bytes) -> float | None:
    """Parse the time at the start of a line."""
    if line[19:20] != b"," or line[23:24] != b" ":
        return None
    whole, part = seconds(line[:19]), _MILLISECONDS.get(line[20:23])
    return None if whole is None or part is None else whole + part


def parse_log(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    """Yield the wanted entries; the continuation lines of others are dropped with them."""
    until = span.until
    heads: dict[bytes, _Head | None] = {}
    new = tuple.__new__  # half the cost of calling the class
    stamp, second = _NEVER, 0.0
    held: tuple[float, str, str, str, str] | None = None
    """The entry that may have continuation lines."""
    there = 0
    more: list[str] = []
    room = MORE_BYTES
    for begin, block in lines:
        offset = begin
        for line in block:
            here = offset
            offset += len(line) + 1
            head = None
            if line[19:20] == b",":
                front, colon, said = line.partition(b": ")
                key = front[23:] if colon else b""
                try:
                    head = heads[key]
                except KeyError:
                    head = _head(key, span, heads, clock)
            if held is None and (head is None or not head.wanted or line < head.earliest):
                continue
            if head is not None and head.wanted and line[:20] != stamp:
                shown = seconds(line[:19])
                stamp = _NEVER if shown is None else line[:20]
                second = 0.0 if shown is None else clock.utc(shown)
                head = None if shown is None else head
            if head is None or (part := _MILLISECONDS.get(line[20:23])) is None:
                if held is not None and room > 0 and len(more) < MORE_LINES:
                    more.append(decode_line(line[:room]))
                    room -= len(line)
                continue
            if held is not None:
                yield new(LogEntry, (*held, tuple(more), source, there, kind))
                held = None
                if more:
                    more, room = [], MORE_BYTES
            if head.wanted and head.since <= second + part <= until:
                held = second + part, head.level, head.logger, decode_line(said), head.session
                there = here
    if held is not None:
        yield new(LogEntry, (*held, tuple(more), source, there, kind))


def _head(
    key: bytes, span: LogWindow, heads: dict[bytes, _Head | None], clock: LogClock
) -> _Head | None:
    """Parse what is between a line's time and its message; None if it is not a head."""
    if len(key) > _LONGEST_HEAD:
        return None
    if len(heads) >= _MOST_HEADS:  # every session has its own heads
        heads.clear()
    head = None
    if match := _HEAD.fullmatch(key.decode("utf-8", "replace")):
        level, session, logger = match.groups()
        wanted = span.wanted is None or span.wanted(level, logger)
        since = span.wanted_since(level, logger) if span.wanted_since else span.since
        earliest = _earliest(clock, since) if wanted and since > span.since else b""
        head = _Head(level, session or "", logger, wanted, max(span.since, since), earliest)
    heads[key] = head
    return head


@lru_cache(maxsize=10)
def _earliest(clock: LogClock, since: float) -> bytes:
    """Return a text that comes before all lines since then.

    Comparing it with a line costs less than parsing its time. Clocks are changed by two hours at
    most.
    """
    local = since - (clock.latest(since) - since) - 2 * 3600
    return datetime.fromtimestamp(local, UTC).isoformat(" ", "seconds")[:19].encode()


HERMES_LOG = Format("log", local_time, parse_log)

_TIMED = pattern(rb'"(?:ts|fired_at)": ?"([0-9T:.+\-Z ]{19,40})"')
_WORD = pattern(r"[A-Za-z_][\w.]{0,80}")
_DATE = pattern(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z\s*")
_SIGNAL = pattern(rb"=== shutdown diagnostic @ (\w{1,20}) ===\s*")
_EPOCH = pattern(rb"\d{1,12}(?:\.\d{1,9})?\s*")
_UPDATE = pattern(rb"=== hermes update started (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) ===\s*")
_BAD = ("exception", "exit_nonzero", "shutdown_watchdog_fired")


def _one_by_one(lines: Lines) -> Iterator[tuple[int, bytes]]:
    for begin, block in lines:
        offset = begin
        for line in block:
            yield offset, line
            offset += len(line) + 1


def _diary_time(line: bytes) -> float | None:
    match = _TIMED.search(line) if line.startswith(b"{") else None
    try:
        return datetime.fromisoformat(match[1].decode()).timestamp() if match else None
    except ValueError:
        return None


def _diary(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    """Parse one record per line; only its tag, its code and the name of an error are kept."""
    import json

    for offset, line in _one_by_one(lines):
        shown = _diary_time(line)
        if shown is None:
            continue
        at = clock.utc(shown)
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue
        tag, error, code = (said.get(name) for name in ("tag", "exc_type", "code"))
        tag = tag if isinstance(tag, str) else said.get("event")
        if not isinstance(tag, str) or not _WORD.fullmatch(tag):
            continue
        words = [tag]
        if isinstance(code, int):
            words.append(f"code={int(code)}")
        if isinstance(error, str) and _WORD.fullmatch(error):
            words.append(error)
        if said.get("suspected_oom") is True:
            words.append("suspected_oom")
        level = "ERROR" if tag.endswith(_BAD) else "INFO"
        if span.has(at, level, ""):
            yield LogEntry(at, level, "", " ".join(words), source=source, offset=offset, kind=kind)


def _ending_time(line: bytes) -> float | None:
    match = _DATE.fullmatch(line)
    return seconds(match[1]) if match else None


def _ending(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    """Parse which signal ended a gateway; the process list after it is skipped (secrets)."""
    signal = ""
    for offset, line in _one_by_one(lines):
        if match := _SIGNAL.fullmatch(line):
            signal = match[1].decode()
        elif signal and (shown := _ending_time(line)) is not None:
            at = clock.utc(shown)
            if span.has(at, "INFO", ""):
                said = f"shutdown diagnostic @ {signal}"
                yield LogEntry(at, "INFO", "", said, source=source, offset=offset, kind=kind)
            signal = ""


def _start_time(line: bytes) -> float | None:
    return float(line) if _EPOCH.fullmatch(line) else None


def _starts(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    """Parse one start per line."""
    for offset, line in _one_by_one(lines):
        shown = _start_time(line)
        if shown is not None and span.has(at := clock.utc(shown), "INFO", ""):
            yield LogEntry(at, "INFO", "", "gateway.start", source=source, offset=offset, kind=kind)


def _update_time(line: bytes) -> float | None:
    match = _UPDATE.fullmatch(line)
    return seconds(match[1]) if match else None


def _update(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    """Parse an update; every line gets the time at which the update started."""
    at: float | None = None
    for offset, line in _one_by_one(lines):
        if (shown := _update_time(line)) is not None:
            at = clock.utc(shown)
        said = decode_line(line)
        if said and at is not None and span.has(at, "INFO", ""):
            yield LogEntry(at, "INFO", "", said, source=source, offset=offset, kind=kind)


DIARY = Format("exit-diary", _diary_time, _diary, utc=True)
ENDING = Format("exit-diary", _ending_time, _ending, utc=True)
STARTS = Format("exit-diary", _start_time, _starts, utc=True)
UPDATE = Format("update", _update_time, _update)
