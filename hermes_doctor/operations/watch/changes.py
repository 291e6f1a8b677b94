"""Compares a round with the previous one: which findings are new, worse, better or gone.

A finding is gone only when its check ran and did not report it. While the check has no answer, its
last finding is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Finding, Report, Severity, Status
from hermes_doctor.diagnosis.examination.condition import is_doubtful
from hermes_doctor.operations.watch.events import EventKind, Key, WatchEvent

BLIND_AFTER = 3
"""Rounds without an answer before the watch reports it: a busy machine may be slow once."""


class CurrentFinding(NamedTuple):
    """A current finding, and in how many rounds it was seen."""

    severity: Severity
    title: str
    check: str
    rounds: int
    """Rounds in a row as a problem, or as an info; 0 while its check has no answer."""
    error_rounds: int = 0
    """Rounds in a row in which it was an error or worse."""
    muted: bool = False


class RoundChanges(NamedTuple):
    """The result of comparing one round with the previous one."""

    current: dict[Key, CurrentFinding]
    unanswered: dict[str, int]
    """By check: for how many rounds in a row it has had no answer."""
    events: list[WatchEvent]


def compare(
    before: Mapping[Key, CurrentFinding],
    unanswered: Mapping[str, int],
    report: Report,
    at: datetime,
    max_rounds: int,
) -> RoundChanges:
    """Compare a report with the previous round; the counts of rounds stop at `max_rounds`."""
    found = _by_key(report.findings)
    doubtful = {c.id for c in report.checks if is_doubtful(c)}
    asked = {c.id for c in report.checks}
    after: dict[Key, CurrentFinding] = {}
    events: list[WatchEvent] = []
    for key, finding in found.items():
        old = before.get(key)
        after[key] = _counted(old, finding, max_rounds)
        kind = _kind(old, finding)
        if kind is not None:
            events.append(finding_event(report, finding, kind, at, old.severity if old else None))
    for key, old in before.items():
        if key in found:
            continue
        if old.check in doubtful or old.check not in asked:
            after[key] = old._replace(rounds=0, error_rounds=0)
        else:
            code, subject = key
            events.append(
                WatchEvent(
                    EventKind.GONE,
                    at,
                    old.title,
                    code=code,
                    subject=subject,
                    was=old.severity,
                    muted=old.muted,
                )
            )
    open_now = [c for c in report.checks if c.status in (Status.UNKNOWN, Status.CRASHED)]
    counts = {c.id: min(unanswered.get(c.id, 0) + 1, BLIND_AFTER) for c in open_now}
    for check in open_now:
        if counts[check.id] == BLIND_AFTER and unanswered.get(check.id, 0) < BLIND_AFTER:
            text = f"could not check {check.id}: {check.reason}"
            if check.status is Status.CRASHED:
                text = f"the check {check.id} crashed: {check.reason}"
            events.append(WatchEvent(EventKind.BLIND, at, text))
    for id, count in unanswered.items():
        if count >= BLIND_AFTER and id not in counts:
            events.append(WatchEvent(EventKind.SEES, at, f"the check {id} works again"))
    return RoundChanges(after, counts, events)


def finding_event(
    report: Report,
    finding: Finding,
    kind: EventKind,
    at: datetime,
    previous_severity: Severity | None = None,
) -> WatchEvent:
    """Turn a finding into an event."""
    offer = report.offer(finding)
    return WatchEvent(
        kind,
        at,
        finding.title,
        severity=finding.severity,
        code=finding.code,
        subject=finding.subject,
        was=previous_severity if previous_severity is not finding.severity else None,
        since=finding.since,
        command=offer.command if offer else f"hermes-doctor explain {finding.code}",
        muted=finding.muted,
    )


def _by_key(findings: Iterable[Finding]) -> dict[Key, Finding]:
    """Map each key to its worst finding."""
    found: dict[Key, Finding] = {}
    for finding in sorted(findings, key=lambda one: one.severity.rank):
        found.setdefault(finding.key, finding)
    return found


def _counted(old: CurrentFinding | None, finding: Finding, max_rounds: int) -> CurrentFinding:
    """Count this round; a change between warning and error does not restart the count."""
    worth = finding.severity is not Severity.INFO
    before = old is not None and (old.severity is not Severity.INFO) is worth
    seen = min(max_rounds, (old.rounds if old and before else 0) + 1)
    grave = (
        min(max_rounds, (old.error_rounds if old else 0) + 1) if is_grave(finding.severity) else 0
    )
    return CurrentFinding(
        finding.severity, finding.title, finding.check, seen, grave, finding.muted
    )


def is_grave(severity: Severity) -> bool:
    """Whether the finding is severe enough to start or stop the gateway for it."""
    return severity.rank <= Severity.ERROR.rank


def _kind(old: CurrentFinding | None, finding: Finding) -> EventKind | None:
    if old is None:
        return EventKind.NEW
    if old.muted and not finding.muted and finding.severity.rank >= old.severity.rank:
        return EventKind.UNMUTED
    if finding.muted and not old.muted:
        return EventKind.MUTED
    if finding.severity is old.severity:
        return None
    return EventKind.WORSE if finding.severity.rank < old.severity.rank else EventKind.BETTER
