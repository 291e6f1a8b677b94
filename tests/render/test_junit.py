"""The JUnit report, against the schema of Jenkins' plugin for such reports."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from hermes_doctor.core.model import CheckResult, Evidence, Report, Severity, Status
from hermes_doctor.render import junit
from tests.helpers.example_reports import found, report

SCHEMA = xmlschema.XMLSchema(Path(__file__).parents[1] / "data" / "junit-10.xsd")
CHECKS = tuple(
    CheckResult(f"is-{status.value}", "data", status, 0.25, f"why {status.value}")
    for status in Status
)


def parsed(*reports: Report, threshold: str = "error") -> ElementTree.Element:
    """The report as a tree, if it is valid."""
    words = frozenset(threshold.split(","))
    made = junit.of_reports(reports, dict.fromkeys([one.home for one in reports], words))
    SCHEMA.validate(made)
    return ElementTree.fromstring(made.encode())


def case(tree: ElementTree.Element, name: str) -> ElementTree.Element:
    """The only case with this name."""
    [one] = tree.iterfind(f".//testcase[@name='{name}']")
    return one


def test_one_case_for_each_check() -> None:
    """Each status has its own form."""
    problem = found("A", check="is-problem", detail="It hurts.", evidence=(Evidence("x:3", "y"),))

    tree = parsed(report(problem, checks=CHECKS))

    assert len(tree.findall(".//testcase")) == len(Status)
    assert list(case(tree, "is-ok")) == []
    [failure] = case(tree, "is-problem")
    assert (failure.tag, failure.attrib) == ("failure", {"type": "A", "message": "title of A"})
    assert failure.text == ("error A: title of A\nIt hurts.\nx:3: y\nSee: hermes-doctor explain A")
    [skipped] = case(tree, "is-skipped")
    assert (skipped.tag, skipped.attrib) == ("skipped", {"message": "why skipped"})
    [unknown] = case(tree, "is-unknown")
    assert unknown.attrib == {"message": "could not check: why unknown"}
    [crashed] = case(tree, "is-crashed")
    assert (crashed.tag, crashed.attrib["message"]) == ("error", "why crashed")
    suite = tree[0].attrib
    assert [suite[name] for name in ("tests", "failures", "errors", "skipped")] == list("5112")


def test_what_does_not_reach_fail_on_is_no_failure() -> None:
    """The report and the exit code agree; the problem is in the output of its check."""
    warning = found("A", check="is-problem", severity=Severity.WARNING)

    [told] = case(parsed(report(warning, checks=CHECKS)), "is-problem")

    assert told.tag == "system-out"
    assert told.text is not None
    assert "warning A: title of A" in told.text


def test_what_could_not_be_checked_is_an_error_if_asked_for() -> None:
    """With `--fail-on unknown`, and if no check could look, the exit code is not 0 either."""
    [asked] = case(parsed(report(checks=CHECKS), threshold="error,unknown"), "is-unknown")
    [blind] = case(parsed(report(checks=(CHECKS[3],))), "is-unknown")

    assert CHECKS[3].status is Status.UNKNOWN
    assert asked.tag == blind.tag == "error"


def test_several_problems_of_one_check() -> None:
    """They are one failure, because a case fails once."""
    two = [found(code, check="is-problem") for code in "AB"]

    [failure] = case(parsed(report(*two, checks=CHECKS)), "is-problem")

    assert failure.attrib["message"] == "title of A (and 1 more problem)"
    assert failure.text is not None
    assert "error B: title of B" in failure.text


def test_cases_of_several_homes_have_different_names() -> None:
    """GitLab shows only the first of two cases with the same class and name."""
    homes = [report(checks=CHECKS)._replace(home=Path(f"/home/{name}")) for name in ("one", "two")]

    cases = list(parsed(*homes).iter("testcase"))

    assert len({(one.attrib["classname"], one.attrib["name"]) for one in cases}) == len(cases)
    assert len(cases) == 2 * len(Status)


@pytest.mark.parametrize("odd", ["\x00", "\x1b[0m", "\udcff", "\ufffe", "]]>", "<&\"'>"])
def test_odd_characters(odd: str) -> None:
    """A title may hold what XML cannot."""
    problem = found(f"A{odd}", check="is-problem", title=f"a{odd}b", detail=odd)

    [failure] = case(parsed(report(problem, checks=CHECKS)), "is-problem")

    assert failure.attrib["message"].startswith("a")
