"""Mutes: problems that the operator knows and does not want to hear of for a while.

As in ceph, a mute ends when the problem disappears (unless it is sticky), gets worse or gains a
subject, and when its time is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.model import Finding, Report, Severity

SLACK = timedelta(minutes=5)
"""By how much the clocks of those who make and read a mute may differ."""


class Mute(NamedTuple):
    """One mute of one home."""

    home: str
    code: str
    subject: str | None
    """None mutes all subjects that the code had."""
    severities: Mapping[str, Severity] | None
    """How severe each subject was; None if the problem was not there, so any subject counts."""
    worst: Severity
    """The worst severity that is muted."""
    checks: tuple[str, ...]
    """The checks that found the problem."""
    at: datetime
    until: datetime | None = None
    sticky: bool = False
    because: str = ""
    options: tuple[str, ...] = ()
    """--deep or --network, if the problem was found with them."""

    @property
    def id(self) -> str:
        """What identifies it, also if another one has the same name later."""
        return f"{self.home} {self.name} {self.at.isoformat()}"

    @property
    def name(self) -> str:
        """How the operator names it: CODE or CODE/SUBJECT."""
        return self.code if self.subject is None else f"{self.code}/{self.subject}"

    def concerns(self, finding: Finding) -> bool:
        """Whether it was made for findings like this one."""
        return finding.code == self.code and self.subject in (None, finding.subject)

    def is_over(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.until is not None and now >= self.until

    def why_ended(self, report: Report, now: datetime) -> str | None:
        """Why it mutes nothing any more; None if it is valid."""
        if self.is_over(now):
            return "its time is over"
        if self.at - now > SLACK:
            return "it is dated in the future: the clock was set back"
        findings = [one for one in report.findings if self.concerns(one)]
        for finding in findings:
            before = self.worst if self.severities is None else self.severities.get(finding.subject)
            if before is None:
                return f"there is another subject, {finding.subject or 'none'}"
            if finding.severity.rank < before.rank:
                return "the problem got worse"
        if not findings and not self.sticky and self._was_looked_for(report):
            return "the problem is gone"
        return None

    def _was_looked_for(self, report: Report) -> bool:
        """Whether all checks that had found it looked again, as closely, at everything."""
        ended = {check.id: check for check in report.checks}
        return set(self.options) <= set(report.options.split()) and all(
            id in ended and ended[id].has_looked for id in self.checks
        )

    def updated(self, report: Report) -> Mute:
        """Forget subjects that are gone: if one returns, it counts as new and ends the mute.

        A mute that was made before the problem was there learns the subjects of the problem.
        """
        found = _by_subject([finding for finding in report.findings if self.concerns(finding)])
        if self.severities is None:
            return self._replace(severities=found) if found else self
        if self.sticky or not found or not self._was_looked_for(report):
            return self
        left = {name: one for name, one in self.severities.items() if name in found}
        return self._replace(severities=left)


def made_for(
    findings: Sequence[Finding],
    home: str,
    code: str,
    subject: str | None,
    *,
    at: datetime,
    until: datetime | None,
    sticky: bool,
    because: str,
    options: tuple[str, ...] = (),
) -> Mute:
    """A mute of these findings; without any, it is for whatever is found later."""
    worst = min((finding.severity for finding in findings), key=lambda one: one.rank, default=None)
    if worst is None:
        worst = Severity.ERROR if until is None else Severity.CRITICAL
    return Mute(
        home,
        code,
        subject,
        _by_subject(findings) if findings else None,
        worst,
        tuple(sorted({one.check for one in findings})),
        at,
        until,
        sticky,
        because,
        options,
    )


def _by_subject(findings: Sequence[Finding]) -> dict[str, Severity]:
    """The worst severity of each subject."""
    milder_first = sorted(findings, key=lambda one: -one.severity.rank)
    return {finding.subject: finding.severity for finding in milder_first}


def apply(
    report: Report,
    mutes: Iterable[Mute],
    now: datetime | None = None,
    changes: Mapping[str, datetime] = EMPTY,
) -> Report:
    """Mark the findings that are muted, and say since when.

    `changes` are the times at which the files of the mutes last changed, by the ids of the mutes.
    """
    now = now or datetime.now(UTC)
    own = [mute for mute in mutes if mute.home == str(report.home)]
    valid = [one for one in own if one.why_ended(report, now) is None]
    if not valid:
        return report
    marked = tuple(
        finding._replace(muted=any(one.concerns(finding) for one in valid))
        for finding in report.findings
    )
    since = {
        finding.key: max(max(one.at, changes.get(one.id, one.at)) for one in found)
        for finding in marked
        if (found := [one for one in valid if one.concerns(finding)])
    }
    return report._replace(findings=marked, muted_since=since)


def ended(report: Report, mutes: Iterable[Mute], now: datetime) -> list[tuple[Mute, str]]:
    """The mutes of this home that have ended, and why."""
    own = [mute for mute in mutes if mute.home == str(report.home)]
    return [(one, why) for one in own if (why := one.why_ended(report, now))]
