"""The events that a watch reports: one for each change."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.model import Severity
from hermes_doctor.core.redaction import clean

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
    from hermes_doctor.hermes.knowledge.releases import load_knowledge

    platform = load_knowledge("platforms")["platforms"].get(subject)
    if platform and platform["label"] in event.title:
        return event.title
    return f"{subject}: {event.title}"
