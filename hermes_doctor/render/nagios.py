"""Builds the output of a monitoring plugin for Nagios, Icinga, Naemon and the like.

The first line has the state, the verdict and the performance data. Each problem then has a line,
with its severity in small letters: the plugin `negate` changes every CRITICAL in the output.
The exit code is the state, as the guidelines for monitoring plugins say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes_doctor.message import count
from hermes_doctor.model import Report, Severity, Status, VerdictKind

OK, WARNING, CRITICAL, UNKNOWN = range(4)
NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
MOST_BYTES = 4000
"""Nagios reads 4 KB of a plugin's output, with the byte that ends it."""
_LONGEST_TITLE = 200
_STATES = {Severity.CRITICAL: CRITICAL, Severity.ERROR: CRITICAL, Severity.WARNING: WARNING}
_VERDICTS = {
    VerdictKind.NOT_WORKING: CRITICAL,
    VerdictKind.STOPPED: WARNING,
    VerdictKind.NOT_SET_UP: WARNING,
}
"""A bot that answers nobody is never OK, whoever stopped it."""


def state(reports: Sequence[Report]) -> int:
    """The exit code: the worst problem counts, then what could not be checked.

    A problem at severity critical or error is CRITICAL, a warning is WARNING. So is a bot that does
    not work (CRITICAL), or that is stopped or not set up (WARNING). Without these, a home that
    could not be checked, a check that crashed and an unknown verdict are UNKNOWN.
    """
    found = [_STATES.get(one.severity, OK) for report in reports for one in report.findings]
    verdicts = [one.verdict.kind for one in reports if one.verdict and one.complete]
    worst = max([*found, *(_VERDICTS.get(kind, OK) for kind in verdicts)], default=OK)
    unclear = VerdictKind.UNKNOWN in verdicts
    if worst == OK and (unclear or any(one.why_blind or _crashed(one) for one in reports)):
        return UNKNOWN
    return worst


def of_reports(reports: Sequence[Report]) -> str:
    """The whole output for these homes, at most 4 KB."""
    first = f"HERMES {NAMES[state(reports)]} - {_headline(reports)}"
    lines = [f"{plain(first)} | {_performance(reports)}"]
    listed = list(_problems(reports))
    for number, line in enumerate(listed):
        rest = f"... and {count(len(listed) - number, 'more problem')}"
        if _size([*lines, line, rest]) > MOST_BYTES:
            lines.append(rest)
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def of_trouble(message: str) -> str:
    """The output of a check that could not run."""
    return f"HERMES {NAMES[UNKNOWN]} - {plain(message)}\n"


def plain(text: str) -> str:
    """The text without the characters that have a meaning in the output of a plugin."""
    shown = "".join(one if one.isprintable() else " " for one in text.replace("|", "/"))
    shown = shown.encode(errors="replace").decode()
    return shown if len(shown) <= _LONGEST_TITLE else shown[: _LONGEST_TITLE - 1] + "…"


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _crashed(report: Report) -> int:
    return report.count_checks(Status.CRASHED)


def _headline(reports: Sequence[Report]) -> str:
    if len(reports) != 1:
        bad = sum(_is_bad(report) for report in reports)
        homes = count(len(reports), "home")
        return f"{homes}, {bad} with problems" if bad else f"{homes} without problems"
    report = reports[0]
    if report.why_blind:
        return report.why_blind
    if report.verdict is not None and report.verdict.headline:
        return report.verdict.headline
    return count(len(report.findings), "problem")


def _is_bad(report: Report) -> bool:
    return bool(report.why_blind) or any(one.severity in _STATES for one in report.findings)


def _problems(reports: Sequence[Report]) -> Iterable[str]:
    """A line for each problem, the worst first; of several homes, each line names its home."""
    ranked = sorted(
        (
            (one.severity.rank, n, report, one)
            for report in reports
            for n, one in enumerate(report.findings)
        ),
        key=lambda item: item[:2],
    )
    for _, _, report, one in ranked:
        where = f"{report.home}: " if len(reports) > 1 else ""
        yield plain(f"{one.severity.value} {one.code} {where}{one.title}")
    for report in reports:
        for check in report.checks:
            if check.status is Status.CRASHED:
                yield plain(f"unknown: check {check.id} crashed: {check.reason}")


def _performance(reports: Sequence[Report]) -> str:
    """Counts by severity, and how long the check took."""
    counts = {one: sum(report.counts[one] for report in reports) for one in Severity}
    said = [f"{severity.value}={number};;;0" for severity, number in counts.items()]
    return " ".join([*said, f"time={sum(report.seconds for report in reports):.3f}s;;;0"])
