"""`check` says that a problem is not there for the first time, where it fits."""

from __future__ import annotations

from hermes_doctor.message import ordinal
from hermes_doctor.render import document, report as screen
from hermes_doctor.render.recurrence import recurrence
from hermes_doctor.terminal.lines import rows_of
from tests.helpers.histories import found
from tests.helpers.watch_parts import finding


def test_beside_the_title_or_below_it() -> None:
    """At most 80 columns with the code at the right edge."""
    short = finding("A")
    report = found(short)._replace(times={short.key: 4})
    assert recurrence(report, short, "", 80) == (" · 4th time in 7 days", "")
    long = short._replace(title="x" * 58)
    assert recurrence(report, long, "", 80) == ("", "4th time in 7 days")
    for length in range(40, 70):
        title = short._replace(title="y" * length)
        beside, _ = recurrence(report, title, "", 80)
        if beside:
            [line] = [
                one
                for one in screen.lines(found(title)._replace(times=report.times))
                if "y" in one.text
            ]
            assert rows_of(line, 80) == 1 and "4th" in line.text


def test_the_first_time_is_not_mentioned() -> None:
    """Neither is anything without a history."""
    one = finding("A")
    for times in (None, {}, {one.key: 1}):
        report = found(one)._replace(times=times)
        assert recurrence(report, one, "", 80) == ("", "")
        assert not any("in 7 days" in line.text for line in screen.lines(report))


def test_in_json() -> None:
    """A number, or null without a history."""
    one = finding("A")
    known = document.of_report(found(one)._replace(times={one.key: 2}))
    unknown = document.of_report(found(one))

    assert known["findings"][0]["times_in_7_days"] == 2
    assert unknown["findings"][0]["times_in_7_days"] is None


def test_ordinals() -> None:
    """As people write them."""
    wanted = {
        1: "1st",
        2: "2nd",
        3: "3rd",
        4: "4th",
        11: "11th",
        12: "12th",
        13: "13th",
        21: "21st",
    }
    wanted |= {101: "101st", 111: "111th", 1002: "1,002nd"}

    assert {number: ordinal(number) for number in wanted} == wanted
