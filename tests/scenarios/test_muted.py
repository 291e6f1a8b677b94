"""A muted finding is marked in every format, and counts in none."""

from __future__ import annotations

import json
from datetime import timedelta
from xml.etree import ElementTree

import pytest

from hermes_doctor.cli.check_run import FORMATS, exit_code
from hermes_doctor.core.model import CheckResult, Report, Severity, Status
from hermes_doctor.diagnosis.examination.verdict import judge
from hermes_doctor.render import document, github, junit, nagios, prometheus, report as text
from tests.helpers.example_reports import NOW, WORKING, found, report

CHECKS = (CheckResult("look", "data", Status.PROBLEM),)
MUTED = found("A", muted=True, check="look")
ONE = report(MUTED, checks=CHECKS)._replace(verdict=WORKING)
ERROR = {ONE.home: frozenset({"error"})}
SILENT = report(found("SILENT", muted=True, check="look"), checks=CHECKS)


def screen(one: Report, *, verbose: bool = False) -> str:
    """The report as text."""
    return "\n".join(line.text for line in text.lines(one, verbose=verbose))


def test_the_exit_code() -> None:
    """A muted problem does not fail a check, whatever --fail-on says."""
    assert exit_code([ONE], ERROR) == 0
    assert exit_code([ONE], {ONE.home: frozenset({"info"})}) == 0
    loud = ONE._replace(findings=(MUTED, found("B")))
    assert exit_code([loud], ERROR) == 1


def test_text() -> None:
    """All muted codes are in one line; with -v, each has its title."""
    assert screen(ONE).count("title of A") == 0
    assert "· Muted: A. See: hermes-doctor mutes" in screen(ONE)
    assert "Muted\n  · title of A  A" in screen(ONE, verbose=True)
    assert "1 ✗ title of B  B" in screen(ONE._replace(findings=(MUTED, found("B"))))


@pytest.mark.parametrize(("hours", "shown"), [(1, True), (23, True), (25, False)])
def test_text_of_a_new_mute(hours: int, shown: bool) -> None:
    """Whatever was muted in the last day is right below the headline, the first three in full."""
    since = NOW - timedelta(hours=hours)
    many = [found(code, muted=True, check="look") for code in "ABCDE"]
    made = report(*many, checks=CHECKS)._replace(
        verdict=WORKING, muted_since={one.key: since for one in many}
    )

    top = screen(made).split("\n\n")[1].splitlines()

    assert top[0] == "✓ Your bot works."
    assert len(top) == (5 if shown else 1)
    if shown:
        assert top[1].startswith("! muted since ") and f"({hours} h ago): title of A" in top[1]
        assert top[4] == "! and 2 more: hermes-doctor mutes"


def test_json() -> None:
    """It is a finding with a mark, and counted by itself."""
    made = document.of_report(ONE)
    assert made["findings"][0]["muted"] is True
    assert made["summary"]["muted"] == 1 and made["summary"]["counts"]["error"] == 0
    assert made["summary"]["status"] == "ok"
    assert json.loads(document.dump_reports([ONE, ONE]))["summary"]["muted"] == 2
    assert json.loads(document.dump(made)) == made


def test_prometheus() -> None:
    """Its series has the label muted."""
    made = prometheus.of_reports([ONE])
    assert 'code="A",severity="error",muted="true"} 1' in made
    assert 'hermes_doctor_findings{home="/srv/hermes",severity="error"} 0' in made
    assert 'hermes_doctor_silence_muted{home="/srv/hermes"} 0' in made


def test_nagios() -> None:
    """Its line begins with `muted`, below all others."""
    assert nagios.state([ONE]) == nagios.OK
    assert nagios.of_reports([ONE]).splitlines()[1:] == ["muted error A title of A"]
    loud = ONE._replace(findings=(MUTED, found("B", severity=Severity.WARNING)))
    assert nagios.of_reports([loud]).splitlines()[1:] == [
        "warning B title of B",
        "muted error A title of A",
    ]


def test_junit() -> None:
    """It is in the output of a case that passes."""
    tree = ElementTree.fromstring(junit.of_reports([ONE], ERROR).encode())
    [case] = tree.iter("testcase")
    assert case.find("failure") is None
    assert (case.findtext("system-out") or "").startswith("muted error A: title of A")


def test_github() -> None:
    """It is a notice."""
    assert github.of_reports([ONE]).startswith("::notice title=A::Muted: title of A.")


def test_no_format_was_forgotten() -> None:
    """A new format needs a test here."""
    assert set(FORMATS) == {"text", "json", "prometheus", "nagios", "junit", "github"}


def test_a_bot_that_is_silent_for_a_muted_reason() -> None:
    """Everything says that it does not work, and nothing raises an alarm."""
    assert judge(SILENT) == SILENT.verdict
    assert "✗ Your bot is not working, and the reason is muted: title of SILENT." in screen(SILENT)
    assert nagios.state([SILENT]) == nagios.OK
    made = prometheus.of_reports([SILENT])
    assert 'hermes_doctor_bot_works{home="/srv/hermes"} 0' in made
    assert 'hermes_doctor_silence_muted{home="/srv/hermes"} 1' in made
    assert exit_code([SILENT], ERROR) == 0


@pytest.mark.parametrize("other", ["SILENT", "B"])
def test_a_mute_hides_no_other_problem(other: str) -> None:
    """Another problem is reported as ever."""
    loud = SILENT._replace(findings=(*SILENT.findings, found(other, subject="y")))
    judged = loud._replace(verdict=judge(loud))
    assert nagios.state([judged]) == nagios.CRITICAL
    assert exit_code([judged], ERROR) == 1
