"""What changed between two rounds, and what only could not be seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hermes_doctor.core.model import Severity
from hermes_doctor.operations.watch import changes
from hermes_doctor.operations.watch.changes import (
    BLIND_AFTER,
    STATES,
    CurrentFinding,
    Flapping,
    RoundChanges,
    compare,
)
from hermes_doctor.operations.watch.channels import Notice
from hermes_doctor.operations.watch.events import EventKind
from hermes_doctor.operations.watch.notices import Notices
from hermes_doctor.operations.watch.rounds import Watch
from hermes_doctor.operations.watch.state import WatchState, document, parse
from tests.helpers.watch_parts import AT, Hands, Heard, finding, report, watch


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


SICK, WELL, WORSE = report(finding("A")), report(), report(finding("A", "critical"))
UNSURE = report(status="unknown", reason="slow")


class Sent(list[str]):
    """A channel that remembers what it sent."""

    name = "a test"

    def send(self, notice: Notice) -> None:
        self.append(notice.event.sentence())


class FlappingWatch:
    """A watch with notices, whose rounds are given one after the other."""

    def __init__(self, home: Path) -> None:
        self.next, self.sent = WELL, Sent()
        self.notices = Notices([self.sent], str(home), Severity.ERROR)
        self.watch: Watch
        self.heard: Heard
        self.clock: Hands
        self.watch, self.heard, self.clock = watch(home, lambda: self.next, notices=self.notices)

    def rounds(self, *reports: object, every: float = 60.0) -> list[str]:
        """Let the watch see these reports; return the notices that were sent."""
        before = len(self.sent)
        for one in reports:
            self.next = one  # type: ignore[assignment]
            self.clock.turn(every)
            self.watch.round(begins=False)
        self.notices.close()
        return self.sent[before:]


def test_one_notice_then_quiet_until_it_settles_well(home: Path) -> None:
    """Sixty changes, three notices: it is there, it flaps, it is gone."""
    made = FlappingWatch(home)
    sent = made.rounds(*[WELL, *[SICK, WELL] * 30])
    assert [one.partition(":")[0] for one in sent] == ["new", "flaps"]
    assert "keeps coming and going" in sent[1] and "No more notices until it settles" in sent[1]
    assert made.rounds(*[WELL] * 10) == []
    [last] = made.rounds(*[WELL] * 15)

    assert last == "stable: A thing: A is wrong; it has settled and is gone"
    assert made.heard.kinds.count("new") == 30, "what is printed stays complete"
    assert made.heard.kinds.count("flaps") == made.heard.kinds.count("stable") == 1


def test_silent_for_good_is_never_hidden(home: Path) -> None:
    """It settles in the bad state: the notice says so, with its severity."""
    made = FlappingWatch(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    worse, settled = made.rounds(*[WORSE] * (STATES + 12))

    assert worse.startswith("new: critical A") and settled.startswith("stable: critical A")
    assert "A is wrong; it has settled and is still there" in settled
    assert made.rounds(*[WORSE] * 30) == []
    assert made.rounds(WELL, WELL)[0].startswith("gone"), "afterwards all is as before"


def test_a_changing_severity_flaps_too(home: Path) -> None:
    """Between error and critical, as between present and gone."""
    made = FlappingWatch(home)
    made.rounds(*[SICK, WORSE] * 8)

    assert "flaps" in made.heard.kinds


def test_without_an_answer_nothing_counts(home: Path) -> None:
    """A check that cannot look changes no state."""
    made = FlappingWatch(home)
    made.rounds(WELL, *[SICK, UNSURE] * 20)

    assert "flaps" not in made.heard.kinds


def test_rare_changes_do_not_flap(home: Path) -> None:
    """Once in 21 checks is an event of its own each time."""
    made = FlappingWatch(home)
    sent = made.rounds(*[WELL, *([SICK] * 12 + [WELL] * 12) * 4])

    assert [one.partition(":")[0] for one in sent] == ["new", "gone"] * 4
    assert not any(one.flaps for one in made.watch.memory.flaps.values())


def test_it_survives_a_restart(home: Path) -> None:
    """The new process does not repeat the notice, and sees it settle."""
    made = FlappingWatch(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    again = FlappingWatch(home)
    again.clock.reading = made.clock.reading
    assert again.watch.memory.flaps["A", "thing"].flaps
    sent = again.rounds(*[SICK, WELL] * 3, *[WELL] * 30)

    assert [one.partition(":")[0] for one in sent] == ["stable"]
    assert again.watch.memory.flaps == {}


def test_a_stored_state_that_is_wrong() -> None:
    """Only texts that can be states are read; an older state file has none."""
    memory = WatchState()
    data = document(memory)
    data["flaps"] = [["A", "x", "-e-e", True], ["B", "x", "?!", True], ["C", "x", "", False]]

    assert parse(data).flaps == {("A", "x"): changes.Flapping("-e-e", True, reported="e")}
    data["flaps"] = [["A", "x", "-e-e", True, "title", "looks", True, "c"]]
    found = parse(data)
    assert found.flaps["A", "x"] == changes.Flapping("-e-e", True, "title", "looks", True, "c")
    assert document(found)["flaps"] == data["flaps"]
    del data["flaps"]
    assert parse(data).flaps == {}


def test_another_folder_starts_from_nothing(home: Path) -> None:
    """What flapped in the old home does not keep the new one quiet."""
    made = FlappingWatch(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    home.rename(home.with_name("old"))
    home.mkdir()
    (home / "config.yaml").write_text("")
    made.rounds(WELL)

    assert made.watch.memory.flaps == {}


def test_worse_than_reported_is_never_quiet(home: Path) -> None:
    """A flapping error that becomes critical causes one notice; what is not worse stays quiet."""
    made = FlappingWatch(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    assert made.rounds(SICK, WELL, SICK) == []
    [sent] = made.rounds(WORSE, every=601)
    assert sent.startswith("worse: critical A")

    assert made.rounds(*[SICK, WORSE, WELL, WORSE] * 3, every=601) == [], "it was reported"


def test_a_flapping_problem_that_was_muted(home: Path) -> None:
    """Nothing was reported while it was muted, so the first time afterwards is."""
    made = FlappingWatch(home)
    hidden = report(finding("A")._replace(muted=True))
    assert made.rounds(*[WELL, *[hidden, WELL] * 10]) == []
    sent = made.rounds(SICK, WELL, SICK, WELL)

    assert [one.partition(":")[0] for one in sent] == ["new"]


def test_gone_without_an_answer_does_not_settle(home: Path) -> None:
    """While the check of an absent problem cannot look, nobody knows that it stays away."""
    made = FlappingWatch(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    before = made.watch.memory.flaps["A", "thing"]
    assert made.rounds(*[UNSURE] * 40) == []

    assert made.watch.memory.flaps["A", "thing"] == before


def test_settled_while_muted(home: Path) -> None:
    """The event has the title and the mark of the problem, so no notice is sent."""
    made = FlappingWatch(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    hidden = report(finding("A")._replace(muted=True))
    assert made.rounds(hidden, *[WELL] * 40) == []

    [event] = made.heard.of(EventKind.STABLE)
    assert event.muted and "A is wrong; it has settled and is gone" in event.sentence()


def test_each_change_counts_by_its_age() -> None:
    """The oldest change counts 0.75 of 5 %, the newest 1.25 of it; all together are 100 %."""
    assert changes.percent("-" + "e" * 20) == pytest.approx(0.75 * 5)
    assert changes.percent("-" * 20 + "e") == pytest.approx(1.25 * 5)
    assert changes.percent("-e" * 10 + "-") == pytest.approx(100)
    assert changes.percent("-" * 21) == 0


def loop(states: str) -> float:
    """The percentage as the loop in Naemon's flapping.c adds it up."""
    changes, last = 0.0, states[0]
    for number in range(1, len(states)):
        if states[number] != last:
            changes += (number - 1) * (1.25 - 0.75) / (len(states) - 2) + 0.75
        last = states[number]
    return changes * 100 / (len(states) - 1)


@given(st.text("-cewi", min_size=STATES, max_size=STATES))
def test_the_same_as_naemon(states: str) -> None:
    """For any 21 states."""
    assert changes.percent(states) == pytest.approx(loop(states))


def test_starts_late_and_settles_later() -> None:
    """Two disturbances in a row start it; it settles when at most one change is left."""
    known: Flapping | None = None
    flaps = []
    for before, now in ("-e", "e-", "-e", "e-"):
        known = changes.flapping_after(known, before, now)
        flaps.append(known.flaps)
    assert flaps == [False, False, False, True]
    rounds = 0
    assert known is not None
    while known.flaps:
        known = changes.flapping_after(known, "-", "-")
        rounds += 1
    assert 15 < rounds < STATES


def test_one_that_is_steady_is_not_kept() -> None:
    """After 21 equal states there is nothing to remember."""
    known = changes.flapping_after(None, "-", "e")
    assert not known.is_steady
    for _ in range(STATES):
        known = changes.flapping_after(known, "e", "e")
    assert known.is_steady and known.states == "e" * STATES


@given(st.text("-cewi", min_size=1, max_size=200))
def test_hysteresis(states: str) -> None:
    """Whatever comes: it starts at 20 % or more, stops at 5 % or less, and stays bounded."""
    known: Flapping | None = None
    for before, now in zip("-" + states, states, strict=False):
        old = known
        known = changes.flapping_after(known, before, now)
        share = changes.percent(known.states)
        assert len(known.states) == STATES and 0 <= share <= 100.01
        if old is not None and known.flaps != old.flaps:
            assert share >= 20 if known.flaps else share <= 5
