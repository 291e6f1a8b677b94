"""Show what is not a problem in a report: muted findings, notes, and how the checks ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from hermes_doctor.core.message import ago, count, listed, shorten, text
from hermes_doctor.core.model import CheckResult, Finding, Report, Severity, Status
from hermes_doctor.core.terminal.lines import BLANK, Line, row

COLUMNS = 80
NEW = timedelta(days=1)
"""Mutes younger than this are shown at the top."""
MOST_NEW = 3
SHORT = 2 * COLUMNS - 10  # what is left of two rows
MOST_CODES = 8
MANY_SKIPPED = 10
"""So many checks that were skipped for the same reason are worth a line."""


def evidence_lines(finding: Finding, most: int, *, short: bool = False) -> Iterator[Line]:
    """The first pieces of evidence of a finding."""
    shown = finding.evidence[:most]
    left = len(finding.evidence) - len(shown)
    for number, evidence in enumerate(shown, 1):
        more = f"   ({left} more)" if left and number == len(shown) else ""
        said = (
            shorten(evidence.what, max(60, SHORT - len(evidence.where + more)))
            if short
            else evidence.what
        )
        yield row((f"{evidence.where}  ", "faint"), said, (more, "faint"), indent=4, hang=2)


def todo(report: Report, findings: Sequence[Finding]) -> str:
    """What the operator does: the finding's own step, or why its fix cannot be applied.

    If a problem has neither and no fix, the step of its first consequence is shown.
    """
    for finding in findings:
        if said := " ".join(filter(None, (finding.next, report.refusal(finding)))):
            return said
        if report.offer(finding):
            return ""
    return ""


def rest_of(report: Report, every: bool, problems: bool) -> Iterator[Line]:
    """What is not a problem: passed checks, checks without an answer, and notes."""
    notes = [
        finding
        for finding in report.findings
        if finding.severity is Severity.INFO and not finding.muted
    ]
    yield from _muted(report, every)
    if every:
        yield from _notes(report, notes)
        yield from _results(report)
        return
    if "--deep" in report.options.split():  # its notes are shown now: to repeat it takes long
        yield from _notes(report, notes)
        notes = []
    passed = report.count_checks(Status.OK)
    open_ = [check for check in report.checks if check.status in (Status.UNKNOWN, Status.CRASHED)]
    more = f"hermes-doctor check -v{report.options}"
    if open_:
        rest = f" (and {len(open_) - 1} more)" if len(open_) > 1 else ""
        yield row(("? ", "faint"), _open_question(open_[0]) + rest, hang=2)
    for reason, skipped in _skipped(report).items():
        if len(skipped) >= MANY_SKIPPED:
            yield row(("? ", "faint"), f"{count(len(skipped), 'check')} skipped: {reason}", hang=2)
    said = "" if problems else f"{count(passed, 'check')} passed in {report.seconds:.1f} s. "
    if notes:
        yield row((f"{said}{count(len(notes), 'note')}: ", "faint"), (more, "command"))
    elif said:
        yield row((said, "faint"))


def new_mutes(report: Report) -> Iterator[Line]:
    """The findings that were muted in the last day.

    A program that runs as the operator can mute what it likes, so he should notice.
    """
    since = [(one, report.muted_since.get(one.key)) for one in report.findings if one.muted]
    new = [(one, at) for one, at in since if at and report.started_at - at < NEW]
    for finding, at in new[:MOST_NEW]:
        message = text("muted since {time}: ", time=ago(at, report.started_at))
        yield row(
            ("! ", "warning"),
            (message, "faint"),
            finding.title,
            hang=2,
            right=(finding.code, "faint"),
        )
    if len(new) > MOST_NEW:
        yield row(
            ("! ", "warning"),
            (f"and {len(new) - MOST_NEW} more: ", "faint"),
            ("hermes-doctor mutes", "command"),
            hang=2,
        )


def _muted(report: Report, every: bool) -> Iterator[Line]:
    """The muted findings, all in one line, or with their titles; and what is switched off."""
    if report.off:
        off = listed(report.off, MOST_CODES)
        yield row(("· ", "faint"), (f"Found, but off in config.toml: {off}.", "faint"), hang=2)
    muted = [one for one in report.findings if one.muted]
    if not muted:
        return
    if every:
        yield row(("Muted", "strong"))
        for finding in muted:
            yield row(
                ("· ", "faint"), finding.title, indent=2, hang=2, right=(finding.code, "faint")
            )
        yield BLANK
        return
    codes = listed(sorted({one.code for one in muted}), MOST_CODES)
    more = ("hermes-doctor mutes", "command")
    yield row(("· ", "faint"), (f"Muted: {codes}. See: ", "faint"), more, hang=2)


def _notes(report: Report, notes: Sequence[Finding]) -> Iterator[Line]:
    if not notes:
        return
    yield row(("Notes", "strong"))
    for note in notes:
        yield row(("· ", "faint"), note.title, indent=2, hang=2, right=(note.code, "faint"))
        yield from evidence_lines(note, len(note.evidence))
        if note.detail:
            yield row(note.detail, indent=4)
        if said := todo(report, [note]):
            yield row(said, indent=4)
    yield BLANK


def _results(report: Report) -> Iterator[Line]:
    passed: dict[str, int] = {}
    for check in report.checks:
        if check.status is Status.OK:
            passed[check.group] = passed.get(check.group, 0) + 1
    if passed:
        parts = ", ".join(f"{group} {number}" for group, number in passed.items())
        yield row(("✓ ", "good"), f"Passed: {parts}. It took {report.seconds:.1f} s.", hang=2)
    more = (" All: ", (f"hermes-doctor check --deep{report.options}", "command"))
    for check in report.checks:
        if check.status is Status.OK and check.reason:
            rest = () if "--deep" in report.options.split() else more
            yield row(("· ", "faint"), f"Only in part: {check.reason}.", *rest, hang=2)
    yield from open_questions(report)
    for reason, skipped in _skipped(report).items():
        yield row(("· ", "faint"), (f"Skipped {', '.join(skipped)}: {reason}", "faint"), hang=2)


def _skipped(report: Report) -> dict[str, list[str]]:
    """The skipped checks by the reason for it."""
    found: dict[str, list[str]] = {}
    for check in report.checks:
        if check.status is Status.SKIPPED:
            found.setdefault(check.reason or "no reason given", []).append(check.id)
    return found


def open_questions(report: Report) -> Iterator[Line]:
    """The checks without an answer, and why."""
    for check in report.checks:
        if check.status in (Status.UNKNOWN, Status.CRASHED):
            yield row(("? ", "warning"), _open_question(check), hang=2)


def _open_question(check: CheckResult) -> str:
    reason = check.reason or "no reason given"
    if check.status is Status.CRASHED:
        return f"The check {check.id} crashed: {reason}"
    return f"Could not check {check.id}: {reason}"
