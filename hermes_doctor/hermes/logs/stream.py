"""Read everything that was recorded about a gateway as one stream in order of time.

    reading = read(home, since=time.time() - 7200)
    for entry in reading:
        …
    reading.unread          # what could not be read, once the stream has ended
    reading.where(entry)    # logs/gateway.log:8812

Within one file, the order of the lines is kept, even where its clock went back. The level is the
one of the source; text without a level (a plain line of output, a journal record without priority)
is INFO, and the start of a traceback is ERROR. Messages of systemd in the journal have the logger
`systemd`; a process that exited with a failure is INFO there, because it is a notice.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, list_folder
from hermes_doctor.hermes.logs import rotated
from hermes_doctor.hermes.logs.block_reader import BLOCK, CompressedLog, FileIdentity, OpenLog
from hermes_doctor.hermes.logs.copied import is_copied, latest_time
from hermes_doctor.hermes.logs.entry import (
    DIARY,
    ENDING,
    HERMES_LOG,
    LEVELS,
    STARTS,
    UPDATE,
    Format,
    LogEntry,
    LogWindow,
    Unread,
    Wanted,
    WantedSince,
)
from hermes_doctor.hermes.logs.rotated import ReportUnread

if TYPE_CHECKING:
    from hermes_doctor.hermes.supervisors.units import Unit


QUICK = MEGABYTE
"""Bytes of one log that a quick check reads."""
_ERRORS = "errors.log"
_LOGS = ("gateway.log", _ERRORS)
"""The gateway's own loggers from INFO on, and all others from WARNING on."""
_SERIOUS = ("WARNING", "ERROR", "CRITICAL")
COMPLETE_LOG = "agent.log"
"""Contains everything, most of it a second time."""
GATEWAY = ("gateway", "hermes_plugins", "plugins.platforms")
"""The prefixes of the loggers that have a log of their own."""
_RECORDS = {
    "logs/gateway-exit-diag.log": DIARY,
    "logs/gateway-shutdown-watchdog.log": DIARY,
    "logs/gateway-startup-watchdog.log": DIARY,
    "logs/gateway-shutdown-diag.log": ENDING,
    "gateway-starts.log": STARTS,
    "logs/update.log": UPDATE,
}
_UNDATED = (
    "gateway.error.log",
    "gateway-stdio.log",
    "dashboard.error.log",
    "dashboard-restart.log",
)


class LogStream:
    """One pass over all log sources, which can be iterated once."""

    def __init__(
        self,
        home: Home,
        span: LogWindow,
        max_bytes: int | None,
        zone: tzinfo | None,
        copied: bool,
    ) -> None:
        self.unread: list[Unread] = []
        """What could not be read; complete when the iteration has ended."""
        self.covered: dict[str, float] = {}
        """The time since which each log is complete, by name; known once iteration has started."""
        self._report_unread = self.unread.append
        self._home = home
        self._span = span
        self._max_bytes = max_bytes
        self._zone = zone
        self._copied = copied
        self._places = SourceFiles()
        self._streams: list[Iterator[LogEntry]] = []
        self._merged: Iterator[LogEntry] | None = None
        self._doubled: Container[str] = ()

    def __iter__(self) -> Iterator[LogEntry]:
        if self._merged is None:
            self._merged = heapq.merge(*self._streams)
            if self._doubled:
                self._merged = without_duplicates(self._merged, self._doubled)
        return self._merged

    def where(self, entry: LogEntry) -> str:
        """Return the position of an entry: `logs/gateway.log:8812`."""
        return self._places.where(entry)

    def set_since(self, since: float) -> None:
        """Set how far back the sources go that are added from now on."""
        self._span = self._span._replace(since=since)

    def add(self, stream: Iterator[LogEntry]) -> None:
        """Add a source whose entries are in order of time."""
        self._streams.append(stream)

    def add_logs(
        self, folder: Path, logs: Sequence[Sequence[str]], whole: bool, errors_since: float
    ) -> None:
        """Add Hermes' own logs; an entry that is in two of them is yielded once.

        From the log that contains everything, only entries that are in no other are taken. The log
        of warnings is read from further back if asked to, because it is short.
        """
        asked = self._span
        for names in logs:
            rest = names[0] == COMPLETE_LOG and not whole
            self._span = asked._replace(wanted=partial(_alone, asked.wanted)) if rest else asked
            if names[0] == _ERRORS:
                self._span = asked._replace(since=min(asked.since, errors_since))
            self.add_series(folder, names, HERMES_LOG)
        self._span = asked
        if len(logs) > 1:
            self._doubled = LEVELS if whole else _SERIOUS

    def add_series(self, folder: Path, names: Sequence[str], form: Format) -> None:
        """Add a log and its rotated files, newest first."""
        files = [(folder / name, self._home.name_of(folder / name)) for name in names]
        note = self._places.file_recorder({name: path for path, name in files})
        self.add(
            rotated.entries(
                *(files, form, self._span),
                covers=partial(self.covered.__setitem__, files[0][1]),
                max_bytes=self._max_bytes,
                zone=self._zone,
                copied=self._copied,
                report_unread=self._report_unread,
                note=note,
            )
        )

    def add_undated(self, path: Path) -> None:
        """Add output that was recorded without times."""
        from hermes_doctor.hermes.logs import output

        name = self._home.name_of(path)
        note = self._places.file_recorder({name: path})
        self.add(output.undated_entries(path, name, self._span, self._report_unread, note))


def read(
    home: Home,
    *,
    since: float,
    records_since: float | None = None,
    errors_since: float | None = None,
    until: float | None = None,
    max_bytes: int | None = QUICK,
    wanted: Wanted | None = None,
    wanted_since: WantedSince | None = None,
    whole: bool = False,
    zone: tzinfo | None = None,
    units: Iterable[Unit] = (),
) -> LogStream:
    """Return a stream of what was written about this home since then.

    The small records of starts, ends and updates may be requested from further back, and warnings
    from the log that has only them. `max_bytes`
    limits what is read of one log, the newest first; None reads the whole window. `whole` takes
    every line from the log that contains everything, instead of only what is in no other. `zone` is
    that of the gateway's process, if one runs (`logs.time_zones`). `units` are the units whose
    supervisor is asked for their output, with one command each.
    """
    copied = is_copied(home)
    span = LogWindow(
        since, latest_time(home, zone, copied) if until is None else until, wanted, wanted_since
    )
    reading = LogStream(home, span, max_bytes, zone, copied)
    folder = home / "logs"
    try:
        present = list_folder(folder)
    except CouldNotLook as why:
        reading.unread.append(Unread("logs", str(why)))
        # its files may be readable even if it cannot be listed
        present = [*_LOGS, COMPLETE_LOG, *_UNDATED]
    logs = [
        rotated.names(name, present)
        for name in (*_LOGS, COMPLETE_LOG)
        if any(one.startswith(name) for one in present)
    ]
    reading.add_logs(folder, logs, whole, since if errors_since is None else errors_since)
    reading.set_since(records_since if records_since is not None else since)
    for name, form in _RECORDS.items():
        reading.add_series((home / name).parent, [Path(name).name], form)
    reading.set_since(since)
    for name in _UNDATED:
        if name in present:
            reading.add_undated(folder / name)
    for slot in _slots(home, present, reading.unread):
        _add_slot(reading, slot)
    for unit in units:
        if is_asked(unit):
            reading.add(unit_entries(unit, span, max_bytes, reading.unread.append))
    return reading


def is_asked(unit: Unit) -> bool:
    """Tell whether a supervisor is asked for the output of a unit."""
    from hermes_doctor.hermes.supervisors.units import DOCKER

    return unit.systemd or unit.kind == DOCKER


def _alone(wanted: Wanted | None, level: str, logger: str) -> bool:
    """Tell whether an entry of the log with everything is in no other log, and is wanted."""
    if level in _SERIOUS or logger.startswith(GATEWAY):
        return False
    return wanted is None or wanted(level, logger)


def _slots(home: Home, present: Sequence[str], unread: list[Unread]) -> list[Path]:
    """Return the folders in which s6-log keeps the output of this home's gateway."""
    if home.profile:
        return [home.path.parent.parent / "logs" / "gateways" / home.profile]
    if "gateways" not in present:
        return []
    folder = home / "logs" / "gateways"
    try:
        others = {path.name for path in home.profiles()}
        return [folder / name for name in list_folder(folder) if name not in others]
    except CouldNotLook as why:
        unread.append(Unread("logs/gateways", str(why)))
        return []


def _add_slot(reading: LogStream, folder: Path) -> None:
    from hermes_doctor.hermes.logs import output

    try:
        reading.add_series(folder, rotated.archives(list_folder(folder)), output.S6_LOG)
    except CouldNotLook as why:
        reading.unread.append(Unread(f"logs/gateways/{folder.name}", str(why)))


def unit_entries(
    unit: Unit, span: LogWindow, max_bytes: int | None, report_unread: ReportUnread
) -> Iterator[LogEntry]:
    """Yield what the supervisor of a unit keeps of its output; see `is_asked`."""
    if unit.systemd:
        from hermes_doctor.hermes.logs import supervisor_output

        return supervisor_output.journal_entries(unit, span, max_bytes, report_unread)
    from hermes_doctor.hermes.logs import supervisor_output

    return supervisor_output.container_entries(unit, span, max_bytes, report_unread)


FAR = 64 * MEGABYTE
"""Lines are counted up to this offset; beyond it the byte offset is shown."""


class SourceFiles:
    """The files that entries were read from, by the names they had then."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[Path, FileIdentity]] = {}
        self._counted: dict[str, tuple[int, int]] = {}

    def file_recorder(self, paths: Mapping[str, Path]) -> rotated.NoteFile:
        """Return a callback that records which file had one of these names when it was read."""
        files = self._files

        def note(name: str, place: FileIdentity) -> None:
            files[name] = paths[name], place

        return note

    def where(self, entry: LogEntry) -> str:
        """`logs/gateway.log:8812`, `logs/gateway.log@7340021234`, or `journal`."""
        if entry.source not in self._files:
            return entry.source
        number = None if entry.offset > FAR else self._line(entry.source, entry.offset)
        return f"{entry.source}@{entry.offset}" if number is None else f"{entry.source}:{number}"

    def _line(self, name: str, offset: int) -> int | None:
        """Return the number of the line that starts there, counting from the last known one."""
        start, number = self._counted.get(name, (0, 1))
        if start > offset:
            start, number = 0, 1
        file = self._open(name)
        if file is None:
            return None
        try:
            while start < offset:
                data = file.read(start, min(BLOCK, offset - start))
                if not data:
                    return None  # it was truncated in the meantime
                number += data.count(b"\n")
                start += len(data)
        finally:
            file.close()
        self._counted[name] = start, number
        return number

    def _open(self, name: str) -> OpenLog | None:
        """Open the file that was read, even if it was rotated since."""
        path, place = self._files[name]
        try:
            names = rotated.names(path.name, list_folder(path.parent))
        except CouldNotLook:
            names = [path.name]
        for one in names:
            try:
                file = (CompressedLog if one.endswith(".gz") else OpenLog)(
                    path.with_name(one), name
                )
            except (FileNotFoundError, CouldNotLook):
                continue
            if file.identity == place:
                return file
            file.close()
        return None


_REMEMBERED = 10.0
"""Seconds for which an entry is remembered; files of one process agree to the millisecond."""
_MOST_REMEMBERED = 50_000


def without_duplicates(entries: Iterator[LogEntry], levels: Container[str]) -> Iterator[LogEntry]:
    """Yield the entries without those that another of Hermes' own files already had.

    Only entries of these levels are in several files. A line that occurs twice in one file was
    written twice.
    """
    told: dict[int, dict[str, int]] = {}
    order: deque[tuple[float, int]] = deque()
    for entry in entries:
        if entry.level not in levels or entry.kind != "log":
            yield entry
            continue
        key = hash(entry[:4])  # texts may be long, and there may be many
        counts = told.get(key)
        if counts is None:
            told[key] = {_log_name(entry.source): 1}
            order.append((entry.at, key))
            while order[0][0] < entry.at - _REMEMBERED or len(order) > _MOST_REMEMBERED:
                told.pop(order.popleft()[1], None)
            yield entry
            continue
        most = max(counts.values())
        name = _log_name(entry.source)
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > most:
            yield entry


def _log_name(source: str) -> str:
    """Return the name of the log that a rotated file belongs to."""
    return source.partition(".log")[0]


def last_entries(
    home: Home, name: str, max_bytes: int, *, since: float = 0.0, wanted: Wanted | None = None
) -> Iterator[LogEntry]:
    """Yield the entries in the last bytes, oldest first; CouldNotLook if they cannot be read."""
    folder = home / "logs"
    files = [(folder / one, f"logs/{one}") for one in rotated.names(name, list_folder(folder))]
    span = LogWindow(since, wanted=wanted)
    yield from rotated.entries(
        *(files, HERMES_LOG, span),
        max_bytes=max_bytes,
        copied=is_copied(home),
        report_unread=_refuse,
    )


def _refuse(unread: Unread) -> None:
    if not unread.partly:
        raise CouldNotLook(unread.why)
