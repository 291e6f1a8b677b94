"""Everything that was written down about a gateway, as one stream in the order of time.

    reading = read(home, since=time.time() - 7200)
    for entry in reading:
        …
    reading.unread          # what could not be read, once the stream has ended
    reading.where(entry)    # logs/gateway.log:8812

The order inside one file is that of the file, even where its clock went back. A level is what the
source says; words without one (a plain line of output, a record of the journal without priority)
are INFO, the beginning of a traceback is ERROR. What systemd says in the journal has the logger
`systemd`; that a process exited with a failure is INFO there, since it is a notice.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.logs import hermes, records, rotated, s6, undated
from hermes_doctor.logs.duplicates import once
from hermes_doctor.logs.entry import Entry, Unread
from hermes_doctor.logs.formats import LEVELS, Format, Span, Wanted
from hermes_doctor.logs.line_numbers import Places
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, listing

if TYPE_CHECKING:
    from hermes_doctor.supervisors.unit import Unit

QUICK = MEGABYTE
"""What a quick look reads of one log."""
_LOGS = ("gateway.log", "errors.log")
"""All of the gateway's own loggers from INFO on, and of all others from WARNING on."""
_SERIOUS = ("WARNING", "ERROR", "CRITICAL")
WHOLE = "agent.log"
"""Everything, most of it a second time."""
GATEWAY = ("gateway", "hermes_plugins", "plugins.platforms")
"""How the loggers begin that have a log of their own."""
_RECORDS = {
    "logs/gateway-exit-diag.log": records.DIARY,
    "logs/gateway-shutdown-watchdog.log": records.DIARY,
    "logs/gateway-shutdown-diag.log": records.ENDING,
    "gateway-starts.log": records.STARTS,
    "logs/update.log": records.UPDATE,
}
_UNDATED = ("gateway.error.log", "gateway-stdio.log")


class Reading:
    """One pass over the sources. It can be iterated once."""

    def __init__(self, home: Home, span: Span, most: int | None, zone: tzinfo | None) -> None:
        self.unread: list[Unread] = []
        """What could not be read; complete when the iteration has ended."""
        self.covered: dict[str, float] = {}
        """From when on a log is all there, by its name; known once the iteration has begun."""
        self._tell = self.unread.append
        self._home = home
        self._span = span
        self._most = most
        self._zone = zone
        self._places = Places()
        self._streams: list[Iterator[Entry]] = []
        self._merged: Iterator[Entry] | None = None
        self._doubled: Container[str] = ()

    def __iter__(self) -> Iterator[Entry]:
        if self._merged is None:
            self._merged = heapq.merge(*self._streams)
            if self._doubled:
                self._merged = once(self._merged, self._doubled)
        return self._merged

    def where(self, entry: Entry) -> str:
        """Where an entry stands: `logs/gateway.log:8812`."""
        return self._places.where(entry)

    def reach(self, since: float) -> None:
        """How far back the sources go that are added from now on."""
        self._span = self._span._replace(since=since)

    def add(self, stream: Iterator[Entry]) -> None:
        """One more source, oldest first."""
        self._streams.append(stream)

    def add_logs(self, folder: Path, logs: Sequence[Sequence[str]], whole: bool) -> None:
        """Hermes' own logs, each with its files; what stands in two of them is told once.

        Of the one that holds everything only that is taken which stands in no other.
        """
        asked = self._span
        for names in logs:
            rest = names[0] == WHOLE and not whole
            self._span = asked._replace(wanted=partial(_alone, asked.wanted)) if rest else asked
            self.add_series(folder, names, hermes.FORMAT)
        self._span = asked
        if len(logs) > 1:
            self._doubled = LEVELS if whole else _SERIOUS

    def add_series(self, folder: Path, names: Sequence[str], form: Format) -> None:
        """A log with what it was rotated into, newest first."""
        files = [(folder / name, self._home.name_of(folder / name)) for name in names]
        note = self._places.noting({name: path for path, name in files})
        self.add(
            rotated.entries(
                *(files, form, self._span),
                covers=partial(self.covered.__setitem__, files[0][1]),
                most=self._most,
                zone=self._zone,
                tell=self._tell,
                note=note,
            )
        )

    def add_undated(self, path: Path) -> None:
        """Output that was taken down without times."""
        name = self._home.name_of(path)
        note = self._places.noting({name: path})
        self.add(undated.entries(path, name, self._span, self._tell, note))


def read(
    home: Home,
    *,
    since: float,
    records_since: float | None = None,
    until: float | None = None,
    most: int | None = QUICK,
    wanted: Wanted | None = None,
    whole: bool = False,
    zone: tzinfo | None = None,
    units: Iterable[Unit] = (),
) -> Reading:
    """What was written about this home since then.

    The small records of starts, ends and updates may be asked for from further back.
    `most` bounds the bytes of one log, the newest first; None reads all of the window. `whole`
    takes every line from the log that holds everything, instead of what is only there. `zone` is
    that of the gateway's process, if one runs (`logs.zones`). `units` are asked for what their
    manager keeps: a command each.
    """
    span = Span(since, float("inf") if until is None else until, wanted)
    reading = Reading(home, span, most, zone)
    folder = home / "logs"
    try:
        present = listing(folder)
    except CouldNotLook as why:
        reading.unread.append(Unread("logs", str(why)))
        present = [*_LOGS, WHOLE]  # what may not be listed may still be opened by its name
    logs = [
        rotated.names(name, present)
        for name in (*_LOGS, WHOLE)
        if any(one.startswith(name) for one in present)
    ]
    reading.add_logs(folder, logs, whole)
    reading.reach(records_since if records_since is not None else since)
    for name, form in _RECORDS.items():
        reading.add_series((home / name).parent, [Path(name).name], form)
    reading.reach(since)
    for name in _UNDATED:
        reading.add_undated(folder / name)
    for slot in _slots(home, present, reading.unread):
        _add_slot(reading, slot)
    for unit in units:
        _add_unit(reading, unit, span, most)
    return reading


def _alone(wanted: Wanted | None, level: str, logger: str) -> bool:
    """Whether an entry of the log that holds everything stands in no other, and is asked for."""
    if level in _SERIOUS or logger.startswith(GATEWAY):
        return False
    return wanted is None or wanted(level, logger)


def _slots(home: Home, present: Sequence[str], unread: list[Unread]) -> list[Path]:
    """The folders in which s6-log keeps what this home's gateway prints."""
    if home.profile:
        return [home.path.parent.parent / "logs" / "gateways" / home.profile]
    if "gateways" not in present:
        return []
    folder = home / "logs" / "gateways"
    try:
        others = {path.name for path in home.profiles()}
        return [folder / name for name in listing(folder) if name not in others]
    except CouldNotLook as why:
        unread.append(Unread("logs/gateways", str(why)))
        return []


def _add_slot(reading: Reading, folder: Path) -> None:
    try:
        reading.add_series(folder, rotated.archives(listing(folder)), s6.FORMAT)
    except CouldNotLook as why:
        reading.unread.append(Unread(f"logs/gateways/{folder.name}", str(why)))


def _add_unit(reading: Reading, unit: Unit, span: Span, most: int | None) -> None:
    from hermes_doctor.supervisors.unit import DOCKER

    if unit.systemd:
        from hermes_doctor.logs import journald

        reading.add(journald.entries(unit, span, most, reading.unread.append))
    elif unit.kind == DOCKER:
        from hermes_doctor.logs import containers

        reading.add(containers.entries(unit, span, most, reading.unread.append))
