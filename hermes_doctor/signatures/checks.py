"""A folder of log rules as one check."""

from __future__ import annotations

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
    from hermes_doctor.signatures.asking import ask
    from hermes_doctor.signatures.findings import findings

    if not (probes.home / "logs").is_dir():
        raise Skip("there is no log yet")
    asked = ask(probes, rules)
    yield from findings(asked.incidents, asked.where)
    for source, why, partly in asked.unread:
        yield Partly(f"{source}: {why}") if partly else CouldNotLook(f"{source}: {why}")
