"""Builds metrics for Prometheus, in the format of node_exporter's textfile collector.

A metric never has the subject of a finding as a label: names of users or files would make a new
time series each. It has no timestamps either, because the collector refuses them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Report, RungState, Status, VerdictKind
from hermes_doctor.core.outgoing import harmless
from hermes_doctor.diagnosis.examination.condition import Condition, condition_of

Labels = Mapping[str, str]
_ALWAYS = ("up", "last_run_timestamp_seconds")
_MUTED = "Whether every cause of silence is muted or lowered in config.toml."
TOTAL = "repairs_total"
"""The only counter; all others are gauges."""
_RUNGS = {RungState.OK: "1", RungState.FAILED: "0", RungState.UNKNOWN: "NaN"}


class Metric(NamedTuple):
    """One metric with all its samples."""

    name: str
    """Without `hermes_doctor_`, with which all begin."""
    help: str
    samples: Sequence[tuple[Labels, str]]


class Repairs(NamedTuple):
    """The repairs of a watch."""

    home: Path
    tried: int
    exhausted: bool
    """Whether its budget allows no more for now."""


def of_reports(reports: Sequence[Report], repairs: Repairs | None = None) -> str:
    """The metrics of all homes, and the repairs if a watch writes them."""
    metrics = [
        same[0]._replace(samples=[sample for metric in same for sample in metric.samples])
        for same in zip(*map(_metrics, reports), strict=True)
    ]
    return _text([*metrics, *(_of_repairs(repairs) if repairs else ())])


def of_missing_home(at: datetime, repairs: Repairs) -> str:
    """The metrics of a home that is not there, such as one on a disk that is not mounted."""
    home = {"home": str(repairs.home)}
    known = Report(repairs.home, None, at, 0.0, (), ())
    metrics = [metric for metric in _metrics(known) if metric.name in _ALWAYS]
    metrics[0] = metrics[0]._replace(samples=[(home, "0")])
    return _text([*metrics, *_of_repairs(repairs)])


def _of_repairs(repairs: Repairs) -> list[Metric]:
    home = {"home": str(repairs.home)}
    return [
        Metric(TOTAL, "Repairs that the watch has tried.", [(home, str(repairs.tried))]),
        Metric(
            "repair_budget_exhausted",
            "Whether the budget of the watch allows no repair for now.",
            [(home, str(int(repairs.exhausted)))],
        ),
    ]


def _text(metrics: Iterable[Metric]) -> str:
    lines = []
    for metric in metrics:
        full_name = f"hermes_doctor_{metric.name}"
        if metric.samples:
            lines.append(f"# HELP {full_name} {metric.help}")
            lines.append(f"# TYPE {full_name} {'counter' if metric.name == TOTAL else 'gauge'}")
        for labels, value in metric.samples:
            told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            lines.append(f"{full_name}{{{told}}} {value}")
    return "".join(f"{line}\n" for line in lines)


def _metrics(report: Report) -> list[Metric]:
    home = {"home": str(report.home)}
    works = {Condition.UNKNOWN: "NaN", Condition.SILENT: "0"}.get(condition_of(report), "1")
    kind = report.verdict.kind if report.verdict and report.complete else None
    seen = str(int(report.why_blind is None and kind is not VerdictKind.UNKNOWN))
    began = f"{report.started_at.timestamp():.3f}"
    of_home = (
        ("up", "1 if the state of the bot could be determined, else 0.", seen),
        ("bot_works", "Whether the bot answers people: 1 yes, 0 no, NaN unknown.", works),
        ("silence_muted", _MUTED, str(int(report.verdict is not None and report.verdict.muted))),
        ("last_run_timestamp_seconds", "When the last check began, in seconds since 1970.", began),
        ("check_seconds", "How long the last check took.", f"{report.seconds:.4f}"),
    )
    by_status = {status.value: report.count_checks(status) for status in Status}
    by_severity = {severity.value: number for severity, number in report.counts.items()}
    codes = Counter(
        (one.severity.rank, one.code, one.muted, one.severity) for one in report.findings
    )
    by_code = [
        ({"code": code, "severity": severity.value, "muted": str(muted).lower()}, number)
        for (_, code, muted, severity), number in sorted(codes.items())
    ]
    return [
        *(Metric(name, help, [(home, value)]) for name, help, value in of_home),
        Metric(
            "checks",
            "Number of checks by how they ended.",
            [(home | {"status": name}, str(number)) for name, number in by_status.items()],
        ),
        Metric(
            "findings",
            "Number of problems by severity, without muted ones.",
            [(home | {"severity": name}, str(number)) for name, number in by_severity.items()],
        ),
        Metric(
            "finding",
            "Number of problems with this code.",
            [(home | labels, str(number)) for labels, number in by_code],
        ),
        Metric(
            "liveness",
            "Whether this part of a working gateway was seen: 1 yes, 0 no, NaN unknown.",
            [(home | {"rung": rung.name}, _RUNGS[rung.hold]) for rung in report.ladder],
        ),
    ]


def _escaped(text: str) -> str:
    r"""The text as the value of a label; what is not harmless is shown as in `\xff`.

    Two homes keep different labels that way: the same series twice would make a file invalid.
    """
    text = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    text = text.replace("##[", r"##\\x5b")
    shown = ""
    for char in text:
        if char == harmless(char):
            shown += char
        elif 0xDC80 <= ord(char) <= 0xDCFF:  # a byte that is not UTF-8
            shown += rf"\\x{ord(char) - 0xDC00:02x}"
        else:
            shown += ascii(char)[1:-1].replace("\\", r"\\")
    return shown
