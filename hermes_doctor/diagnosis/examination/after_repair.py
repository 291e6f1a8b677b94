"""Judge a home after repairs: the bot does not work because the checks that ran found nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_doctor.backup.records.journal import NOT_CONNECTED, ItemRecord, Journal
from hermes_doctor.core.message import Message, listed, text
from hermes_doctor.core.model import Report, Verdict, VerdictKind

STILL_STOPS = "the gateway still stops"
"""Begins the reason of an item whose gateway does not stay up."""
_EARLY = (VerdictKind.WORKING, VerdictKind.NOT_TRIED, VerdictKind.LIMITED)
"""Verdicts of a check that ran too early to see that a platform does not connect."""
_GOOD = (VerdictKind.WORKING, VerdictKind.NOT_TRIED)
_HELPED = ("verified", "left")


def judged(report: Report, runs: Sequence[Journal]) -> Report:
    """Return the report with a verdict that also counts repairs that failed or are unproven."""
    verdict = report.verdict
    last = {(item.code, item.subject): item for run in runs for item in run.items}
    late = [item for item in last.values() if item.outcome == NOT_CONNECTED]
    failed = [item for item in last.values() if item.outcome not in (*_HELPED, NOT_CONNECTED)]
    if verdict is None:
        return report
    if late and verdict.kind in _EARLY:
        return _with(report, *_unproven(late))
    if failed and verdict.kind in _GOOD:
        codes = sorted({item.code for item in failed})
        return _with(
            report, VerdictKind.UNKNOWN, text("Not repaired: {codes}.", codes=listed(codes))
        )
    return report


def _with(report: Report, kind: VerdictKind, headline: Message) -> Report:
    primary = report.verdict.primary if report.verdict else None
    return report._replace(verdict=Verdict(kind, headline, primary))


def _unproven(late: Sequence[ItemRecord]) -> tuple[VerdictKind, Message]:
    """What is known of a gateway that was started, but is not connected."""
    reasons = [part for item in late for part in (item.reason or "").split("; ")]
    names = dict.fromkeys(part.partition(":")[0] for part in reasons if ": " in part)
    if STILL_STOPS in names:
        return VerdictKind.NOT_WORKING, text("Your bot is not working: the gateway still stops.")
    if names:
        platforms = listed(list(names))
        return VerdictKind.UNKNOWN, text("Not connected yet: {platforms}.", platforms=platforms)
    return VerdictKind.UNKNOWN, text("Your bot is not connected yet.")
