"""Read a log and its rotated files as one, only as far back as a time window needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, tzinfo
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import size as shown
from hermes_doctor.hermes.logs import clock as clock_module
from hermes_doctor.hermes.logs.block_reader import (
    BLOCK,
    CompressedLog,
    FileIdentity,
    OpenLog,
    blocks,
    next_line,
)
from hermes_doctor.hermes.logs.clock import LogClock
from hermes_doctor.hermes.logs.entry import Format, LogEntry, LogWindow, Unread

_AGE = 300.0
"""Seconds by which a file's mtime may be wrong, e.g. on a network file system."""
MOST_FILES = 100
_FEW = 8 * 1024
_ROTATED = pattern(r"(?:\.(?P<number>\d{1,4})|(?P<day>-\d{8}(?:-\d{1,10})?))(?:\.gz)?")
_ARCHIVED = pattern(r"@[0-9a-f]{24}\.[su]")


class RotatedPart(NamedTuple):
    """A file of a rotated log that must be read."""

    file: OpenLog
    start: int
    clock: LogClock


ReportUnread = Callable[[Unread], None]
NoteFile = Callable[[str, FileIdentity], None]


def names(name: str, present: Iterable[str]) -> list[str]:
    """Return the files of a log among those present, newest first."""
    numbered: list[tuple[int, str]] = []
    dated: list[str] = []
    for one in present:
        match = _ROTATED.fullmatch(one.removeprefix(name)) if one.startswith(name) else None
        if match and match["number"]:
            numbered.append((int(match["number"]), one))
        elif match:
            dated.append(one)
    older = [one for _, one in sorted(numbered)] + sorted(dated, reverse=True)
    return [name, *older][:MOST_FILES]


def archives(present: Iterable[str]) -> list[str]:
    """Return the files in an s6-log folder, whose archives are named after their end time."""
    old = (name for name in present if _ARCHIVED.fullmatch(name))
    return ["current", *sorted(old, reverse=True)][:MOST_FILES]


def entries(
    files: Iterable[tuple[Path, str]],
    form: Format,
    span: LogWindow,
    *,
    max_bytes: int | None = None,
    zone: tzinfo | None = None,
    copied: bool = False,
    report_unread: ReportUnread,
    note: NoteFile | None = None,
    covers: Callable[[float], None] | None = None,
    size: int = BLOCK,
) -> Iterator[LogEntry]:
    """Yield the entries of a rotated log, oldest first; `files` are given newest first.

    A rotation in the meantime neither hides nor repeats anything: open files stay open and are
    recognised under their new name. `covers` is called with the time from which on nothing is
    missing. The mtimes of `copied` files do not tell a time zone.
    """
    with ExitStack() as stack:
        parts = _parts(files, form, span.since, max_bytes, zone, copied, report_unread, stack)
        if covers and parts:
            covers(_begin(parts[-1], form, span.since))
        for part in reversed(parts):
            if note:
                note(part.file.name, part.file.identity)
            lines = blocks(part.file, part.start, size)
            yield from form.parse(lines, part.clock, span, part.file.name, form.kind)
            if why := part.file.lacks():
                report_unread(Unread(part.file.name, why, partly=True))


def _begin(oldest: RotatedPart, form: Format, since: float) -> float:
    """Return when the first line that is read was written, if that is after `since`."""
    first = next(_shown(oldest.file, oldest.start, form), None)
    at = since if first is None else oldest.clock.latest(first)
    return since if at > oldest.file.written + _AGE else max(since, at)


def _parts(
    files: Iterable[tuple[Path, str]],
    form: Format,
    since: float,
    max_bytes: int | None,
    zone: tzinfo | None,
    copied: bool,
    report_unread: ReportUnread,
    stack: ExitStack,
) -> list[RotatedPart]:
    """Return what must be read of which files, newest first."""
    parts: list[RotatedPart] = []
    seen: set[FileIdentity] = set()
    left = max_bytes
    for path, name in files:
        try:
            file = (CompressedLog if name.endswith(".gz") else OpenLog)(path, name)
        except FileNotFoundError:
            continue
        except CouldNotLook as why:
            report_unread(Unread(name, str(why)))
            continue
        stack.callback(file.close)
        if file.identity in seen:
            continue
        seen.add(file.identity)
        if file.written < since - _AGE:
            break
        holds = file.claims() if isinstance(file, CompressedLog) else file.size
        if isinstance(file, CompressedLog) and left is not None:
            file.size = left  # the end of a compressed file costs as much as all of it
            if holds > file.size:
                report_unread(
                    Unread(name, "it is packed, and only `--deep` unpacks so much", partly=True)
                )
                break
        newer = parts[-1].clock if parts else None
        part, reached = _part(file, form, since, left, zone, copied, newer)
        parts.append(part)
        if reached:
            break
        if left is not None:
            left -= holds
            if left < 0:
                report_unread(
                    Unread(name, f"only the last {shown(max_bytes or 0)} were read", partly=True)
                )
                break
    return parts


def _part(
    file: OpenLog,
    form: Format,
    since: float,
    left: int | None,
    zone: tzinfo | None,
    copied: bool,
    newer: LogClock | None,
) -> tuple[RotatedPart, bool]:
    packed = isinstance(file, CompressedLog)
    if form.utc:
        read_by = LogClock(UTC)
    else:
        last = None if packed else last_time(file, form.local)
        read_by = clock_module.clock_of_file(last, None if copied else file.written, zone, newer)

    def moment(line: bytes) -> float | None:
        shows = form.local(line)
        return None if shows is None else read_by.latest(shows)

    if packed:
        return RotatedPart(file, 0, read_by), bool(starts_before(file, 0, moment, since))
    floor = 0 if left is None else max(0, file.size - left)
    start, reached = find_start(file, moment, since, floor)
    if read_by.offset is None:
        read_by.settle(_shown(file, start, form), file.written)
    return RotatedPart(file, start, read_by), reached


def _shown(file: OpenLog, start: int, form: Format) -> Iterator[float]:
    for _, lines in blocks(file, start, _FEW):
        for line in lines:
            if (shows := form.local(line)) is not None:
                yield shows


SLACK = 60.0
"""Seconds by which lines may be out of order, because several processes write one file."""
_LOOK = 8 * 1024
_LONGEST_LOOK = 64 * 1024
_STEP = 64 * 1024
_LAST = 1024 * 1024

Moment = Callable[[bytes], float | None]
"""Parses when a line was written; None for a line without a time."""


class WindowStart(NamedTuple):
    """The position from which to read."""

    offset: int
    """The start of a line, or the end of the file."""
    has_older_lines: bool
    """Whether there are older lines before it; if not, the window may start in an older file."""


def find_start(file: OpenLog, moment: Moment, since: float, floor: int = 0) -> WindowStart:
    """Return where the lines since then start, but not before `floor`."""
    inside, before = file.size, -1
    step = _STEP
    while before < 0:
        position = max(floor, file.size - step)
        step *= 2
        if starts_before(file, position, moment, since):
            # The clock may have been wrong for a while: what is further back must agree.
            further = max(floor, file.size - step)
            if further == position or starts_before(file, further, moment, since) is not False:
                before = position
                break
        inside = position
        if position == floor:
            return WindowStart(_aligned(file, floor), False)
    while inside - before > _STEP:
        middle = (inside + before) // 2
        if starts_before(file, middle, moment, since):
            before = middle
        else:
            inside = middle
    return WindowStart(_aligned(file, before), True)


def last_time(file: OpenLog, moment: Moment) -> float | None:
    """Return the time of the last line that has one."""
    length = _LOOK
    while True:
        start = max(0, file.size - length)
        for line in reversed(file.read(start, length).split(b"\n")):
            if (at := moment(line.lstrip(b"\0"))) is not None:
                return at
        if start == 0 or length >= _LAST:
            return None
        length *= 8


def starts_before(file: OpenLog, position: int, moment: Moment, since: float) -> bool | None:
    """Tell whether the first dated line from here is before the window; None if none is near."""
    length = _LOOK
    while length <= _LONGEST_LOOK:
        data = file.read(position, length)
        if data and len(data) == data.count(0) and (past := file.past_hole(position)) > position:
            position = past - 1
            data = file.read(position, length)
        for line in data.split(b"\n")[1 if position else 0 :]:
            if (at := moment(line.lstrip(b"\0"))) is not None:
                return at < since - SLACK
        if len(data) < length:
            return None
        length *= 8
    return None


def _aligned(file: OpenLog, position: int) -> int:
    """Return the start of the first line from here."""
    if position == 0:
        return 0
    return min(next_line(file, position - 1, _LONGEST_LOOK), file.size)
