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
from hermes_doctor.core.model import Report, RungState, Severity, Status, VerdictKind
from hermes_doctor.core.outgoing import harmless
from hermes_doctor.diagnosis.examination.condition import Condition, condition_of

Labels = Mapping[str, str]
_ALWAYS = ("hermes_doctor_up", "hermes_doctor_last_run_timestamp_seconds")
_RUNGS = {RungState.OK: "1", RungState.FAILED: "0", RungState.UNKNOWN: "NaN"}


class Metric(NamedTuple):
    """One metric with all its samples."""

    name: str
    kind: str
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
    metrics = [*map(_merged, zip(*map(_metrics, reports), strict=True))]
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
        Metric(
            "hermes_doctor_repairs_total",
            "counter",
            "Repairs that the watch has tried.",
            [(home, str(repairs.tried))],
        ),
        Metric(
            "hermes_doctor_repair_budget_exhausted",
            "gauge",
            "Whether the budget of the watch allows no repair for now.",
            [(home, str(int(repairs.exhausted)))],
        ),
    ]


def _text(metrics: Iterable[Metric]) -> str:
    return "".join(line + "\n" for metric in metrics for line in _lines(metric))


def _merged(same: Iterable[Metric]) -> Metric:
    """The same metric of several homes as one."""
    first, *others = same
    samples = [*first.samples, *(sample for other in others for sample in other.samples)]
    return first._replace(samples=samples)


def _metrics(report: Report) -> list[Metric]:
    home = {"home": str(report.home)}
    codes = Counter((finding.code, finding.severity, finding.muted) for finding in report.findings)
    return [
        Metric(
            "hermes_doctor_up",
            "gauge",
            "1 if the state of the bot could be determined, else 0.",
            [(home, str(int(not _is_blind(report))))],
        ),
        Metric(
            "hermes_doctor_bot_works",
            "gauge",
            "Whether the bot answers people: 1 yes, 0 no, NaN unknown.",
            [(home, _works(report))],
        ),
        Metric(
            "hermes_doctor_silence_muted",
            "gauge",
            "Whether every cause of silence is muted or lowered in config.toml.",
            [(home, str(int(report.verdict is not None and report.verdict.muted)))],
        ),
        Metric(
            "hermes_doctor_last_run_timestamp_seconds",
            "gauge",
            "When the last check began, in seconds since 1970.",
            [(home, f"{report.started_at.timestamp():.3f}")],
        ),
        Metric(
            "hermes_doctor_check_seconds",
            "gauge",
            "How long the last check took.",
            [(home, f"{report.seconds:.4f}")],
        ),
        Metric(
            "hermes_doctor_checks",
            "gauge",
            "Number of checks by how they ended.",
            [
                ({**home, "status": status.value}, str(report.count_checks(status)))
                for status in Status
            ],
        ),
        Metric(
            "hermes_doctor_findings",
            "gauge",
            "Number of problems by severity, without muted ones.",
            [
                ({**home, "severity": severity.value}, str(number))
                for severity, number in report.counts.items()
            ],
        ),
        Metric(
            "hermes_doctor_finding",
            "gauge",
            "Number of problems with this code.",
            [
                (
                    {
                        **home,
                        "code": code,
                        "severity": severity.value,
                        "muted": str(muted).lower(),
                    },
                    str(number),
                )
                for (code, severity, muted), number in sorted(codes.items(), key=_worst_first)
            ],
        ),
        Metric(
            "hermes_doctor_liveness",
            "gauge",
            "Whether this part of a working gateway was seen: 1 yes, 0 no, NaN unknown.",
            [({**home, "rung": rung.name}, _RUNGS[rung.hold]) for rung in report.ladder],
        ),
    ]


def _is_blind(report: Report) -> bool:
    kind = report.verdict.kind if report.verdict and report.complete else None
    return report.why_blind is not None or kind is VerdictKind.UNKNOWN


def _works(report: Report) -> str:
    condition = condition_of(report)
    if condition is Condition.UNKNOWN:
        return "NaN"
    return str(int(condition is not Condition.SILENT))


def _worst_first(item: tuple[tuple[str, Severity, bool], int]) -> tuple[int, str, bool]:
    (code, severity, muted), _ = item
    return severity.rank, code, muted


def _lines(metric: Metric) -> Iterable[str]:
    if not metric.samples:
        return
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in metric.samples:
        told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{metric.name}{{{told}}} {value}"


def _escaped(text: str) -> str:
    r"""The text as the value of a label; what is not harmless is shown as in `\xff`.

    Two homes keep different labels that way: the same series twice would make a file invalid.
    """
    text = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    text = text.replace("##[", r"##\\x5b")
    return "".join(one if one == harmless(one) else _code(one) for one in text)


def _code(char: str) -> str:
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8
        return rf"\\x{number - 0xDC00:02x}"
    return ascii(char)[1:-1].replace("\\", r"\\")
