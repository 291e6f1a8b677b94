"""A problem that flaps causes one notice, and another one when it has settled."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.core.model import Severity
from hermes_doctor.operations.history import flapping
from hermes_doctor.operations.history.flapping import STATES
from hermes_doctor.operations.watch.channels import Notice
from hermes_doctor.operations.watch.events import EventKind
from hermes_doctor.operations.watch.notices import Notices
from hermes_doctor.operations.watch.rounds import Watch
from hermes_doctor.operations.watch.state import WatchState, document, parse
from tests.helpers.watch_parts import Hands, Heard, finding, report, watch

SICK, WELL, WORSE = report(finding("A")), report(), report(finding("A", "critical"))
UNSURE = report(status="unknown", reason="slow")


class Sent(list[str]):
    """A channel that remembers what it sent."""

    name = "a test"

    def send(self, notice: Notice) -> None:
        self.append(notice.event.sentence())


class Flapping:
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
    made = Flapping(home)
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
    made = Flapping(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    worse, settled = made.rounds(*[WORSE] * (STATES + 12))

    assert worse.startswith("new: critical A") and settled.startswith("stable: critical A")
    assert "A is wrong; it has settled and is still there" in settled
    assert made.rounds(*[WORSE] * 30) == []
    assert made.rounds(WELL, WELL)[0].startswith("gone"), "afterwards all is as before"


def test_a_changing_severity_flaps_too(home: Path) -> None:
    """Between error and critical, as between present and gone."""
    made = Flapping(home)
    made.rounds(*[SICK, WORSE] * 8)

    assert "flaps" in made.heard.kinds


def test_without_an_answer_nothing_counts(home: Path) -> None:
    """A check that cannot look changes no state."""
    made = Flapping(home)
    made.rounds(WELL, *[SICK, UNSURE] * 20)

    assert "flaps" not in made.heard.kinds


def test_rare_changes_do_not_flap(home: Path) -> None:
    """Once in 21 checks is an event of its own each time."""
    made = Flapping(home)
    sent = made.rounds(*[WELL, *([SICK] * 12 + [WELL] * 12) * 4])

    assert [one.partition(":")[0] for one in sent] == ["new", "gone"] * 4
    assert not any(one.flaps for one in made.watch.memory.flaps.values())


def test_it_survives_a_restart(home: Path) -> None:
    """The new process does not repeat the notice, and sees it settle."""
    made = Flapping(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    again = Flapping(home)
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

    assert parse(data).flaps == {("A", "x"): flapping.Flapping("-e-e", True, reported="e")}
    data["flaps"] = [["A", "x", "-e-e", True, "title", "looks", True, "c"]]
    found = parse(data)
    assert found.flaps["A", "x"] == flapping.Flapping("-e-e", True, "title", "looks", True, "c")
    assert document(found)["flaps"] == data["flaps"]
    del data["flaps"]
    assert parse(data).flaps == {}


def test_another_folder_starts_from_nothing(home: Path) -> None:
    """What flapped in the old home does not keep the new one quiet."""
    made = Flapping(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    home.rename(home.with_name("old"))
    home.mkdir()
    (home / "config.yaml").write_text("")
    made.rounds(WELL)

    assert made.watch.memory.flaps == {}


def test_worse_than_reported_is_never_quiet(home: Path) -> None:
    """A flapping error that becomes critical causes one notice; what is not worse stays quiet."""
    made = Flapping(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    assert made.rounds(SICK, WELL, SICK) == []
    [sent] = made.rounds(WORSE, every=601)
    assert sent.startswith("worse: critical A")

    assert made.rounds(*[SICK, WORSE, WELL, WORSE] * 3, every=601) == [], "it was reported"


def test_a_flapping_problem_that_was_muted(home: Path) -> None:
    """Nothing was reported while it was muted, so the first time afterwards is."""
    made = Flapping(home)
    hidden = report(finding("A")._replace(muted=True))
    assert made.rounds(*[WELL, *[hidden, WELL] * 10]) == []
    sent = made.rounds(SICK, WELL, SICK, WELL)

    assert [one.partition(":")[0] for one in sent] == ["new"]


def test_gone_without_an_answer_does_not_settle(home: Path) -> None:
    """While the check of an absent problem cannot look, nobody knows that it stays away."""
    made = Flapping(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    before = made.watch.memory.flaps["A", "thing"]
    assert made.rounds(*[UNSURE] * 40) == []

    assert made.watch.memory.flaps["A", "thing"] == before


def test_settled_while_muted(home: Path) -> None:
    """The event has the title and the mark of the problem, so no notice is sent."""
    made = Flapping(home)
    made.rounds(*[WELL, *[SICK, WELL] * 10])
    hidden = report(finding("A")._replace(muted=True))
    assert made.rounds(hidden, *[WELL] * 40) == []

    [event] = made.heard.of(EventKind.STABLE)
    assert event.muted and "A is wrong; it has settled and is gone" in event.sentence()
