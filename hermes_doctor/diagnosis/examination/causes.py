"""Merge findings that describe one problem, and attach each consequence to its cause.

Three things are done with the findings. A finding from a log is dropped if a check shows that the
problem is over; a finding about what it has stopped quotes it. Findings from a log and from a
check, or from two log rules, about the same problem are merged into one with all the evidence. And
a finding that follows from another gets it as its cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import CheckResult, Finding, Severity, Status

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.log_rules.rule import Explanation

MOST_EVIDENCE = 6
BY_CAUSE = "cause/"
"""How the names of rules begin that stand for a place and a cause, not for a line."""
FRESH = 600.0
"""Seconds for which a log line counts even if a check sees no problem now."""


_START_AGAIN = "Restart the gateway; what stopped it is over."
Platforms = Callable[[], Collection[str] | None]
"""Returns the platforms that are set up; None if that is unknown."""


def merge_and_explain(
    findings: Sequence[Finding],
    results: Sequence[CheckResult],
    explanations: Sequence[Explanation],
    platforms: Platforms = tuple,
    fresh_start: float | None = None,
) -> list[Finding]:
    """Drop outdated findings, merge duplicates and add causes.

    `fresh_start` is when the gateway that runs now was started, or when this tool last repaired or
    restored something, in seconds since 1970.
    """
    ended = {result.id: result.status for result in results}
    seen = [one for one in findings if not _told(one)]
    kept: list[Finding] = []
    over: list[Finding] = []
    for finding in findings:
        (over if _history(finding, ended, seen, fresh_start) else kept).append(finding)
    explained = add_causes(_folded(kept), explanations, platforms)
    return _with_ended_causes(explained, over, explanations, platforms)


def _history(
    finding: Finding,
    ended: Mapping[str, Status],
    seen: Sequence[Finding],
    fresh_start: float | None,
) -> bool:
    """Whether a finding from a log is outdated, because the checks it names passed.

    A skipped check says nothing. If a check could not run, the finding stays, and so does one
    whose last log line is recent: the problem may still go on, unless the gateway was started, or
    the home repaired, since. But if the line is about one database, the check that has read this
    file now is newer evidence than the line, and a problem of another database says nothing.
    """
    named = finding.data.get("unless_ok") or ()
    database = finding.data.get("database")
    last = finding.data.get("last")
    recent = isinstance(last, float) and time.time() - last < FRESH and last >= (fresh_start or 0.0)
    if recent and not database:
        return False
    statuses = {ended.get(id, Status.UNKNOWN) for id in named}
    if database and not any(one.check in named and file_of(one) == database for one in seen):
        statuses = {Status.OK if status is Status.PROBLEM else status for status in statuses}
    return Status.OK in statuses and statuses <= {Status.OK, Status.SKIPPED}


def file_of(finding: Finding) -> str:
    """The name of the file that a finding is about; every board is a `kanban.db`."""
    return finding.subject.rpartition("/")[2]


def _told(finding: Finding) -> bool:
    return "rule" in finding.data


def _folded(findings: Sequence[Finding]) -> list[Finding]:
    """Merge a finding from a log into the finding of a check about the same problem.

    A note of a check gets the severity and the words of a louder finding from a log, which shows
    what it leads to.
    Findings of two log rules about the same problem are merged into the more severe one.
    """
    seen = [finding for finding in findings if not _told(finding)]
    rest: list[Finding] = []
    for told in filter(_told, findings):
        place = next((n for n, one in enumerate(seen) if _same(one, told)), None)
        again = next((n for n, one in enumerate(rest) if one.key == told.key), None)
        if place is not None:
            seen[place] = _with(seen[place], told)
        elif again is not None:
            worse, milder = sorted((rest[again], told), key=lambda one: one.severity.rank)
            rest[again] = _with(worse, milder)
        else:
            rest.append(told)
    return [*seen, *rest]


def _same(seen: Finding, told: Finding) -> bool:
    """Whether a finding from a log is about the problem that a check has found.

    The subject of a finding about a cause is who reports it, such as a tool that cannot read the
    database. So the check that examines the thing itself decides.
    """
    if seen.code != told.code:
        return False
    if told.data["rule"].startswith(BY_CAUSE) and seen.check in told.data.get("unless_ok", ()):
        return True
    about = told.subject.split(" ")[0]
    return not about or about in seen.subject.split(" ") or seen.subject in ("", "gateway")


def _with(seen: Finding, told: Finding) -> Finding:
    evidence = (*seen.evidence, *told.evidence)[:MOST_EVIDENCE]
    moments = [finding.since for finding in (seen, told) if finding.since]
    if seen.severity is Severity.INFO and told.severity is not Severity.INFO:
        seen = seen._replace(
            severity=told.severity, title=told.title, detail=told.detail, next=told.next
        )
    return seen._replace(
        evidence=evidence,
        since=min(moments, default=None),
        fix=seen.fix or told.fix,
        next=seen.next or ("" if seen.fix else told.next),  # the fix is what to do next
    )


def add_causes(
    findings: Sequence[Finding],
    explanations: Sequence[Explanation],
    platforms: Platforms = tuple,
) -> list[Finding]:
    """Add to each finding the nearest other finding that causes it."""
    joint = _Findings(findings, platforms)
    there = {one.code for one in findings}
    using = [explanation for explanation in explanations if explanation.code in there]
    found = []
    for finding in findings:
        settled = finding.caused_by or finding.data.get("on_purpose")
        cause = None if settled else _nearest(finding, joint, using)
        if cause:
            detail = " ".join(filter(None, [finding.detail, cause.because]))
            finding = finding._replace(caused_by=cause.code, detail=detail)
        found.append(finding)
    return found


def _with_ended_causes(
    findings: Sequence[Finding],
    over: Sequence[Finding],
    explanations: Sequence[Explanation],
    platforms: Platforms,
) -> list[Finding]:
    """Quote what has stopped a platform and is over, such as a port that is free again."""
    joint = _Findings([*findings, *over], platforms)
    changed = []
    for finding in findings:
        ended = None
        if _told(finding) and not finding.caused_by:
            ended = next((one for one in over if _stopped(one, finding, explanations, joint)), None)
        if ended is not None:
            sentence = text('This stopped it and is over now: "{title}".', title=str(ended.title))
            finding = finding._replace(
                detail=sentences(finding.detail, sentence),
                evidence=(*ended.evidence, *finding.evidence)[:MOST_EVIDENCE],
                next=_START_AGAIN,
            )
        changed.append(finding)
    return changed


def _stopped(
    ended: Finding, finding: Finding, explanations: Sequence[Explanation], joint: _Findings
) -> bool:
    """Whether what is over now caused the finding, which names the same platform."""
    return _platform(ended) == _platform(finding) != "" and any(
        explanation.same_platform
        and explanation.code == ended.code
        and finding.code in explanation.explains
        and joint.fits(explanation, ended, finding)
        for explanation in explanations
    )


def _nearest(
    finding: Finding, joint: _Findings, using: Sequence[Explanation]
) -> Explanation | None:
    """The last of several causes in a chain: its own cause is shown above it."""
    fits = [
        cause
        for cause in using
        if finding.code in cause.explains
        and any(joint.fits(cause, one, finding) for one in joint.findings if one.code == cause.code)
    ]
    codes = {cause.code for cause in fits}
    above = {cause.code for cause in using for other in codes if other in cause.explains}
    return next((cause for cause in fits if cause.code not in above), fits[0] if fits else None)


class _Findings:
    """All findings, and the platforms that they can be about."""

    def __init__(self, findings: Sequence[Finding], platforms: Platforms) -> None:
        self.findings = findings
        self.platforms = platforms

    def fits(self, cause: Explanation, source: Finding, finding: Finding) -> bool:
        """Whether `source` can be the cause of `finding`; a note never causes a problem."""
        if source.severity is Severity.INFO and finding.severity is not Severity.INFO:
            return False
        if cause.database and not _told(source) and file_of(source) != cause.database:
            return False
        if len({name for name in map(file_of, (source, finding)) if name.endswith(".db")}) > 1:
            return False  # a damaged database does not damage another
        if cause.same_platform and not self._same_platform(source, finding):
            return False
        if cause.first and source.data.get("never"):  # a gateway that never ran ended nothing
            return False
        if not cause.first or source.since is None or finding.since is None:
            return True
        return (source.since - finding.since).total_seconds() <= cause.slack

    def _same_platform(self, finding: Finding, other: Finding) -> bool:
        """Whether both name the same platform, or only one platform is possible."""
        accounts = {found.data.get("account") for found in (finding, other)} - {None}
        named = {_platform(finding), _platform(other)}
        if len(accounts) > 1 or len(named - {""}) > 1:
            return False
        if "" not in named:
            return True
        possible = named | {_platform(one) for one in self.findings if _told(one)}
        there = self.platforms() if len(possible - {""}) <= 1 else None
        return there is not None and len({*possible, *there} - {""}) <= 1


def _platform(finding: Finding) -> str:
    """The platform that a finding names; one from a log may name a job or session instead."""
    named = finding.data.get("platform")
    if isinstance(named, str):
        return named
    return "" if _told(finding) else finding.subject.split(" ")[0]
