"""Says that a problem is not there for the first time: beside its title, or below a long one."""

from __future__ import annotations

from hermes_doctor.message import ordinal
from hermes_doctor.model import Finding, Report
from hermes_doctor.terminal.lines import cell_width

_AROUND = 9
"""Cells for the number and mark before a title, the separator, and the space before the code."""


def recurrence(report: Report, finding: Finding, more: str, columns: int) -> tuple[str, str]:
    """What to write behind the title, and what to write below it; at most one is not empty."""
    times = (report.times or {}).get(finding.key, 1)
    if times < 2:
        return "", ""
    said = f"{ordinal(times)} time in 7 days"
    taken = cell_width(f"{finding.title}{more}{said}{finding.code}") + _AROUND
    return (f" · {said}", "") if taken <= columns else ("", said)
