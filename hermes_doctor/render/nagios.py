"""Builds the output of a monitoring plugin for Nagios, Icinga, Naemon and the like.

The first line has the state, the verdict and the performance data. Each problem then has a line,
with its severity in small letters: the plugin `negate` changes every CRITICAL in the output.
The exit code is the state, as the guidelines for monitoring plugins say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hermes_doctor.core.message import count
from hermes_doctor.core.model import Report, Severity, Status, VerdictKind
from hermes_doctor.core.outgoing import clean

OK, WARNING, CRITICAL, UNKNOWN = range(4)
NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_BADNESS = (OK, UNKNOWN, WARNING, CRITICAL)
MOST_BYTES = 4000
"""Nagios reads 4 KB of a plugin's output, with the byte that ends it."""
_LONGEST_TITLE = 200
_STATES = {Severity.CRITICAL: CRITICAL, Severity.ERROR: CRITICAL, Severity.WARNING: WARNING}
_VERDICTS = {
    VerdictKind.NOT_WORKING: CRITICAL,
    VerdictKind.STOPPED: WARNING,
    VerdictKind.NOT_SET_UP: WARNING,
}
"""The state of a bot that answers nobody, even if it was stopped on purpose."""


def state(reports: Sequence[Report]) -> int:
    """The exit code for all homes: the worst of their states, with UNKNOWN just above OK."""
    return max(map(_state, reports), key=_BADNESS.index, default=UNKNOWN)


def _state(report: Report) -> int:
    """The state of one home: the worst problem counts, then what could not be checked.

    A problem at severity critical or error is CRITICAL, a warning is WARNING. So is a bot that does
    not work (CRITICAL), or that is stopped or not set up (WARNING). Without these, a home that
    could not be checked, a check that crashed and an unknown verdict are UNKNOWN.
    """
    kind = report.verdict.kind if report.verdict and report.complete else None
    if report.verdict is not None and report.verdict.muted:
        kind = None
    found = [_STATES.get(finding.severity, OK) for finding in report.findings if not finding.muted]
    worst = max([*found, OK if kind is None else _VERDICTS.get(kind, OK)])
    unclear = report.why_blind or kind is VerdictKind.UNKNOWN or report.count_checks(Status.CRASHED)
    return UNKNOWN if worst == OK and unclear else worst


def of_reports(reports: Sequence[Report]) -> str:
    """The whole output for these homes, at most 4 KB."""
    first = f"HERMES {NAMES[state(reports)]} - {_headline(reports)}"
    counts = {one: sum(report.counts[one] for report in reports) for one in Severity}
    data = [f"{severity.value}={number};;;0" for severity, number in counts.items()]
    data.append(f"time={sum(report.seconds for report in reports):.3f}s;;;0")
    lines = [f"{plain(first)} | {' '.join(data)}"]
    worst_first = sorted(reports, key=lambda one: -_BADNESS.index(_state(one)))
    listed = [
        plain(f"{NAMES[_state(one)].lower()} {one.home}: {_verdict(one)}")
        for one in (worst_first if len(reports) > 1 else ())
        if _state(one) != OK
    ]
    listed += _problems(reports)
    for number, line in enumerate(listed):
        rest = f"... and {count(len(listed) - number, 'more line')}"
        if len("\n".join([*lines, line, rest, ""]).encode()) > MOST_BYTES:
            lines.append(rest)
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def of_trouble(message: str) -> str:
    """The output of a check that could not run."""
    return f"HERMES {NAMES[UNKNOWN]} - {plain(message)}\n"


def plain(text: str) -> str:
    """The text without the characters that have a meaning in the output of a plugin."""
    text = clean(" ".join(text.splitlines())).replace("|", "/")
    shown = "".join(one if one.isprintable() else " " for one in text)
    return shown if len(shown) <= _LONGEST_TITLE else shown[: _LONGEST_TITLE - 1] + "…"


def _headline(reports: Sequence[Report]) -> str:
    if len(reports) == 1:
        return _verdict(reports[0])
    counted = Counter(map(_state, reports))
    said = [f"{counted[one]} {NAMES[one].lower()}" for one in reversed(_BADNESS) if counted[one]]
    return f"{count(len(reports), 'home')}: {', '.join(said)}"


def _verdict(report: Report) -> str:
    if report.why_blind:
        return report.why_blind
    if report.verdict is not None and report.verdict.headline:
        return report.verdict.headline
    return count(len(report.findings), "problem")


def _problems(reports: Sequence[Report]) -> Iterator[str]:
    """A line for each problem, the worst first; of several homes, each line names its home."""
    found = [(one, report) for report in reports for one in report.findings]
    for finding, report in sorted(found, key=lambda item: (item[0].muted, item[0].severity.rank)):
        level = f"muted {finding.severity.value}" if finding.muted else finding.severity.value
        yield plain(f"{level} {finding.code} {_where(report, reports)}{finding.title}")
    for report in reports:
        for check in report.checks:
            if check.status is Status.CRASHED:
                told = f"the check {check.id} crashed: {check.reason}"
                yield plain(f"unknown {_where(report, reports)}{told}")


def _where(report: Report, reports: Sequence[Report]) -> str:
    return f"{report.home}: " if len(reports) > 1 else ""
