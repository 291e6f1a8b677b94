"""Builds annotations for GitHub Actions: one workflow command for each problem."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.model import Evidence, Finding, Report, Severity, Status

_COMMANDS = {
    Severity.CRITICAL: "error",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}
_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+))?")


def of_reports(reports: Sequence[Report]) -> str:
    """The annotations of all homes, the worst problem first."""
    return "".join(line + "\n" for report in reports for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    for one in report.findings:
        yield _line(_COMMANDS[one.severity], _message(one), one.code, _place(report, one))
    for check in report.checks:
        if check.status is Status.CRASHED:
            yield _line("error", f"the check {check.id} crashed: {check.reason}", "hermes-doctor")
    if report.why_blind:
        yield _line("error", report.why_blind, "hermes-doctor")


def of_trouble(message: str) -> str:
    """The annotation of a check that could not run."""
    return _line("error", message, "hermes-doctor") + "\n"


def _message(finding: Finding) -> str:
    said = [finding.title + ".", finding.detail, finding.next]
    return " ".join(part for part in said if part)


def _place(report: Report, finding: Finding) -> dict[str, str]:
    """The file and line that the evidence names, if the home has that file."""
    for one in finding.evidence:
        if found := _file_of(report.home, one):
            return found
    return {}


def _file_of(home: Path, evidence: Evidence) -> dict[str, str] | None:
    match = _PLACE.fullmatch(evidence.where)
    if match is None:
        return None
    path = home / match["file"]
    try:
        if not path.is_file():
            return None
    except (OSError, ValueError):  # a name that is too long, or with a null character
        return None
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    line = match["line"]
    return {"file": os.fspath(shown)} | ({"line": line} if line else {})


def _line(command: str, message: str, title: str, place: dict[str, str] | None = None) -> str:
    properties = {**(place or {}), "title": title}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{command} {told}::{_data(message)}"


def _data(text: str) -> str:
    """Escape as the runner unescapes: a line break would end the command."""
    text = text.encode(errors="replace").decode()
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
