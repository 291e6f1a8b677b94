"""Builds a JUnit report, which Jenkins, GitLab and others show: one test case for each check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from hermes_doctor.core.message import count
from hermes_doctor.core.model import CheckResult, Finding, Report, Status
from hermes_doctor.core.outgoing import clean
from hermes_doctor.diagnosis.examination.ranking import reaches

Threshold = frozenset[str]
"""The words of --fail-on."""


def of_reports(reports: Sequence[Report], thresholds: Mapping[Path, Threshold]) -> str:
    """The report of all homes; each home is a test suite.

    A check fails if one of its problems reaches --fail-on, so that the report and the exit code
    agree. Its other problems are in its output. A check that could not look is skipped, or an error
    if --fail-on says `unknown` or if no check could look.
    """
    many = len(reports) > 1
    suites = [
        _suite(report, thresholds[report.home], str(report.home) if many else "")
        for report in reports
    ]
    sums = {
        name: str(sum(int(suite.attrib[name]) for suite in suites))
        for name in ("tests", "failures", "errors")
    }
    sums["time"] = f"{sum(float(suite.attrib['time']) for suite in suites):.3f}"
    root = ElementTree.Element("testsuites", {"name": "hermes-doctor", **sums})
    root.extend(suites)
    ElementTree.indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return head + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(report: Report, threshold: Threshold, prefix: str) -> ElementTree.Element:
    cases = [_case(report, check, threshold, prefix or "hermes-doctor") for check in report.checks]
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": _clean(str(report.home)),
            "tests": str(len(cases)),
            "failures": str(sum(case.find("failure") is not None for case in cases)),
            "errors": str(sum(case.find("error") is not None for case in cases)),
            "skipped": str(sum(case.find("skipped") is not None for case in cases)),
            "time": f"{report.seconds:.3f}",
            "timestamp": report.started_at.strftime("%Y-%m-%dT%H:%M:%S"),
        },
    )
    suite.extend(cases)
    return suite


def _case(
    report: Report, check: CheckResult, threshold: Threshold, prefix: str
) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        {
            "classname": f"{_clean(prefix)}.{_clean(check.group)}",
            "name": _clean(check.id),
            "time": f"{check.seconds:.3f}",
        },
    )
    findings = [finding for finding in report.findings if finding.check == check.id]
    failing = [one for one in findings if reaches(one, threshold)]
    others = [one for one in findings if one not in failing]
    reason = _clean(check.reason or "")
    if failing:
        first, *more = failing
        message = first.title + (f" (and {count(len(more), 'more problem')})" if more else "")
        failure = ElementTree.SubElement(
            case, "failure", {"type": _clean(first.code), "message": _clean(message)}
        )
        failure.text = "\n\n".join(map(_told, failing))
    elif check.status is Status.CRASHED:
        ElementTree.SubElement(case, "error", {"type": "crashed", "message": reason})
    elif check.status is Status.UNKNOWN:
        grave = check.status.value in threshold or report.why_blind
        told = {"message": f"could not check: {reason}"}
        ElementTree.SubElement(case, "error" if grave else "skipped", told)
    elif check.status is Status.SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": reason})
    if others:
        ElementTree.SubElement(case, "system-out").text = "\n\n".join(map(_told, others))
    return case


def _told(finding: Finding) -> str:
    """A problem as text: what, why, evidence and what to do."""
    level = f"muted {finding.severity.value}" if finding.muted else finding.severity.value
    lines = [f"{level} {finding.code}: {finding.title}", finding.detail]
    lines += [f"{evidence.where}: {evidence.what}" for evidence in finding.evidence]
    lines.append(finding.next or f"See: hermes-doctor explain {finding.code}")
    return "\n".join(_clean(line) for line in lines if line)


def _clean(text: str) -> str:
    """One line without characters that XML cannot hold."""
    text = clean(text)
    return "".join(one if one.isprintable() else " " for one in text)
