"""Builds annotations for GitHub Actions: one workflow command for each problem."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.core.model import Evidence, Report, Severity, Status, VerdictKind
from hermes_doctor.core.outgoing import clean

_COMMANDS = {
    Severity.CRITICAL: "error",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "notice",
}
TITLE = "hermes-doctor"
"""The title of an annotation that has no code."""
_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+))?")


def of_reports(reports: Sequence[Report]) -> str:
    """The annotations of all homes; of several, each one names its home."""
    many = len(reports) > 1
    return "".join(
        line + "\n"
        for report in reports
        for line in _lines(report, f"{report.home}: " if many else "")
    )


def _lines(report: Report, prefix: str) -> Iterator[str]:
    for finding in report.findings:
        said = [f"{finding.title}.", finding.detail, finding.next]
        message = prefix + ("Muted: " if finding.muted else "") + " ".join(filter(None, said))
        command = "notice" if finding.muted else _COMMANDS[finding.severity]
        files = (_file_of(report.home, evidence) for evidence in finding.evidence)
        yield _line(command, message, finding.code, next(filter(None, files), None))
    for check in report.checks:
        if check.status is Status.CRASHED:
            message = f"{prefix}the check {check.id} crashed: {check.reason}"
            yield _line("error", message, TITLE)
    judged = report.verdict
    if report.why_blind:
        yield _line("error", prefix + report.why_blind, TITLE)
    elif judged and report.complete and judged.kind is VerdictKind.UNKNOWN:
        yield _line("warning", prefix + judged.headline, TITLE)


def of_trouble(message: str) -> str:
    """The annotation of a check that could not run."""
    return _line("error", message, TITLE) + "\n"


def _file_of(home: Path, evidence: Evidence) -> dict[str, str] | None:
    """The file and line that the evidence names, if the home has that file."""
    match = _PLACE.fullmatch(evidence.where)
    if match is None:
        return None
    path = home / match["file"]
    try:
        if not path.is_file():
            return None
    except (OSError, ValueError):  # a name that is too long, or with a null character
        return None
    try:
        shown = path.relative_to(Path.cwd())
    except (OSError, ValueError):  # elsewhere, or the current folder was deleted
        shown = path
    line = match["line"]
    return {"file": os.fspath(shown)} | ({"line": line} if line else {})


def _line(command: str, message: str, title: str, place: dict[str, str] | None = None) -> str:
    properties = {**(place or {}), "title": title}
    told = ",".join(
        f"{name}={_data(value).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
    )
    return f"::{command} {told}::{_data(message)}"


def _data(text: str) -> str:
    """Escape as the runner unescapes: a line break would end the command."""
    return "%0A".join(clean(line).replace("%", "%25") for line in text.splitlines())
