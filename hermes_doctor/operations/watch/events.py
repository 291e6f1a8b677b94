"""The events that a watch reports, one for each change, and how they are printed."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.message import clock, count
from hermes_doctor.core.model import Report, RungState, Severity, Status
from hermes_doctor.core.outgoing import masked
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.terminal.lines import Line, Span, fit_encoding, row
from hermes_doctor.core.terminal.show import show
from hermes_doctor.hermes.knowledge.releases import load_knowledge

SCHEMA = "hermes-doctor/event/1"
Key = tuple[str, str]


class EventKind(enum.StrEnum):
    """What happened."""

    START = "start"
    FOUND = "found"
    """It was present when the watch started."""
    NEW = "new"
    WORSE = "worse"
    BETTER = "better"
    GONE = "gone"
    MUTED = "muted"
    UNMUTED = "unmuted"
    """Its mute has ended, and it is still there."""
    FLAPS = "flaps"
    """It keeps coming and going."""
    STABLE = "stable"
    """It has stopped flapping; the severity says in which state."""
    BLIND = "blind"
    """A check has had no answer for several rounds."""
    SEES = "sees"
    AWAY = "away"
    """The home is missing or does not answer."""
    BACK = "back"
    GAP = "gap"
    """The machine slept, or its clock was set."""
    HEALED = "healed"
    FAILED = "failed"
    HELD = "waits"
    """A repair is due but is not done now."""
    NOTE = "note"
    QUIET = "quiet"
    END = "end"


PRESENT = (
    EventKind.FOUND,
    EventKind.NEW,
    EventKind.WORSE,
    EventKind.BETTER,
    EventKind.MUTED,
    EventKind.UNMUTED,
)


class WatchEvent(NamedTuple):
    """One thing that happened."""

    kind: EventKind
    at: datetime
    title: str
    severity: Severity | None = None
    code: str = ""
    subject: str = ""
    was: Severity | None = None
    """The previous severity."""
    since: datetime | None = None
    command: str = ""
    """The command to type now."""
    extra: Mapping[str, Any] = EMPTY
    muted: bool = False
    """Whether the finding is muted, so that nobody is notified."""

    @property
    def key(self) -> Key:
        return self.code, self.subject

    @property
    def worst(self) -> Severity | None:
        """The worse of the current and the previous severity."""
        known = [severity for severity in (self.severity, self.was) if severity is not None]
        return min(known, key=lambda one: one.rank, default=None)

    def sentence(self) -> str:
        """The event in one line, without its time."""
        level = f"{self.severity.value} " if self.severity else ""
        about = f"{self.code} " if self.code else ""
        return clean(f"{self.kind.value}: {level}{about}{full_title(self)}")

    def document(self, home: str) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "time": self.at.isoformat(timespec="seconds"),
            "event": self.kind.value,
            "home": clean(home),
            "code": clean(self.code) or None,
            "subject": clean(self.subject) or None,
            "severity": self.severity.value if self.severity else None,
            "muted": self.muted,
            "was": self.was.value if self.was else None,
            "title": clean(self.title),
            "since": self.since.isoformat(timespec="seconds") if self.since else None,
            "command": clean(self.command) or None,
            **self.extra,
        }


def full_title(event: WatchEvent) -> str:
    """The title, preceded by the subject unless the title contains it or a platform's label."""
    subject = event.subject
    if not subject or subject in event.title:
        return event.title
    platform = load_knowledge("platforms")["platforms"].get(subject)
    if platform and platform["label"] in event.title:
        return event.title
    return f"{subject}: {event.title}"


MARGIN = 9
"""The width of a time of day and the space after it."""
_STYLES = {
    EventKind.GONE: "good",
    EventKind.FLAPS: "warning",
    EventKind.BETTER: "good",
    EventKind.HEALED: "good",
    EventKind.SEES: "good",
    EventKind.BACK: "good",
    EventKind.FAILED: "error",
    EventKind.AWAY: "error",
    EventKind.BLIND: "warning",
    EventKind.HELD: "warning",
    EventKind.NOTE: "warning",
    EventKind.GAP: "warning",
}
_PRIORITIES = {
    Severity.CRITICAL: 2,
    Severity.ERROR: 3,
    Severity.WARNING: 4,
    Severity.INFO: 6,
}


class EventPrinter:
    """Prints each event as soon as it happens."""

    def __init__(self, home: Path, *, json: bool = False, out: TextIO | None = None) -> None:
        self.home = str(home)
        self.json = json
        self.out = out if out is not None else sys.stdout
        self.journal = not json and into_journal(self.out)
        self._day = ""
        self._mute = False

    def __call__(self, event: WatchEvent) -> None:
        if self.out is None:  # closed by the caller
            return
        try:
            if self.json:
                print(json.dumps(masked(event.document(self.home))), file=self.out)
            elif self.journal:
                line = fit_encoding(clean(_whole(event)), self.out)
                print(f"<{priority(event)}>{line}", file=self.out)
            elif self.out.isatty():
                day, self._day = self._day, _time(event.at)[:10]
                show([row((self._day, "faint"))] if day != self._day else [], self.out)
                show(lines(event), self.out)
            else:
                show([row(f"{_time(event.at)} ", _whole(event))], self.out)
            self.out.flush()
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:  # a full disk, a terminal that is gone
            # Report once on stderr that events cannot be printed; the watch continues.
            if not self._mute and sys.stderr is not None:
                self._mute = True
                why = (getattr(error, "strerror", None) or type(error).__name__).lower()
                text = f"hermes-doctor: could not print events ({why}); the watch continues"
                with contextlib.suppress(OSError, ValueError):
                    print(text, file=sys.stderr, flush=True)  # noqa: T201


def trouble_line(message: str) -> str:
    """The JSON line that says why a watch could not run."""
    now = datetime.now(UTC)
    event = WatchEvent(EventKind.NOTE, now, message, severity=Severity.ERROR)
    return json.dumps(masked(event.document("")))


def lines(event: WatchEvent) -> Iterator[Line]:
    """The lines of an event for a terminal: what happened, and what to type."""
    style = _STYLES.get(event.kind, event.severity.value if event.severity else "strong")
    parts: list[str | Span] = [(f"{_time(event.at)[11:]} ", "faint"), (_kind(event), style)]
    if event.severity and event.kind in PRESENT:
        parts.append((f"{_level(event)}  ", event.severity.value))
    if event.code:
        parts.append((f"{event.code}  ", "strong"))
    yield row(*parts, full_title(event), _since(event), hang=MARGIN)
    if event.command and event.severity is not Severity.INFO:
        yield row("Next: ", (event.command, "command"), indent=MARGIN)


def _whole(event: WatchEvent) -> str:
    """The event in one line."""
    level = f"{_level(event)}  " if event.severity and event.kind in PRESENT else ""
    code = f"{event.code}  " if event.code else ""
    do = f"  [{event.command}]" if event.command else ""
    return f"{_kind(event)}{level}{code}{full_title(event)}{_since(event)}{do}"


def _kind(event: WatchEvent) -> str:
    """The kind, in a column of its own; the end of a muted problem is marked here."""
    gone = "muted " if event.muted and event.kind not in PRESENT else ""
    return f"{event.kind} ".ljust(7) + gone


def _level(event: WatchEvent) -> str:
    now = event.severity.value if event.severity else ""
    muted = "muted " if event.muted and event.kind is not EventKind.MUTED else ""
    return muted + (f"{event.was.value} → {now}" if event.was else now)


def _since(event: WatchEvent) -> str:
    return f" (since {clock(event.since, event.at)})" if event.since else ""


def _time(moment: datetime) -> str:
    try:
        return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{moment:%Y-%m-%d %H:%M:%S}"


def priority(event: WatchEvent) -> int:
    """The syslog priority of the event for journald."""
    style = _STYLES.get(event.kind)
    if event.severity and style != "good":
        return _PRIORITIES[event.severity]
    return 4 if style == "warning" else 5


def into_journal(out: TextIO | None) -> bool:
    """Whether the output goes to journald, which adds its own time to each line."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        st = os.fstat(out.fileno()) if out is not None else None
    except (OSError, ValueError):
        return False
    return st is not None and (device, inode) == (str(st.st_dev), str(st.st_ino))


def state_summary(report: Report) -> str:
    """The state of the home in a few words."""
    bad = {s: n for s, n in report.counts.items() if n and s is not Severity.INFO}
    if bad:
        parts = ", ".join(
            f"{number} critical" if severity is Severity.CRITICAL else count(number, severity.value)
            for severity, number in bad.items()
        )
        said = f"{count(sum(bad.values()), 'problem')} ({parts})"
    elif report.status is Status.UNKNOWN:
        said = "no problem found, but some checks could not run"
    else:
        said = "no problem found"
    muted = sum(finding.muted for finding in report.findings)
    said += f", {muted} muted" if muted else ""
    if report.gateways is None:
        return f"{said}; could not check the gateway"
    if not report.gateways:
        served = report.ladder and report.ladder[0].hold is RungState.OK
        return f"{said}; {report.ladder[0].what if served else 'gateway not running'}"
    return f"{said}; gateway running (process {report.gateways[0].pid})"
