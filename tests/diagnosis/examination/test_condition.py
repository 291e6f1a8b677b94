"""The condition of a bot is what its verdict says, if all checks could look."""

from __future__ import annotations

from hermes_doctor.core.model import VerdictKind
from hermes_doctor.diagnosis.examination.condition import Condition, condition_of
from tests.helpers.each import each
from tests.helpers.histories import found

EXPECTED = {
    VerdictKind.WORKING: Condition.WORKING,
    VerdictKind.NOT_TRIED: Condition.WORKING,
    VerdictKind.LIMITED: Condition.LIMITED,
    VerdictKind.NOT_WORKING: Condition.SILENT,
    VerdictKind.STOPPED: Condition.SILENT,
    VerdictKind.NOT_SET_UP: Condition.SILENT,
    VerdictKind.UNKNOWN: Condition.UNKNOWN,
}


@each(sorted(VerdictKind))
def test_of_each_verdict(kind: VerdictKind) -> None:
    """Every verdict has a condition."""
    assert condition_of(found(kind=kind.value)) is EXPECTED[kind]


def test_unknown() -> None:
    """Without a verdict, with some checks only, or if no check could look."""
    assert condition_of(found(complete=False)) is Condition.UNKNOWN
    assert condition_of(found()._replace(verdict=None)) is Condition.UNKNOWN
    assert condition_of(found(status="unknown", reason="no")) is Condition.UNKNOWN
