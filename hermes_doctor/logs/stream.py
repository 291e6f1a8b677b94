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
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.logs import hermes, rotated, small_files
from hermes_doctor.logs.copied import is_copied, latest_time
from hermes_doctor.logs.duplicates import without_duplicates
from hermes_doctor.logs.entry import LogEntry, Unread
from hermes_doctor.logs.formats import LEVELS, Format, LogWindow, Wanted
from hermes_doctor.logs.line_numbers import SourceFiles
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, list_folder

if TYPE_CHECKING:
    from hermes_doctor.supervisors.unit import Unit

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
    "logs/gateway-exit-diag.log": small_files.DIARY,
    "logs/gateway-shutdown-watchdog.log": small_files.DIARY,
    "logs/gateway-startup-watchdog.log": small_files.DIARY,
    "logs/gateway-shutdown-diag.log": small_files.ENDING,
    "gateway-starts.log": small_files.STARTS,
    "logs/update.log": small_files.UPDATE,
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
            self.add_series(folder, names, hermes.FORMAT)
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
        from hermes_doctor.logs import undated

        name = self._home.name_of(path)
        note = self._places.file_recorder({name: path})
        self.add(undated.entries(path, name, self._span, self._report_unread, note))


def read(
    home: Home,
    *,
    since: float,
    records_since: float | None = None,
    errors_since: float | None = None,
    until: float | None = None,
    max_bytes: int | None = QUICK,
    wanted: Wanted | None = None,
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
    span = LogWindow(since, latest_time(home, zone, copied) if until is None else until, wanted)
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
        _add_unit(reading, unit, span, max_bytes)
    return reading


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
    from hermes_doctor.logs import s6

    try:
        reading.add_series(folder, rotated.archives(list_folder(folder)), s6.FORMAT)
    except CouldNotLook as why:
        reading.unread.append(Unread(f"logs/gateways/{folder.name}", str(why)))


def _add_unit(reading: LogStream, unit: Unit, span: LogWindow, max_bytes: int | None) -> None:
    from hermes_doctor.supervisors.unit import DOCKER

    if unit.systemd:
        from hermes_doctor.logs import journald

        reading.add(journald.entries(unit, span, max_bytes, reading.unread.append))
    elif unit.kind == DOCKER:
        from hermes_doctor.logs import containers

        reading.add(containers.entries(unit, span, max_bytes, reading.unread.append))
