"""A folder of log rules as one check."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.api import Check, CouldNotLook, Finding, Partly, Skip

if TYPE_CHECKING:
    from hermes_doctor.probes import Probes
    from hermes_doctor.signatures.rule import Rule

GROUP = "logs"
QUESTION = "Do the logs tell of a fault that is not over?"


def check_of(id: str, rules: Sequence[Rule]) -> Check:
    """The check that asks these rules."""
    codes = tuple(sorted({rule.code for rule in rules}))
    return Check(id, GROUP, codes, QUESTION, lambda probes: _look(probes, rules), 5.0)


def _look(probes: Probes, rules: Sequence[Rule]) -> Iterator[Finding | CouldNotLook | Partly]:
    from hermes_doctor.signatures.findings import findings
    from hermes_doctor.signatures.incidents import Ledger

    if not (probes.home / "logs").is_dir():
        raise Skip("there is no log yet")
    ledger = Ledger(rules, now=time.time(), release=_release(probes))
    reading = probes.entries(ledger.since, ledger.wanted)
    for entry in reading:
        ledger.take(entry)
    for started in _starts(probes):
        ledger.started(started)
    yield from findings(ledger.incidents(), reading.where)
    for source, why, partly in reading.unread:
        yield Partly(f"{source}: {why}") if partly else CouldNotLook(f"{source}: {why}")
    if ledger.dropped:
        yield Partly("there are too many different incidents to tell all of them")


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
