"""Metrics for the textfile collector: what they say, and that Prometheus reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_doctor.core.model import (
    CheckResult,
    Rung,
    RungState,
    Severity,
    Status,
    Verdict,
    VerdictKind,
)
from hermes_doctor.render import prometheus
from tests.helpers.example_reports import NOW, found, working


def test_a_healthy_home() -> None:
    """Every severity has a number, also if it is zero."""
    shown = prometheus.of_reports([working()])

    for severity in Severity:
        line = f'hermes_doctor_findings{{home="/srv/hermes",severity="{severity.value}"}} 0\n'
        assert line in shown
    assert 'hermes_doctor_up{home="/srv/hermes"} 1\n' in shown
    moment = f'hermes_doctor_last_run_timestamp_seconds{{home="/srv/hermes"}} {NOW.timestamp():.3f}'
    assert moment in shown
    assert 'hermes_doctor_check_seconds{home="/srv/hermes"} 0.1000\n' in shown
    assert "hermes_doctor_finding{" not in shown
    assert "repairs" not in shown


def test_no_subject_is_a_label() -> None:
    """Two problems with one code are one sample: names of users would make a new series each."""
    shown = prometheus.of_reports([working(found("A", subject="alice"), found("A", subject="bob"))])

    labels = 'home="/srv/hermes",code="A",severity="error",muted="false"'
    assert f"hermes_doctor_finding{{{labels}}} 2\n" in shown
    assert "alice" not in shown


def test_liveness() -> None:
    """What is unknown is neither 0 nor 1."""
    holds = (RungState.OK, RungState.FAILED, RungState.UNKNOWN)
    ladder = tuple(Rung(hold.value, hold, "") for hold in holds)

    shown = prometheus.of_reports([working()._replace(ladder=ladder)])

    values = re.findall(r'hermes_doctor_liveness\{home="/srv/hermes",rung="(\w+)"\} (\w+)', shown)
    assert values == [("ok", "1"), ("failed", "0"), ("unknown", "NaN")]


def test_a_home_that_nobody_can_read() -> None:
    """It is down, and not healthy."""
    blind = working(checks=(CheckResult("a", "data", Status.UNKNOWN),))

    assert 'hermes_doctor_up{home="/srv/hermes"} 0\n' in prometheus.of_reports([blind])


def test_several_homes() -> None:
    """All samples of a metric stand together, below one explanation."""
    homes = [working()._replace(home=Path(f"/home/{name}")) for name in ("one", "two")]

    lines = prometheus.of_reports(homes).splitlines()

    at = lines.index("# TYPE hermes_doctor_up gauge")
    assert lines[at + 1 : at + 3] == [
        'hermes_doctor_up{home="/home/one"} 1',
        'hermes_doctor_up{home="/home/two"} 1',
    ]
    assert len([line for line in lines if line.startswith("# HELP hermes_doctor_up ")]) == 1


def test_repairs_of_a_watch() -> None:
    """They are a counter."""
    repairs = prometheus.Repairs(Path("/srv/hermes"), 4, exhausted=True)

    shown = prometheus.of_reports([working()], repairs)

    assert "# TYPE hermes_doctor_repairs_total counter\n" in shown
    assert 'hermes_doctor_repairs_total{home="/srv/hermes"} 4\n' in shown
    assert 'hermes_doctor_repair_budget_exhausted{home="/srv/hermes"} 1\n' in shown


@pytest.mark.parametrize(
    ("kind", "up", "works"),
    [
        (VerdictKind.WORKING, "1", "1"),
        (VerdictKind.LIMITED, "1", "1"),
        (VerdictKind.NOT_WORKING, "1", "0"),
        (VerdictKind.STOPPED, "1", "0"),
        (VerdictKind.NOT_SET_UP, "1", "0"),
        (VerdictKind.UNKNOWN, "0", "NaN"),
    ],
)
def test_verdicts(kind: VerdictKind, up: str, works: str) -> None:
    """A home of which nothing is known is not up, and its bot neither works nor fails."""
    one = working()._replace(verdict=Verdict(kind, ""))

    shown = prometheus.of_reports([one])

    assert f'hermes_doctor_up{{home="/srv/hermes"}} {up}\n' in shown
    assert f'hermes_doctor_bot_works{{home="/srv/hermes"}} {works}\n' in shown
    some = prometheus.of_reports([one._replace(complete=False)])
    assert 'hermes_doctor_up{home="/srv/hermes"} 1\n' in some, "with --only"
    assert 'hermes_doctor_bot_works{home="/srv/hermes"} NaN\n' in some, "with --only"


def test_checks_that_crashed() -> None:
    """They are counted, although they find nothing."""
    crashed = working(checks=(CheckResult("a", "data", Status.CRASHED),))

    labels = 'home="/srv/hermes",status="crashed"'
    assert f"hermes_doctor_checks{{{labels}}} 1\n" in prometheus.of_reports([crashed])


def test_homes_whose_names_are_not_utf_8() -> None:
    """Two of them stay two: the collector refuses the same labels twice."""
    homes = [working()._replace(home=Path(f"/srv/{byte}")) for byte in ("\udcff", "\udcfe")]

    names = re.findall(r"^hermes_doctor_up\{(.*)\}", prometheus.of_reports(homes), re.M)

    assert names == [r'home="/srv/\\xff"', r'home="/srv/\\xfe"']


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ('/srv/a"b', r"/srv/a\"b"),
        ("/srv/a\\b", r"/srv/a\\b"),
        ("/srv/a\nb", r"/srv/a\nb"),
        ("/srv/小", "/srv/小"),
    ],
)
def test_odd_paths(path: str, label: str) -> None:
    """A path may hold quotes, line breaks and bytes that are not UTF-8."""
    shown = prometheus.of_reports([working()._replace(home=Path(path))])

    assert f'hermes_doctor_up{{home="{label}"}} 1\n' in shown
    assert shown.encode()
