"""Reduces a report to what the history keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from hermes_doctor.examination.condition import Condition, condition_of, is_doubtful
from hermes_doctor.history import moments
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import Report, Severity
from hermes_doctor.redaction import clean

LONGEST_TITLE, LONGEST_SUBJECT = 120, 160
"""Characters that are kept, so that a year stays small."""

Key = tuple[str, str]


def stored_text(text: str, longest: int = LONGEST_TITLE) -> str:
    """A text as the history keeps it: what cannot be printed or stored is replaced, long is cut."""
    return clean(text)[:longest]


def stored_key(code: str, subject: str) -> Key:
    """The code and subject of a finding as the history keeps them."""
    return stored_text(code), stored_text(subject, LONGEST_SUBJECT)


class SeenFinding(NamedTuple):
    """A finding as the history keeps it."""

    severity: Severity
    title: str
    check: str


class RunningGateway(NamedTuple):
    """The gateway of a home."""

    pid: int
    started: int


class Observation(NamedTuple):
    """What one check of a home found."""

    at: int
    condition: Condition | None
    """None if only some checks ran, which says nothing about the bot as a whole."""
    findings: Mapping[Key, SeenFinding]
    asked: frozenset[str]
    """The checks that ran."""
    doubtful: frozenset[str]
    """Checks among them that may have missed something."""
    codes: frozenset[str] | None
    """The codes that were looked for; None for all."""
    hermes: str | None
    gateways: tuple[RunningGateway, ...] | None
    """The one that was started last; None if the processes could not be read."""
    identity: str = ""
    """Which folder the home was; it may be gone when this is written."""

    def differs(self, other: Observation) -> bool:
        """Whether anything but the time differs."""
        return self._replace(at=0) != other._replace(at=0)

    def digest(self) -> str:
        """A text that is equal for observations that differ only in their time.

        The start of a process is derived from the clock and varies by a second, so it is rounded.
        """
        import hashlib
        import json

        said = (
            self.condition,
            sorted((*key, *one) for key, one in self.findings.items()),
            sorted(self.asked),
            sorted(self.doubtful),
            sorted(self.codes or ()),
            self.hermes,
            None
            if self.gateways is None
            else [(one.pid, one.started // 600) for one in self.gateways],
            self.identity,
        )
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def may_end(self, code: str, check: str) -> bool:
        """Whether a finding that is missing here is gone."""
        looked = self.codes is None or code in self.codes
        return looked and check in self.asked and check not in self.doubtful


def observe(report: Report, at: datetime, codes: frozenset[str] | None = None) -> Observation:
    """What the history keeps of a report; `codes` are those that were looked for."""
    findings: dict[Key, SeenFinding] = {}
    for one in sorted(report.findings, key=lambda finding: finding.severity.rank):
        seen = SeenFinding(one.severity, stored_text(one.title), stored_text(one.check))
        findings.setdefault(stored_key(one.code, one.subject), seen)
    gateways = None
    if report.gateways is not None:
        running = sorted(report.gateways, key=lambda one: (one.started_at, one.pid))
        gateways = tuple(
            RunningGateway(one.pid, moments.whole(one.started_at)) for one in running[-1:]
        )
    return Observation(
        at=moments.whole(at),
        condition=condition_of(report) if report.complete else None,
        findings=findings,
        asked=frozenset(stored_text(check.id) for check in report.checks),
        doubtful=frozenset(stored_text(check.id) for check in report.checks if is_doubtful(check)),
        codes=codes,
        hermes=stored_text(report.hermes_version) if report.hermes_version else None,
        gateways=gateways,
    )
