"""Builds the JSON report: one document on stdout, valid whatever happens."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor import __version__
from hermes_doctor.core.message import as_document
from hermes_doctor.core.model import Finding, Report, Severity, Status
from hermes_doctor.core.outgoing import masked

SCHEMA = "hermes-doctor/report/1"
MANY = "hermes-doctor/reports/1"


def of_report(report: Report) -> dict[str, Any]:
    """The report of one home as JSON data."""
    error = {"error": {"message": report.why_blind, "exit_code": 2}} if report.why_blind else {}
    judged = report.verdict
    return error | {
        "schema": SCHEMA,
        "version": __version__,
        "home": str(report.home),
        "hermes": {"version": report.hermes_version},
        "started_at": report.started_at.isoformat(),
        "seconds": round(report.seconds, 4),
        "summary": {
            "status": report.status.value,
            "counts": {severity.value: count for severity, count in report.counts.items()},
            "muted": sum(finding.muted for finding in report.findings),
            "off": report.off,
            "checks": {status.value: report.count_checks(status) for status in Status},
            "verdict": judged.kind.value if judged else "unknown",
            "headline": judged.headline if judged else "",
            "primary": fields_of(judged.primary, "code subject title")
            if judged and judged.primary
            else None,
        },
        "states": {
            state.name: [{"mark": part.mark.value, "text": part.text} for part in state.parts]
            for state in report.states
        },
        "liveness": {
            "stands_on": report.highest_rung.name if report.highest_rung else None,
            "rungs": [
                {
                    "name": rung.name,
                    "status": rung.hold.value,
                    "what": rung.what,
                    "since": rung.since.isoformat() if rung.since else None,
                }
                for rung in report.ladder
            ],
        },
        "checks": [
            {
                "id": check.id,
                "status": check.status.value,
                "seconds": round(check.seconds, 4),
                "reason": check.reason,
            }
            for check in report.checks
        ],
        "findings": [_finding(report, finding) for finding in report.findings],
    }


def fields_of(value: object, names: str) -> dict[str, Any]:
    """Some attributes of a value as JSON data, each under its own name."""
    return {name: getattr(value, name) for name in names.split()}


def _finding(report: Report, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "check": finding.check,
        "severity": finding.severity.value,
        "muted": finding.muted,
        "title": finding.title,
        "message": as_document(finding.title),
        "detail": finding.detail,
        "next": _next(report, finding),
        "subject": finding.subject,
        "evidence": [{"where": e.where, "what": e.what} for e in finding.evidence],
        "since": finding.since.isoformat() if finding.since else None,
        "times_in_7_days": report.times.get(finding.key) if report.times is not None else None,
        "caused_by": finding.caused_by,
        "fix": _fix(report, finding),
    }


def _next(report: Report, finding: Finding) -> str:
    """What to do about a finding: its own step, the command of its fix, or its page."""
    offer = report.offer(finding)
    if finding.next or offer is None:
        explain = f"hermes-doctor explain {finding.code}{report.page_options}"
        return finding.next or report.refusal(finding) or explain
    return offer.command


def _fix(report: Report, finding: Finding) -> dict[str, Any] | None:
    offer, refusal = report.offer(finding), report.refusal(finding)
    if offer:
        return {
            "id": offer.id,
            "safety": offer.safety.value,
            "command": offer.command,
            "refusal": None,
        }
    if refusal is None or finding.fix is None:
        return None
    return {
        "id": finding.fix,
        "safety": report.fixes[finding.fix].value,
        "command": None,
        "refusal": refusal,
    }


def dump_reports(reports: Sequence[Report]) -> str:
    """The reports of several homes as the text of one document.

    It is made home by home: as one document, those of 1,000 homes would need 500 MB of memory.
    """
    whole = dump(_of_reports(reports))
    if not reports:
        return whole
    homes = (textwrap.indent(dump(of_report(report)), "    ") for report in reports)
    return whole.removesuffix("[]\n}") + "[\n" + ",\n".join(homes) + "\n  ]\n}"


def _of_reports(reports: Sequence[Report]) -> dict[str, Any]:
    """What several reports say together, without the reports."""
    ranked = [Status.PROBLEM, Status.UNKNOWN, Status.OK]
    blind = " ".join(report.why_blind or "" for report in reports)
    every = bool(reports) and all(report.why_blind for report in reports)
    worst = min((report.status for report in reports), key=ranked.index, default=Status.OK)
    error = {"error": {"message": blind, "exit_code": 2}} if every else {}
    return error | {
        "schema": MANY,
        "version": __version__,
        "summary": {
            "status": worst.value,
            "counts": {s.value: sum(r.counts[s] for r in reports) for s in Severity},
            "muted": sum(finding.muted for report in reports for finding in report.findings),
            "checks": {s.value: sum(r.count_checks(s) for r in reports) for s in Status},
        },
        "homes": [],
    }


def of_trouble(message: str, code: int) -> dict[str, Any]:
    """The document of a command that could not run: that of a report without any content."""
    made = of_report(Report(Path(), None, datetime.now(UTC), 0.0, (), ()))
    made["summary"] |= {"status": Status.UNKNOWN.value, "headline": message}
    return made | {"home": None, "error": {"message": message, "exit_code": code}}


def dump(document: dict[str, Any]) -> str:
    """ASCII-only JSON text, which every terminal and parser accepts."""
    return json.dumps(masked(document), indent=2, ensure_ascii=True)
