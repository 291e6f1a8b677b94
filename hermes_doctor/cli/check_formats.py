"""The formats of `check`, other than text on the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import Report


class Wanted(NamedTuple):
    """What the operator asked for."""

    thresholds: Mapping[Path, frozenset[str]]
    """The words of --fail-on, by home."""
    many: bool
    """Whether --all-homes was given; JSON then has a list, also of one home."""
    verbose: bool


Make = Callable[[Sequence[Report], Wanted], str]


def _text(reports: Sequence[Report], wanted: Wanted) -> str:
    from hermes_doctor.render import report as render_report

    pages = [render_report.lines(one, verbose=wanted.verbose) for one in reports]
    return "\n\n\n".join("\n".join(line.text for line in page) for page in pages) + "\n"


def _json(reports: Sequence[Report], wanted: Wanted) -> str:
    from hermes_doctor.render import document

    if wanted.many:
        return document.dump_reports(reports) + "\n"
    return document.dump(document.of_report(reports[0])) + "\n"


def _prometheus(reports: Sequence[Report], _: Wanted) -> str:
    from hermes_doctor.render import prometheus

    return prometheus.of_reports(reports)


def _nagios(reports: Sequence[Report], _: Wanted) -> str:
    from hermes_doctor.render import nagios

    return nagios.of_reports(reports)


def _junit(reports: Sequence[Report], wanted: Wanted) -> str:
    from hermes_doctor.render import junit

    return junit.of_reports(reports, wanted.thresholds)


def _github(reports: Sequence[Report], _: Wanted) -> str:
    from hermes_doctor.render import github

    return github.of_reports(reports)


FORMATS: Mapping[str, Make] = {
    "text": _text,
    "json": _json,
    "prometheus": _prometheus,
    "nagios": _nagios,
    "junit": _junit,
    "github": _github,
}
