"""The watch goes on: through a home that is gone, a look that crashes, sleep and clocks."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Report
from hermes_doctor.operations.history.when_to_record import Recorder
from hermes_doctor.operations.watch import home_reachable
from hermes_doctor.operations.watch.clocks import ClockReading
from hermes_doctor.operations.watch.events import EventKind, EventPrinter, WatchEvent
from hermes_doctor.operations.watch.heal import Healer
from hermes_doctor.operations.watch.rounds import Watch
from hermes_doctor.operations.watch.signals import Signals
from hermes_doctor.operations.watch.state import FailedRepair, WatchState
from hermes_doctor.operations.watch.store import WatchStateFiles
from tests.helpers import support
from tests.helpers.histories import found, rows, seconds
from tests.helpers.watch_parts import Hands, Heard, finding, report, watch

SICK, WELL = report(finding("A")), report()


def test_how_things_stand_and_then_what_changes(home: Path) -> None:
    """How things stand and then what changes."""
    made, heard, _ = watch(home, [SICK, SICK, WELL, WELL, SICK])
    for number in range(5):
        made.round(begins=number == 0)

    assert heard.kinds == ["start", "found", "gone", "new"]
    assert heard[0].title == "watches: 1 problem (1 error); gateway not running"


def test_one_that_begins_anew_knows_what_was(home: Path) -> None:
    """One that begins anew knows what was."""
    first, _, _ = watch(home, [SICK, SICK])
    first.round(begins=True)
    first.round(begins=False)
    second, heard, _ = watch(home, [report(finding("A"), finding("B")), WELL])
    second.round(begins=True)

    assert [(e.kind.value, e.code) for e in heard] == [("start", ""), ("found", "A"), ("new", "B")]
    assert second.memory.standing["A", "thing"].rounds == 3, "it goes on counting"


def test_what_was_seen_long_ago_is_not_in_a_row(home: Path) -> None:
    """What was seen long ago is not in a row."""
    first, _, _ = watch(home, [SICK, SICK])
    first.round(begins=True)
    first.round(begins=False)
    store = WatchStateFiles(Home(home), home.parent / "state")
    known = store.load("one")
    assert known
    assert known.clocks
    known.clocks = ClockReading(*(one - 3600 for one in known.clocks if one is not None))
    store.save(known)
    second, _, _ = watch(home, [SICK])
    second.round(begins=True)

    assert second.memory.standing["A", "thing"].rounds == 1


def test_single_rounds_tell_only_what_changed(home: Path) -> None:
    """Single rounds tell only what changed."""
    told = []
    for one in (SICK, SICK, WELL, WELL):
        made, heard, _ = watch(home, [one])
        assert made.once(always_report=False) is one
        told.append(heard.kinds)

    assert told == [["start", "found"], [], ["gone"], []]
    made, heard, _ = watch(home, [WELL])
    made.once(always_report=True)
    assert heard.kinds == ["quiet"], "a person who looks sees that it did"


def test_a_home_that_goes_and_comes_back(home: Path) -> None:
    """A home that goes and comes back."""
    made, heard, _ = watch(home, [SICK, SICK, SICK, SICK], after=9)
    made.round(begins=True)
    away = home.rename(home.parent / "elsewhere")
    home.mkdir()  # as an unmounted folder is: there, and empty
    made.round(begins=False)
    made.round(begins=False)
    home.rmdir()
    made.round(begins=False)
    away.rename(home)
    made.round(begins=False)

    assert heard.kinds == ["start", "found", "away", "back"]
    assert made.memory.standing["A", "thing"].rounds == 1, "counted anew, and nothing was gone"


def test_a_home_that_does_not_answer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that does not answer."""
    waits = threading.Event()
    monkeypatch.setattr(home_reachable, "REACHABLE", 0.05)
    real = homes.looks_like_home
    monkeypatch.setattr(homes, "looks_like_home", lambda _: waits.wait(60))
    made, heard, _ = watch(home, [WELL, WELL])
    made.round(begins=True)
    assert heard.kinds == ["away"] and "not answer" in heard[0].title
    monkeypatch.setattr(homes, "looks_like_home", real)
    waits.set()
    made.round(begins=False)

    assert heard.kinds == ["away", "back"]


def test_looks_that_hang_do_not_pile_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead network drive: each look leaves threads behind, but only so many."""
    monkeypatch.setattr(home_reachable, "HANGING", 6)
    monkeypatch.setattr(home_reachable, "OURS", "probe-hangs")  # other tests may leave some behind
    waits = threading.Event()

    def look() -> Report:
        for _ in range(3):
            threading.Thread(target=waits.wait, name="probe-hangs", daemon=True).start()
        return WELL

    made, heard, _ = watch(home, look)
    for number in range(50):
        made.round(begins=number == 0)

    assert heard.kinds == ["start", "away"]
    hanging = [one for one in threading.enumerate() if one.name == "probe-hangs"]
    assert len(hanging) == 9
    waits.set()
    for one in hanging:
        one.join(30)
    made.round(begins=False)
    assert heard.kinds == ["start", "away", "back"]


def test_a_look_that_crashes_is_told_once_and_tried_again(home: Path) -> None:
    """A look that crashes is told once and tried again."""
    errors = [KeyError("secret"), KeyError("secret"), CouldNotLook("no rights")]
    given: Iterator[Report | Exception] = iter([SICK, *errors, SICK])

    def next_one() -> Report:
        one = next(given)
        if isinstance(one, Exception):
            raise one
        return one

    made, heard, _ = watch(home, next_one)
    for number in range(5):
        made.round(begins=number == 0)

    assert heard.kinds == ["start", "found", "note", "note"]
    assert "secret" not in heard[2].title and "KeyError" in heard[2].title


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        ({"asleep": 3600.0}, "slept for"),
        ({"wall": -86400.0}, "set back"),
        ({"wall": 86400.0 * 400}, "set forward"),
    ],
)
def test_after_a_gap_it_counts_anew(home: Path, moved: dict[str, float], said: str) -> None:
    """After a gap it counts anew."""
    made, heard, clock = watch(home, [SICK] * 4, after=9)
    made.round(begins=True)
    clock.turn(30)
    made.round(begins=False)
    assert made.memory.standing["A", "thing"].rounds == 2
    clock.turn(30, **moved)
    made.round(begins=False)

    assert heard.kinds == ["start", "found", "gap"] and said in heard[2].title
    assert made.memory.standing["A", "thing"].rounds == 1
    clock.turn(30)
    made.round(begins=False)
    assert heard.kinds == ["start", "found", "gap"]


def test_a_quiet_day_is_one_line(home: Path) -> None:
    """A quiet day is one line."""
    made, heard, clock = watch(home, lambda: WELL, interval=3600.0)
    made.round(begins=True)
    for _ in range(50):
        clock.turn(3600)
        made.round(begins=False)

    assert heard.kinds == ["start", "quiet", "quiet"]


class Slow(Signals):
    """Ends the watch after so many waits, and keeps how long each was to be."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.most = most

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.ending = len(self.waits) >= self.most


def test_a_round_that_takes_longer_than_the_interval_is_not_piled_up(home: Path) -> None:
    """A round that takes longer than the interval is not piled up."""
    signals = Slow(3)
    spent = iter([5.0, 100.0, 29.0])

    def look() -> Report:
        clock.turn(next(spent))
        return WELL

    made, _, clock = watch(home, look, signals=signals)
    made.run()

    assert signals.waits == [25.0, 30.0, 1.0]


def test_after_a_repair_it_looks_at_once(home: Path) -> None:
    """After a repair it looks at once."""

    class Heals(Healer):
        def __init__(self) -> None:
            """It needs nothing."""

        def attempt(
            self, report: Report, memory: WatchState, at: object
        ) -> tuple[list[WatchEvent], bool]:
            return [], bool(report.findings)

        def is_exhausted(self) -> bool:
            return False

    signals = Slow(2)
    made, _, _ = watch(home, [SICK, WELL], signals=signals)
    made.enable(Heals())
    forgotten: list[int] = []
    made.forget_last_report = lambda: forgotten.append(made.rounds)
    made.run()

    assert signals.waits == [0, 30.0] and 1 in forgotten


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_the_middle_of_a_look(home: Path, number: int) -> None:
    """It ends in the middle of a look."""

    def look() -> Report:
        os.kill(os.getpid(), number)
        threading.Event().wait(60)
        raise AssertionError("it was to end at once")

    before = signal.getsignal(signal.SIGTERM)
    made, heard, _ = watch(home, look)
    made.run()

    assert heard.kinds == ["end"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_sighup_wakes_it(home: Path) -> None:
    """And lets it examine the home even if nothing has changed."""
    count = forgotten = 0

    def look() -> Report:
        nonlocal count
        count += 1
        os.kill(os.getpid(), signal.SIGHUP if count < 3 else signal.SIGTERM)
        return WELL

    def forget() -> None:
        nonlocal forgotten
        forgotten += 1

    made, heard, _ = watch(home, look, interval=3600.0)
    made.forget_last_report = forget
    made.run()

    assert count == 3 and forgotten >= 2 and heard.kinds[-1] == "end"


def forgetting(home: Path, *reports: Report) -> list[int]:
    """After which rounds on these reports the watch forgets the last one."""
    made, _, clock = watch(home, reports)
    made.round(begins=True)
    forgotten: list[int] = []
    made.forget_last_report = lambda: forgotten.append(made.rounds)
    for _ in reports[1:]:
        clock.turn(30)
        made.round(begins=False)
    return forgotten


def test_when_the_last_report_no_longer_counts(home: Path) -> None:
    """During an error, and while a check has just begun to have no answer."""
    blind = report(status="unknown")
    assert forgetting(home, report(), report(finding("A", "warning")), report()) == []
    assert forgetting(home, report(), report(finding("A")), report()) == [2]
    assert forgetting(home, report(), report(finding("A")._replace(muted=True))) == []
    assert forgetting(home, report(), blind, blind, blind, blind) == [2, 3]


def test_a_gap_and_another_folder_forget_the_last_report(home: Path) -> None:
    """What was seen before may be of another time, or of another home."""
    made, _, clock = watch(home, [report()] * 3)
    made.round(begins=True)
    forgotten: list[int] = []
    made.forget_last_report = lambda: forgotten.append(made.rounds)
    clock.turn(30, asleep=600)
    made.round(begins=False)
    home.rename(home.with_name("moved"))
    shutil.copytree(home.with_name("moved"), home)
    made.round(begins=False)
    assert forgotten == [2, 3]


def test_what_cannot_be_written_down_is_told_once(home: Path) -> None:
    """What cannot be written down is told once."""
    place = home.parent / "state"
    place.write_text("a file in its way")
    made, heard, _ = watch(home, lambda: WELL)
    for number in range(3):
        made.round(begins=number == 0)

    assert heard.kinds == ["start", "note"]


def test_events_reach_the_notices(home: Path) -> None:
    """With what is broken, so that no notice goes through it."""

    class Notices:
        heard = Heard()

        def observe(self, event: WatchEvent, notified: object) -> None:
            self.heard(event)

        def stand(self, subjects: frozenset[str]) -> None:
            assert subjects == {"telegram"}

        def flush(self, notified: object, now: float) -> list[WatchEvent]:
            return []

    sick = report(finding("A", subject="telegram"), finding("B", "info", subject="qqbot"))
    made, _, _ = watch(home, [sick], notices=Notices())
    made.round(begins=True)

    assert Notices.heard.of(EventKind.FOUND)


def test_another_folder_in_the_place_of_the_home_counts_anew(home: Path) -> None:
    """Whether it is put there between two rounds or between two processes."""
    made, heard, _ = watch(home, [SICK, SICK, SICK], after=9)
    made.round(begins=True)
    made.round(begins=False)
    made.memory.failures["A", "thing"] = FailedRepair(2, 1e9)
    home.rename(home.with_name("old"))
    support.healthy(home)
    made.round(begins=False)
    assert heard.kinds[-1] == "gap" and "the folder of the home was replaced" in heard[-1].title
    assert made.memory.standing["A", "thing"].rounds == 1 and not made.memory.failures
    home.rename(home.with_name("second"))
    support.healthy(home)
    second, heard, _ = watch(home, [SICK], after=9)
    second.round(begins=True)

    assert second.memory.standing["A", "thing"].rounds == 1 and "gap" in heard.kinds


def test_a_listener_that_is_gone_ends_it_and_a_full_disk_does_not(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A listener that is gone ends it, a full disk does not."""
    made, _, _ = watch(home, [SICK, WELL])
    with open("/dev/full", "w") as full:
        made.print_event = EventPrinter(home, out=full)
        made.round(begins=True)
        made.round(begins=False)
        assert not made.signals.ending and made.rounds == 2
        with contextlib.suppress(OSError):
            full.close()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "no space left" in said
    read, write = os.pipe()
    os.close(read)
    made, _, _ = watch(home, [WELL])
    with open(write, "w") as pipe:
        made.print_event = EventPrinter(home, out=pipe)
        made.round(begins=True)
        with contextlib.suppress(OSError):
            pipe.close()
    assert made.signals.ending and capsys.readouterr().err == ""


def with_history(home: Path, reports: list[Report]) -> tuple[Watch, Heard, Hands]:
    """A watch of these reports that records them."""
    made, heard, clock = watch(home, reports)
    made.history = Recorder(Home(home), 30.0, boot="one", file=home.parent / "state" / "history.db")
    return made, heard, clock


def test_rounds_are_recorded(home: Path) -> None:
    """The problem, and the time in which the machine slept as unknown."""
    made, heard, clock = with_history(home, [found("A"), found("A"), found(), found(), found()])
    for number in range(5):
        made.round(begins=number == 0)
        clock.turn(30.0, asleep=3600.0 if number == 3 else 0.0)
    assert made.history is not None
    made.history.flush()
    file = made.history.file

    assert [(row["code"], row["how"]) for row in rows(file, "episodes")] == [("A", "gone")]
    assert seconds(file) == {"working": 30, "limited": 0, "silent": 60}
    assert "note" not in heard.kinds


def test_a_history_that_cannot_be_written_is_one_note(home: Path) -> None:
    """The watch goes on, and says it once."""
    (home.parent / "state").mkdir()
    (home.parent / "state" / "history.db").mkdir()
    made, heard, clock = with_history(home, [found("A"), found("B"), found("C")])
    for number in range(3):
        clock.turn(30.0)
        made.round(begins=number == 0)

    [note] = heard.of(EventKind.NOTE)
    assert "is not a regular file, so the history is off" in note.title
    assert heard.kinds.count("new") == 2


def test_a_damaged_history_is_reported(home: Path) -> None:
    """Set aside, started again, reported."""
    support.put(home.parent / "state" / "history.db", b"nonsense" * 999)
    made, heard, _ = with_history(home, [found("A"), found("B")])
    made.round(begins=True)
    made.round(begins=False)

    [note] = heard.of(EventKind.NOTE)
    assert "the history was damaged" in note.title and "history.db.damaged-" in note.title
    assert [row["code"] for row in rows(home.parent / "state" / "history.db", "episodes")] == [
        "A",
        "B",
    ]


def test_a_home_that_is_away_is_not_counted(home: Path) -> None:
    """While it is missing, nothing is recorded; then its history goes on."""
    made, _, clock = with_history(home, [found(), found(), found()])
    away = home.with_name("away")
    for number in range(6):
        if number == 2:
            home.rename(away)
        if number == 5:
            away.rename(home)
        made.round(begins=number == 0)
        clock.turn(30.0)
    assert made.history is not None

    assert seconds(made.history.file)["working"] == 30
    assert len(rows(made.history.file, "homes")) == 1
