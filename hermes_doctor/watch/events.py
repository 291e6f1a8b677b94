"""What a watch has to tell: one event each time that something is not as it was."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hermes_doctor.model import Severity
from hermes_doctor.redaction import clean

SCHEMA = "hermes-doctor/event/1"
Key = tuple[str, str]


class Kind(enum.StrEnum):
    """What happened."""

    START = "start"
    FOUND = "found"
    """It was there when the watch began."""
    NEW = "new"
    WORSE = "worse"
    BETTER = "better"
    GONE = "gone"
    BLIND = "blind"
    """A question has had no answer for some rounds."""
    SEES = "sees"
    AWAY = "away"
    """The home is not there, or does not answer."""
    BACK = "back"
    GAP = "gap"
    """The machine slept, or its clock was set."""
    HEALED = "healed"
    FAILED = "failed"
    HELD = "waits"
    """A repair is due and is not done now."""
    NOTE = "note"
    QUIET = "quiet"
    END = "end"


PRESENT = (Kind.FOUND, Kind.NEW, Kind.WORSE, Kind.BETTER)


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    kind: Kind
    at: datetime
    title: str
    severity: Severity | None = None
    code: str = ""
    subject: str = ""
    was: Severity | None = None
    """How bad it was before."""
    since: datetime | None = None
    command: str = ""
    """What to type now."""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The finding that it is about."""
        return self.code, self.subject

    @property
    def worst(self) -> Severity | None:
        """How bad it is, or was before it got better."""
        known = [one for one in (self.severity, self.was) if one is not None]
        return min(known, key=lambda one: one.rank, default=None)

    def sentence(self) -> str:
        """The event in one line, without its time."""
        level = f"{self.severity.value} " if self.severity else ""
        about = f"{self.code} " if self.code else ""
        return clean(f"{self.kind.value}: {level}{about}{named(self)}")

    def document(self, home: str) -> dict[str, Any]:
        """The event for programs."""
        return {
            "schema": SCHEMA,
            "time": self.at.isoformat(timespec="seconds"),
            "event": self.kind.value,
            "home": clean(home),
            "code": clean(self.code) or None,
            "subject": clean(self.subject) or None,
            "severity": self.severity.value if self.severity else None,
            "was": self.was.value if self.was else None,
            "title": clean(self.title),
            "since": self.since.isoformat(timespec="seconds") if self.since else None,
            "command": clean(self.command) or None,
            **self.more,
        }


def named(event: Event) -> str:
    """What it says, with its subject in front where the sentence does not name it."""
    subject = event.subject
    if not subject or subject in event.title:
        return event.title
    return f"{subject}: {event.title}"
