"""Each state of a thing is notified once, the last one always, and never too many."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from hermes_doctor.core.model import Severity
from hermes_doctor.operations.watch import notices
from hermes_doctor.operations.watch.channels import Notice, NotSent
from hermes_doctor.operations.watch.events import EventKind, Key, WatchEvent
from hermes_doctor.operations.watch.notices import MOST, QUIET, Notices
from tests.helpers.watch_parts import AT


class Box:
    """A channel that keeps what it gets."""

    name = "the box"

    def __init__(self) -> None:
        self.got: list[str] = []
        self.fails: Exception | None = None

    def send(self, notice: Notice) -> None:
        if self.fails:
            raise self.fails
        self.got.append(f"{notice.event.kind} {notice.event.code}")


class Post:
    """Notices into a box."""

    def __init__(self, threshold: str = "error") -> None:
        self.box = Box()
        self.notices = Notices([self.box], "/home", Severity(threshold))
        self.notified: dict[Key, tuple[str, float]] = {}

    def hear(self, kind: str, code: str = "A", severity: str | None = "error", **more: str) -> None:
        was = Severity(more["was"]) if "was" in more else None
        level = Severity(severity) if severity else None
        event = WatchEvent(
            EventKind(kind), AT, "it is wrong", level, code, more.get("subject", ""), was
        )
        self.notices.observe(event, self.notified)

    def at(self, now: float) -> list[str]:
        """What is said at that time; what was sent is in the box."""
        said = self.notices.flush(self.notified, now)
        self.notices.close(30.0)
        said += self.notices.flush(self.notified, now)
        return [event.title for event in said]


def test_new_and_gone() -> None:
    """Both ends of a problem are notified."""
    post = Post()
    post.hear("new")
    post.at(1000)
    post.hear("gone", severity=None, was="error")
    post.at(1000 + QUIET)

    assert post.box.got == ["new A", "gone A"]


def test_below_the_threshold_nobody_is_told() -> None:
    """Below the threshold nobody is told."""
    post = Post()
    for kind, severity in (("new", "warning"), ("worse", "warning"), ("note", None)):
        post.hear(kind, severity=severity)
    post.hear("gone", severity=None, was="warning")
    post.at(1000)
    assert post.box.got == []
    post.hear("worse", severity="error", was="warning")
    post.at(2000)
    post.hear("better", severity="info", was="error")
    post.at(3000)

    assert post.box.got == ["worse A", "better A"]


def test_what_flaps_is_a_handful_of_notices_and_the_last_word_arrives() -> None:
    """What flaps is a handful of notices and the last word arrives."""
    post = Post()
    for round in range(241):  # two hours, every half minute, and up at the end
        if round % 2 == 0:
            post.hear("new")
        else:
            post.hear("gone", severity=None, was="error")
        post.at(1000 + round * 30)
    post.at(1000 + 241 * 30 + QUIET)

    assert len(post.box.got) <= 14
    assert post.box.got[0] == "new A"
    assert post.notified["A", ""][0] == "error"


def test_up_and_down_between_two_notices_is_nothing() -> None:
    """Up and down between two notices is nothing."""
    post = Post()
    post.hear("new")
    post.at(1000)
    post.hear("gone", severity=None, was="error")
    post.hear("new")
    post.at(1000 + 2 * QUIET)

    assert post.box.got == ["new A"]


def test_what_came_and_went_before_anybody_was_told_is_nothing() -> None:
    """What came and went before anybody was told is nothing."""
    post = Post()
    post.hear("new")
    post.hear("gone", severity=None, was="error")
    post.at(1000)

    assert post.box.got == []


def test_a_watch_that_begins_anew_does_not_repeat_itself() -> None:
    """A watch that begins anew does not repeat itself."""
    post = Post()
    post.hear("new")
    post.at(1000)
    again = Post()
    again.notified = post.notified
    again.hear("found")
    again.at(5000)
    again.hear("gone", severity=None, was="error")
    again.at(6000)

    assert again.box.got == ["gone A"]


def test_no_flood() -> None:
    """So many an hour; the others wait for the next."""
    post = Post()
    for number in range(100):
        post.hear("new", code=f"A{number}")
    post.at(1000)
    assert len(post.box.got) == MOST
    post.at(1000 + 1800)
    assert len(post.box.got) == MOST
    post.at(1000 + 3601)

    assert len(post.box.got) == 2 * MOST


def test_repairs_are_told_each_and_say_that_it_is_gone() -> None:
    """Repairs are told each and say that it is gone."""
    post = Post()
    post.hear("new")
    post.at(1000)
    post.hear("healed")
    post.hear("gone", severity=None, was="error")
    post.at(1000 + QUIET)
    event = WatchEvent(EventKind.HEALED, AT + timedelta(hours=1), "again", Severity.ERROR, "A")
    post.notices.observe(event, post.notified)
    post.at(1000 + 3 * QUIET)

    assert post.box.got == ["new A", "healed A", "healed A"]


def test_a_budget_that_is_spent_is_told_and_a_mere_wait_is_not() -> None:
    """A budget that is spent is told and a mere wait is not."""
    post = Post()
    post.hear("waits", code="", severity="error")
    post.hear("waits", code="B", severity=None)
    post.at(1000)

    assert post.box.got == ["waits "]


def test_a_home_that_is_away_and_back() -> None:
    """A home that is away and back."""
    post = Post()
    post.hear("away", code="")
    post.at(1000)
    post.hear("back", code="", severity=None, was="error")
    post.at(1000 + QUIET)

    assert post.box.got == ["away ", "back "]


@pytest.mark.parametrize("error", [NotSent("it answered 500"), RuntimeError("secret")])
def test_one_that_fails_is_named_once_and_stops_nothing(error: Exception) -> None:
    """One that fails is named once and stops nothing."""
    post = Post()
    post.box.fails = error
    said = []
    for number in range(4):
        post.hear("new", code=f"A{number}")
        said += post.at(1000 + number)

    assert len(said) == 1 and "the box" in said[0] and "secret" not in said[0]
    post.box.fails = None
    post.hear("new", code="B")
    post.at(2000)
    assert post.box.got == ["new B"]
    post.box.fails = error
    post.hear("new", code="C")
    assert len(post.at(3000)) == 1, "it worked meanwhile"


def test_one_that_hangs_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs holds up nothing."""
    monkeypatch.setattr(notices, "MOST", 10000)
    post = Post()
    waits = threading.Event()
    monkeypatch.setattr(post.box, "send", lambda _: waits.wait(60))
    for number in range(notices.WAITING + 50):
        post.hear("new", code=f"A{number}")
        said = post.notices.flush(post.notified, 1000.0)

    post.notices.close(0.0)
    assert said and "dropped" in said[0].title
    waits.set()


def test_what_was_notified_is_not_kept_for_ever() -> None:
    """What was notified is not kept for ever."""
    post = Post()
    for number in range(50):
        post.hear("new", code=f"A{number}")
        post.at(1000 + number * 4000)
        post.hear("gone", code=f"A{number}", severity=None, was="error")
        post.at(1000 + number * 4000 + QUIET)
    post.at(1e9)

    assert not post.notified


def test_a_slow_channel_holds_up_no_other() -> None:
    """Each has a thread of its own."""
    waits, arrived = threading.Event(), threading.Event()

    class Slow:
        name = "the slow one"

        def send(self, _: Notice) -> None:
            waits.wait(60)

    class Quick:
        name = "the quick one"

        def send(self, _: Notice) -> None:
            arrived.set()

    made = Notices([Slow(), Quick()], "/home", Severity.ERROR)
    notified: dict[Key, tuple[str, float]] = {}
    made.observe(WatchEvent(EventKind.NEW, AT, "wrong", Severity.ERROR, "A"), notified)
    made.flush(notified, 1000.0)
    try:
        assert arrived.wait(60)
    finally:
        waits.set()
        made.close(60)
