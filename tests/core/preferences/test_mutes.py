"""When a mute ends, and what it mutes until then."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hermes_doctor.core.model import CheckResult, Finding, Report, Severity, Status, VerdictKind
from hermes_doctor.core.preferences import mutes
from hermes_doctor.core.preferences.mutes import Mute
from tests.helpers.example_reports import NOW, found, report

LOOKED = (CheckResult("look", "data", Status.OK),)


def seen(*findings: Finding, checks: tuple[CheckResult, ...] = LOOKED) -> Report:
    """A report of these findings, all of one check."""
    return report(*(one._replace(check="look") for one in findings), checks=checks)


def muting(first: Report, subject: str | None = None, **more: object) -> Mute:
    """A mute of code A, made while this was the report."""
    values: dict[str, object] = {"until": None, "sticky": False, "because": ""}
    meant = [f for f in first.findings if f.code == "A" and subject in (None, f.subject)]
    return mutes.made_for(meant, "/srv/hermes", "A", subject, at=NOW, **values | more)  # type: ignore[arg-type]


def muted(one: Report) -> list[tuple[str, str]]:
    """The keys of the muted findings."""
    return [f.key for f in one.findings if f.muted]


SICK = seen(found("A"), found("B"))


def test_only_what_was_meant_is_muted() -> None:
    """The code in its home, or one subject of it."""
    both = seen(found("A"), found("A", subject="y"), found("B"))
    assert muted(mutes.apply(both, [muting(both)], NOW)) == [("A", "x"), ("A", "y")]
    assert muted(mutes.apply(both, [muting(both, "y")], NOW)) == [("A", "y")]
    elsewhere = muting(both)._replace(home="/srv/other")
    assert mutes.apply(both, [elsewhere], NOW) is both


def test_it_ends_when_the_problem_gets_worse() -> None:
    """A milder one stays muted."""
    mute = muting(SICK)
    worse = seen(found("A", severity=Severity.CRITICAL))
    milder = seen(found("A", severity=Severity.WARNING))
    assert mute.why_ended(worse, NOW) == "the problem got worse"
    assert mute.why_ended(milder, NOW) is None
    assert muted(mutes.apply(worse, [mute], NOW)) == []


def test_it_ends_when_there_is_another_subject() -> None:
    """Of a mute of one subject, others are not its concern."""
    more = seen(found("A"), found("A", subject="y"))
    assert muting(SICK).why_ended(more, NOW) == "there is another subject, y"
    assert muted(mutes.apply(more, [muting(SICK)], NOW)) == []
    assert muting(SICK, "x").why_ended(more, NOW) is None
    fewer = muting(more)
    assert fewer.why_ended(SICK, NOW) is None


def test_it_ends_when_the_problem_is_gone() -> None:
    """Unless it is sticky."""
    assert muting(SICK).why_ended(seen(found("B")), NOW) == "the problem is gone"
    assert muting(SICK, sticky=True).why_ended(seen(), NOW) is None


@pytest.mark.parametrize(
    "checks",
    [
        (),
        (CheckResult("look", "data", Status.UNKNOWN, reason="no answer"),),
        (CheckResult("look", "data", Status.CRASHED, reason="a bug"),),
        (CheckResult("look", "data", Status.SKIPPED, reason="no gateway"),),
        (CheckResult("look", "data", Status.PROBLEM, reason="one file could not be read"),),
        (CheckResult("look", "data", Status.OK, reason="the first 40 MB"),),
    ],
)
def test_what_was_not_looked_for_is_not_gone(checks: tuple[CheckResult, ...]) -> None:
    """The check did not run, or could not look at everything."""
    assert muting(SICK).why_ended(seen(checks=checks), NOW) is None


def test_its_time() -> None:
    """It ends then, sticky or not."""
    for sticky in (False, True):
        mute = muting(SICK, until=NOW + timedelta(hours=1), sticky=sticky)
        assert mute.why_ended(SICK, NOW) is None
        assert mute.why_ended(SICK, NOW + timedelta(hours=1)) == "its time is over"


def test_made_before_the_problem_is_there() -> None:
    """Any subject counts then; a critical problem only if the mute has an end."""
    mute = muting(seen(), sticky=True)
    critical = seen(found("A", severity=Severity.CRITICAL))
    assert muted(mutes.apply(SICK, [mute], NOW)) == [("A", "x")]
    assert muted(mutes.apply(critical, [mute], NOW)) == []
    ending = muting(seen(), sticky=True, until=NOW + timedelta(hours=1))
    assert muted(mutes.apply(critical, [ending], NOW)) == [("A", "x")]


def test_all_that_have_ended() -> None:
    """With the reason; those of other homes are left alone."""
    known = [muting(SICK), muting(SICK)._replace(home="/srv/other")]
    assert mutes.ended(seen(), known, NOW) == [(known[0], "the problem is gone")]


def test_a_problem_that_only_a_close_look_finds() -> None:
    """A quick check cannot tell that it is gone."""
    mute = muting(SICK, options=("--deep",))
    assert mute.why_ended(seen(), NOW) is None
    assert mute.why_ended(seen()._replace(options=" --deep"), NOW) == "the problem is gone"


def test_a_clock_that_was_set_back() -> None:
    """A mute of the future would last too long."""
    mute = muting(SICK, until=NOW + timedelta(hours=1))
    assert mute.why_ended(SICK, NOW - timedelta(minutes=1)) is None
    assert "the clock was set back" in (mute.why_ended(SICK, NOW - timedelta(days=1)) or "")


def test_names() -> None:
    """As the operator types them."""
    assert muting(SICK).name == "A"
    assert muting(seen(found("A", subject="a/b")), "a/b").name == "A/a/b"


def test_the_verdict_of_a_bot_whose_silence_is_muted() -> None:
    """It says so: nobody gets an answer, whether that is muted or not."""
    from hermes_doctor.diagnosis.examination.verdict import judge

    silent = seen(found("SILENT"), found("B"))
    verdict = judge(silent._replace(findings=(silent.findings[0]._replace(muted=True),)))
    assert verdict.kind is VerdictKind.NOT_WORKING and verdict.muted
    assert verdict.headline == (
        "Your bot is not working, and the reason is muted: title of SILENT."
    )


def test_two_findings_with_one_subject() -> None:
    """The worse one counts, whichever comes first."""
    mild, worse = found("A", severity=Severity.WARNING), found("A")
    for both in (seen(mild, worse), seen(worse, mild)):
        assert muting(both).why_ended(both, NOW) is None
