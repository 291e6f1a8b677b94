"""Reduces a report to what the history keeps of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from hermes_doctor.examination.condition import Condition, condition_of
from hermes_doctor.history import moments
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import Finding, Report, Severity
from hermes_doctor.redaction import clean

LONGEST_TITLE, LONGEST_SUBJECT = 120, 160
"""Characters that are kept, so that a year stays small."""
OPTIONS = frozenset({"--deep", "--network"})
"""Options with which a check finds more."""
STEP = 600
"""The start of a process is derived from the clock and varies by a second, so it is rounded."""
BROKEN = "plugin:"
"""How the result of a plugin that could not be loaded is named."""

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
    loaded: frozenset[str]
    """The checks that there are, as far as they were asked for."""
    looked: frozenset[str]
    """Checks among them that ran and looked at everything."""
    codes: frozenset[str] | None
    """The codes that were looked for; None for all."""
    hermes: str | None
    gateways: tuple[RunningGateway, ...] | None
    """The one that was started last; None if the processes could not be read."""
    options: frozenset[str] = frozenset()
    """Those of OPTIONS that the check had."""
    identity: str = ""
    """Which folder the home was; it may be gone when this is written."""

    def differs(self, other: Observation) -> bool:
        """Whether anything but the time differs."""
        return self._content() != other._content()

    def digest(self) -> str:
        """A text that is equal for observations that differ only in their time."""
        import hashlib
        import json

        return hashlib.sha256(json.dumps(self._content()).encode()).hexdigest()

    def _content(self) -> list[object]:
        """Everything but the time."""
        running = None
        if self.gateways is not None:
            running = [(one.pid, one.started // STEP) for one in self.gateways]
        return [
            self.condition,
            sorted((*key, *one) for key, one in self.findings.items()),
            *(sorted(one) for one in (self.loaded, self.looked, self.options)),
            None if self.codes is None else sorted(self.codes),
            self.hermes,
            running,
            self.identity,
        ]

    def may_end(self, code: str, check: str, options: str) -> bool:
        """Whether a finding that is missing here is gone: it was looked for, and as closely."""
        wanted = self.codes is None or code in self.codes
        return wanted and check in self.looked and self.options.issuperset(options.split())

    def has_given_up(self, code: str, last_seen: int) -> bool:
        """Whether nobody looks for a code any more: it was dropped, or is skipped for a day."""
        dropped = self.condition is not None and self.codes is not None and code not in self.codes
        return dropped and self.at - last_seen > moments.DAY

    def knows(self, check: str) -> bool:
        """Whether this check still exists, as far as this observation can tell."""
        partial = self.condition is None or not self.loaded
        broken = any(id.startswith(BROKEN) for id in self.loaded)
        return partial or broken or check in self.loaded


def observe(report: Report, at: datetime, codes: frozenset[str] | None = None) -> Observation:
    """What the history keeps of a report; `codes` are those that were looked for.

    A finding that config.toml switches off is kept too: it is there, only not reported.
    """
    findings: dict[Key, SeenFinding] = {}
    off = [one for one in report.turned_down if codes is None or one.code in codes]
    for one in (*_worst_first(report.findings), *_worst_first(off)):
        seen = SeenFinding(one.severity, stored_text(one.title), stored_text(one.check))
        findings.setdefault(stored_key(one.code, one.subject), seen)
    gateways = None
    if report.gateways is not None:
        running = sorted(report.gateways, key=lambda one: (one.started_at, one.pid))
        gateways = tuple(
            RunningGateway(one.pid, moments.to_seconds(one.started_at)) for one in running[-1:]
        )
    return Observation(
        at=moments.to_seconds(at),
        condition=condition_of(report) if report.complete else None,
        findings=findings,
        loaded=frozenset(stored_text(check.id) for check in report.checks),
        looked=frozenset(stored_text(check.id) for check in report.checks if check.has_looked),
        codes=codes,
        hermes=stored_text(report.hermes_version) if report.hermes_version else None,
        gateways=gateways,
        options=OPTIONS.intersection(report.options.split()),
    )


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: one.severity.rank)
