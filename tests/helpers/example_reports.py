"""Reports that are made up, to see how they are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.core.model import (
    CheckResult,
    Effect,
    Finding,
    Report,
    Safety,
    Severity,
    Verdict,
    VerdictKind,
)
from hermes_doctor.diagnosis.examination.verdict import judge

NOW = datetime(2026, 11, 15, 3, 15, tzinfo=UTC)


def report(*findings: Finding, checks: tuple[CheckResult, ...] = (), options: str = "") -> Report:
    """A report with these findings, and its verdict."""
    made = Report(
        home=Path("/srv/hermes"),
        hermes_version="0.19.0",
        started_at=NOW,
        seconds=0.1,
        checks=checks,
        findings=findings,
        fixes={"safe-fix": Safety.SAFE, "asking-fix": Safety.CONFIRM, "hand-fix": Safety.MANUAL},
        options=options,
        gateways=(),
        effects={"SILENT": Effect("gateway", "frozen")},
    )
    return made._replace(verdict=judge(made))


def found(code: str, caused_by: str | None = None, **more: object) -> Finding:
    """A finding whose title names its code."""
    values: dict[str, object] = {
        "code": code,
        "severity": Severity.ERROR,
        "title": f"title of {code}",
        "subject": "x",
        "caused_by": caused_by,
    }
    return Finding(**values | more)  # type: ignore[arg-type]


WORKING = Verdict(VerdictKind.WORKING, "Your bot works.")


def working(*findings: Finding, checks: tuple[CheckResult, ...] = ()) -> Report:
    """The report of a bot that answers."""
    return report(*findings, checks=checks)._replace(verdict=WORKING)
