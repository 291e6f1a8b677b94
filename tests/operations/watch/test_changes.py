"""What changed between two rounds, and what only could not be seen."""

from __future__ import annotations

import pytest

from hermes_doctor.operations.watch.changes import (
    BLIND_AFTER,
    CurrentFinding,
    RoundChanges,
    compare,
)
from tests.helpers.watch_parts import AT, finding, report


def after(*reports: object, most: int = 3) -> RoundChanges:
    """The last of these rounds against the one before it."""
    found = RoundChanges({}, {}, [])
    for one in reports:
        found = compare(found.current, found.unanswered, one, AT, most)  # type: ignore[arg-type]
    return found


def kinds(found: RoundChanges) -> list[str]:
    return [event.kind.value for event in found.events]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (report(), report(finding("A")), ["new"]),
        (report(finding("A")), report(finding("A")), []),
        (report(finding("A", "warning")), report(finding("A", "error")), ["worse"]),
        (report(finding("A", "critical")), report(finding("A", "info")), ["better"]),
        (report(finding("A")), report(), ["gone"]),
        (report(finding("A")), report(finding("A", subject="other")), ["new", "gone"]),
    ],
)
def test_a_change_is_told_once(before: object, now: object, told: list[str]) -> None:
    """A change is told once."""
    assert kinds(after(before, now)) == told
    assert kinds(after(before, now, now)) == []


def test_the_same_thing_in_other_words_is_no_change() -> None:
    """The same thing in other words is no change."""
    first = finding("A")

    assert kinds(after(report(first), report(first._replace(title="5 minutes old")))) == []


@pytest.mark.parametrize("status", ["unknown", "crashed"])
def test_what_cannot_be_seen_is_not_gone(status: str) -> None:
    """What cannot be seen is not gone."""
    blind = report(status=status, reason="a disk that hangs")

    found = after(report(finding("A")), report(finding("A")), blind)

    assert "gone" not in kinds(found)
    assert found.current["A", "thing"].rounds == 0, "and not seen in a row any more"
    assert kinds(after(report(finding("A")), blind, report())) == ["gone"]


def test_a_check_that_saw_only_part_hides_nothing() -> None:
    """A check that saw only part hides nothing."""
    partly = report(finding("B"), reason="kanban.db could not be read")

    assert kinds(after(report(finding("A"), finding("B")), partly)) == []


def test_blindness_is_told_when_it_lasts() -> None:
    """Blindness is told when it lasts."""
    blind = report(status="unknown", reason="no rights")

    assert kinds(after(*[blind] * (BLIND_AFTER - 1))) == []
    assert kinds(after(*[blind] * BLIND_AFTER)) == ["blind"]
    assert kinds(after(*[blind] * (BLIND_AFTER + 5))) == []
    assert kinds(after(*[blind] * BLIND_AFTER, report())) == ["sees"]


def test_seen_in_a_row_is_counted_as_far_as_it_matters() -> None:
    """Seen in a row is counted as far as it matters."""
    sick = report(finding("A"))

    assert [after(*[sick] * n).current["A", "thing"].rounds for n in (1, 2, 3, 9)] == [1, 2, 3, 3]
    assert after(sick, report(), sick).current["A", "thing"].rounds == 1
    note = report(finding("A", "info"))
    assert after(note, note, sick).current["A", "thing"].rounds == 1, "another problem by now"


def test_what_wavers_is_counted_on() -> None:
    """Error, critical, error: it lasts. What was a warning is not an error that lasted."""
    mild, sick, worse = (report(finding("A", word)) for word in ("warning", "error", "critical"))

    assert after(sick, worse, sick, worse).current["A", "thing"][3:5] == (3, 3)
    assert after(mild, mild, sick).current["A", "thing"][3:5] == (3, 1)
    assert after(sick, sick, mild).current["A", "thing"][3:5] == (3, 0)


def test_two_of_one_key_are_one_and_the_worst_counts() -> None:
    """Two of one key are one and the worst counts."""
    found = after(report(finding("A", "info"), finding("A", "critical")))

    assert [event.severity for event in found.events] == ["critical"]


def test_what_a_check_that_is_left_out_had_found_stands() -> None:
    """What a check that is left out had found stands."""
    before = {("A", "thing"): CurrentFinding(finding("A").severity, "old", "another", 2)}

    found = compare(before, {}, report(), AT, 3)

    assert not found.events and ("A", "thing") in found.current
