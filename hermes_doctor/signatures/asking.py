"""The logs of a home asked by rules: read once, in the order of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.logs.entry import Entry, Unread
from hermes_doctor.model import CouldNotLook
from hermes_doctor.signatures.incidents import Incident, Ledger
from hermes_doctor.signatures.rule import Rule
from hermes_doctor.values import NamedTuple

if TYPE_CHECKING:
    from hermes_doctor.probes import Probes


_INFO = "logs/gateway.log"


class Asked(NamedTuple):
    """What the logs told."""

    incidents: tuple[Incident, ...]
    """Those that are over, too."""
    where: Callable[[Entry], str]
    unread: tuple[Unread, ...]


def ask(probes: Probes, rules: Sequence[Rule]) -> Asked:
    """Read the logs as far back as the rules want."""
    ledger = Ledger(rules, now=time.time(), release=_release(probes))
    reading = probes.entries(
        ledger.since("log", "stderr", "journal"), ledger.wanted, records_since=ledger.since()
    )
    for entry in reading:
        ledger.take(entry)
    for started in _starts(probes):
        ledger.started(started)
    unread = list(reading.unread)
    if ledger.dropped:
        unread.append(Unread("logs", "there are too many different incidents to tell all", True))
    covered = reading.covered.get(_INFO, 0.0)
    found = [one for one in ledger.incidents() if not _beyond(one, covered)]
    return Asked(tuple(found), reading.where, tuple(unread))


def _beyond(incident: Incident, covered: float) -> bool:
    """Whether the log that would tell of its end does not reach back to it.

    Warnings stand in a second log that holds them for longer.
    """
    clears = any(line.level in ("DEBUG", "INFO") for line in incident.rule.cleared_by)
    return clears and incident.cleared_at is None and incident.last < covered


def _release(probes: Probes) -> tuple[int, ...] | None:
    try:
        installed = probes.installation()
    except CouldNotLook:
        return None
    return installed.release if installed else None


def _starts(probes: Probes) -> list[float]:
    """When the gateways that run now began; a log without that line may have been rotated."""
    try:
        return sorted(one.started_at.timestamp() for one in probes.gateways())
    except CouldNotLook:
        return []
