"""Parse the exit diary, the list of starts and the update log of Hermes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hermes_doctor.lazy import pattern
from hermes_doctor.logs.block_reader import Lines
from hermes_doctor.logs.clock import LogClock, seconds
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.logs.formats import Format, LogWindow, text

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
        said = text(line)
        if said and at is not None and span.has(at, "INFO", ""):
            yield LogEntry(at, "INFO", "", said, source=source, offset=offset, kind=kind)


DIARY = Format("exit-diary", _diary_time, _diary, utc=True)
ENDING = Format("exit-diary", _ending_time, _ending, utc=True)
STARTS = Format("exit-diary", _start_time, _starts, utc=True)
UPDATE = Format("update", _update_time, _update)
