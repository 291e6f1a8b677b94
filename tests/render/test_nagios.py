"""The output of a monitoring plugin: its state, its lines, and what must not be in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_doctor.core.model import CheckResult, Report, Severity, Status, Verdict, VerdictKind
from hermes_doctor.render import nagios
from tests.helpers.example_reports import WORKING, found, report

PERFORMANCE = re.compile(
    r"critical=\d+;;;0 error=\d+;;;0 warning=\d+;;;0 info=\d+;;;0 time=\d+\.\d{3}s;;;0"
)


def working(*severities: Severity) -> Report:
    """A bot that answers, with problems of these severities."""
    findings = [found(f"CODE-{n}", severity=one) for n, one in enumerate(severities)]
    return report(*findings)._replace(verdict=WORKING)


@pytest.mark.parametrize(
    ("severities", "state"),
    [
        ([], nagios.OK),
        ([Severity.INFO], nagios.OK),
        ([Severity.INFO, Severity.WARNING], nagios.WARNING),
        ([Severity.WARNING, Severity.ERROR], nagios.CRITICAL),
        ([Severity.CRITICAL], nagios.CRITICAL),
    ],
)
def test_the_worst_problem_counts(severities: list[Severity], state: int) -> None:
    """The state is in the exit code and in the first word."""
    one = working(*severities)

    assert nagios.state([one]) == state
    assert nagios.of_reports([one]).startswith(f"HERMES {nagios.NAMES[state]} - Your bot works. |")


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (VerdictKind.NOT_WORKING, nagios.CRITICAL),
        (VerdictKind.STOPPED, nagios.WARNING),
        (VerdictKind.NOT_SET_UP, nagios.WARNING),
        (VerdictKind.UNKNOWN, nagios.UNKNOWN),
        (VerdictKind.LIMITED, nagios.OK),
    ],
)
def test_a_bot_that_answers_nobody_is_never_ok(kind: VerdictKind, state: int) -> None:
    """Even if no check has found a problem."""
    one = report()._replace(verdict=Verdict(kind, "What is known."))

    assert nagios.state([one]) == state
    assert nagios.state([one._replace(complete=False)]) == nagios.OK, "with --only"


def test_what_could_not_be_checked() -> None:
    """It is unknown, unless a problem is known as well."""
    crashed = CheckResult("some-check", "data", Status.CRASHED, reason="ValueError at a.py:3")
    one = report(checks=(crashed, CheckResult("b", "data", Status.OK)))._replace(verdict=WORKING)

    assert nagios.state([one]) == nagios.UNKNOWN
    assert "unknown the check some-check crashed: ValueError at a.py:3\n" in nagios.of_reports(
        [one]
    )
    assert nagios.state([one, working(Severity.ERROR)]) == nagios.CRITICAL


def test_no_home_to_read() -> None:
    """A home that no check could read is unknown."""
    blind = report(checks=(CheckResult("a", "data", Status.UNKNOWN),))

    assert nagios.state([blind]) == nagios.UNKNOWN
    assert "No check could look at /srv/hermes" in nagios.of_reports([blind])


def test_the_lines() -> None:
    """One line for each problem, the worst first, and the performance data in the first line."""
    first, *lines = nagios.of_reports([working(Severity.WARNING, Severity.ERROR)]).splitlines()

    assert PERFORMANCE.fullmatch(first.partition(" | ")[2])
    assert lines == ["error CODE-1 title of CODE-1", "warning CODE-0 title of CODE-0"]


def test_several_homes() -> None:
    """Each line says which home it is about, and each home that is not OK has one."""
    other = working(Severity.ERROR)._replace(home=Path("/home/two"))
    stopped = report()._replace(
        home=Path("/home/three"), verdict=Verdict(VerdictKind.STOPPED, "It is stopped.")
    )
    crashed = CheckResult("a", "data", Status.CRASHED, reason="boom")
    fourth = report(checks=(crashed, CheckResult("b", "data", Status.OK)))._replace(
        home=Path("/home/four"), verdict=WORKING
    )

    first, *lines = nagios.of_reports([working(), stopped, fourth, other]).splitlines()

    said = "HERMES CRITICAL - 4 homes: 1 critical, 1 warning, 1 unknown, 1 ok |"
    assert first.startswith(said)
    assert lines == [
        "critical /home/two: Your bot works.",
        "warning /home/three: It is stopped.",
        "unknown /home/four: Your bot works.",
        "error CODE-0 /home/two: title of CODE-0",
        "unknown /home/four: the check a crashed: boom",
    ]


@pytest.mark.parametrize("bad", ["|", "\n", "\x1b[31m", "\x00", "\u2028", "\udcff"])
def test_characters_with_a_meaning(bad: str) -> None:
    """A title may hold what a plugin must not print."""
    one = report(found("A", title=f"before{bad}after"))._replace(verdict=WORKING)

    shown = nagios.of_reports([one])

    assert shown.count("|") == 1
    assert len(shown.splitlines()) == 2
    assert all(line.isprintable() for line in shown.splitlines())
    assert shown.encode()


@pytest.mark.parametrize("title", ["x" * 5000, "小" * 500])
def test_at_most_4_kb(title: str) -> None:
    """What has no room is counted."""
    one = report(*(found(f"A-{n}", title=title) for n in range(300)))._replace(verdict=WORKING)

    shown = nagios.of_reports([one])

    assert len(shown.encode()) < 4096
    listed = len([line for line in shown.splitlines() if line.startswith("error")])
    assert shown.endswith(f"... and {300 - listed} more lines\n")


def test_a_check_that_could_not_run() -> None:
    """One line, without performance data."""
    assert nagios.of_trouble("No home | here.\nAt all.") == (
        "HERMES UNKNOWN - No home / here. At all.\n"
    )
