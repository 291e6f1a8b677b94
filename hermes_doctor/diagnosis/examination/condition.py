"""Sum up a report in one word for monitors and the history: working, limited, silent or unknown."""

from __future__ import annotations

import enum

from hermes_doctor.core.model import CheckResult, Report, Status, VerdictKind


class Condition(enum.StrEnum):
    """Whether the bot answers people."""

    WORKING = "working"
    LIMITED = "limited"
    SILENT = "silent"
    UNKNOWN = "unknown"


_OF_VERDICTS = {
    VerdictKind.WORKING: Condition.WORKING,
    VerdictKind.NOT_TRIED: Condition.WORKING,
    VerdictKind.LIMITED: Condition.LIMITED,
    VerdictKind.UNKNOWN: Condition.UNKNOWN,
}


def condition_of(report: Report) -> Condition:
    """The condition of the bot; unknown if checks were left out or could not look.

    A bot that runs without a problem and was not asked anything yet counts as working.
    A bot that was stopped or is not set up is silent, too: nobody gets an answer from it.
    """
    if report.why_blind is not None or not report.complete or report.verdict is None:
        return Condition.UNKNOWN
    return _OF_VERDICTS.get(report.verdict.kind, Condition.SILENT)


def is_doubtful(check: CheckResult) -> bool:
    """Whether a check may have missed something that it reported before."""
    partly = check.status is Status.PROBLEM and check.reason is not None
    return partly or check.status in (Status.UNKNOWN, Status.CRASHED)
