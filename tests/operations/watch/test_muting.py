"""A watch and muted problems: nobody is notified, nothing is repaired, and mutes end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Report, Trouble
from hermes_doctor.core.preferences import mutes, places
from hermes_doctor.operations.watch import consent
from hermes_doctor.operations.watch.muting import Muting
from tests.helpers.watch_parts import finding, report, watch
from tests.operations.watch.test_notices import Post

SICK, WELL = report(finding("A")), report()


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folders for the mutes."""
    monkeypatch.setattr(places, "SYSTEM", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def mute(one: Report, hours: float | None = None, *, sticky: bool = False) -> None:
    """Mute what is in this report."""
    now = datetime.now(UTC)
    until = None if hours is None else now + timedelta(hours=hours)
    made = mutes.made_for(
        one.findings, "/home", "A", None, at=now, until=until, sticky=sticky, because=""
    )
    mutes.add(made)


def kinds(home: Path, *reports: Report) -> list[tuple[str, bool]]:
    """What a watch says of these rounds, and what of it is muted."""
    made, heard, _ = watch(home, reports)
    made.mark_muted = Muting().mark
    for number in range(len(reports)):
        made.round(begins=number == 0)
    return [(event.kind.value, event.muted) for event in heard]


def test_a_muted_problem_is_marked(home: Path) -> None:
    """The watch still says that it is there."""
    mute(SICK)
    assert kinds(home, SICK, SICK) == [("start", False), ("found", True)]
    assert len(mutes.load()) == 1


def test_a_mute_ends_with_its_problem(home: Path) -> None:
    """If the problem returns, it is new, and it is not muted."""
    mute(SICK)
    said = kinds(home, SICK, WELL, SICK)
    assert said == [
        ("start", False),
        ("found", True),
        ("note", False),
        ("gone", True),
        ("new", False),
    ]
    assert mutes.load() == []


def test_a_sticky_mute_stays(home: Path) -> None:
    """Also through rounds without the problem."""
    mute(SICK, sticky=True)
    assert kinds(home, SICK, WELL, SICK)[1:] == [("found", True), ("gone", True), ("new", True)]


def test_a_problem_that_gets_worse(home: Path) -> None:
    """Its mute is over, and it is reported."""
    mute(SICK)
    worse = report(finding("A", "critical"))
    assert kinds(home, SICK, worse)[1:] == [("found", True), ("note", False), ("worse", False)]
    assert mutes.load() == []


def test_a_mute_whose_time_is_over(home: Path) -> None:
    """The problem that is still there is reported once more."""
    mute(SICK, hours=1)
    made, heard, _ = watch(home, [SICK, SICK, SICK])
    made.mark_muted = Muting().mark
    made.round(begins=True)
    [known] = mutes.load()
    mutes.add(known._replace(until=datetime.now(UTC) - timedelta(seconds=1)))
    made.round(begins=False)
    made.round(begins=False)
    assert heard.kinds == ["start", "found", "note", "unmuted"]
    assert heard[2].title == "the mute of A has ended: its time is over"


def test_another_subject(home: Path) -> None:
    """Both are reported then."""
    mute(SICK)
    both = report(finding("A"), finding("A", subject="other"))
    assert kinds(home, SICK, both)[2:] == [("note", False), ("unmuted", False), ("new", False)]


def test_a_problem_that_is_muted_now(home: Path) -> None:
    """The watch says so, and a notice that waits is not sent."""
    made, heard, _ = watch(home, [SICK, SICK])
    made.mark_muted = Muting().mark
    made.round(begins=True)
    mute(SICK)
    made.round(begins=False)
    assert [(event.kind.value, event.muted) for event in heard][1:] == [
        ("found", False),
        ("muted", True),
    ]
    post = Post()
    post.hear("new")
    post.notices.observe(finding_event_of("muted", muted=True), post.notified)
    post.at(1.0)
    assert post.box.got == []


def test_a_subject_that_returns(home: Path) -> None:
    """It was gone, so it is a new one."""
    both = report(finding("A"), finding("A", subject="other"))
    mute(both)
    said = kinds(home, both, SICK, both)
    assert said[3:] == [("gone", True), ("note", False), ("unmuted", False), ("new", False)]


def test_a_mute_made_before_its_problem_learns_the_subjects(home: Path) -> None:
    """It ends when there is another one."""
    now = datetime.now(UTC)
    made = mutes.made_for([], "/home", "A", None, at=now, until=None, sticky=True, because="")
    mutes.add(made)
    both = report(finding("A"), finding("A", subject="other"))
    assert kinds(home, WELL, SICK, both)[1:] == [
        ("new", True),
        ("note", False),
        ("unmuted", False),
        ("new", False),
    ]


def test_a_mute_that_cannot_be_removed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This watch knows that it has ended, and says once that others do not."""

    def refuse(_: object) -> None:
        raise Trouble("Could not write it.")

    mute(SICK)
    monkeypatch.setattr(mutes, "replace", refuse)
    marks = Muting()
    assert marks.mark(SICK)[0].findings[0].muted
    assert marks.mark(WELL)[1] == [
        "the mute of A has ended: the problem is gone",
        "could not change the mutes: Could not write it.",
    ]
    assert len(marks.ended) == 1, "it is kept with the state of the watch"
    assert not Muting(marks.ended).mark(SICK)[0].findings[0].muted
    report_then, notes = marks.mark(SICK)
    assert not report_then.findings[0].muted and notes == []


def test_damaged_mutes(home: Path, tmp_path: Path) -> None:
    """Nothing is muted, the watch goes on, and says so once."""
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert kinds(home, SICK, SICK) == [("note", False), ("start", False), ("found", False)]


def test_mutes_that_are_damaged_again(tmp_path: Path) -> None:
    """Each time it is said once."""
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    path.parent.mkdir(parents=True)
    marks, notes = Muting(), []
    for content in ("{}", "{}", "", "{}"):
        path.write_text(content)
        if not content:
            path.unlink()
            mute(SICK)
        notes.append(len(marks.mark(SICK)[1]))
    assert notes == [1, 0, 0, 1]


def test_no_notice_of_a_muted_problem() -> None:
    """Neither of its start nor of its end; one that returns after that is sent."""
    post = Post()
    for kind in ("new", "gone"):
        event = finding_event_of(kind, muted=True)
        post.notices.observe(event, post.notified)
        post.at(1.0)
    assert post.box.got == []
    post.hear("new")
    post.at(2.0)
    assert post.box.got == ["new A"]


def test_a_notice_when_the_mute_is_over() -> None:
    """Also if the same problem was sent before it was muted."""
    post = Post()
    post.hear("new")
    post.at(1.0)
    post.hear("unmuted")
    post.at(2.0)
    assert post.box.got == ["new A", "unmuted A"]


def test_a_muted_problem_is_not_repaired() -> None:
    """Nothing of it is due."""
    from hermes_doctor.operations.watch.changes import CurrentFinding

    loud = finding("A", fix="mend")
    current = CurrentFinding(loud.severity, loud.title, "looks", 3, 3)
    for muted in (False, True):
        one = loud._replace(muted=muted)
        due = consent.is_due(one, report(one), current, 3, frozenset())
        assert due is not muted


def finding_event_of(kind: str, *, muted: bool):  # type: ignore[no-untyped-def]
    """An event of a problem."""
    from hermes_doctor.core.model import Severity
    from hermes_doctor.operations.watch.events import EventKind, WatchEvent
    from tests.helpers.watch_parts import AT

    error = Severity.ERROR
    return WatchEvent(EventKind(kind), AT, "it is wrong", error, "A", was=error, muted=muted)
