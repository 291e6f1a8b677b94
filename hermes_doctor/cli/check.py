"""`check`: what is wrong, since when, why, and what to type now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli.options import (
    DeepOption,
    HomeOption,
    JsonOption,
    NetworkOption,
    PluginsOption,
)

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.model import Report

EPILOG = """\b
Examples:
  hermes-doctor check
  hermes-doctor check --json
  hermes-doctor check --only databases --fail-on warning
  hermes-doctor check --deep
  hermes-doctor check --network
  hermes-doctor check --all-homes --fail-on error,unknown,crashed

\b
Exit codes:
  0  nothing at or above --fail-on
  1  findings
  2  could not run (bad usage, no home)
"""


def check(
    home: HomeOption = None,
    all_homes: Annotated[
        bool, typer.Option("--all-homes", help="Every profile, and every running gateway's home.")
    ] = False,
    json: JsonOption = False,
    deep: DeepOption = False,
    network: NetworkOption = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only this code, check or group. Repeatable.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", help="Not this code, check or group. Repeatable.")
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            help="Exit 1 from this severity on (critical, error, warning, info); "
            "add unknown or crashed with a comma.",
        ),
    ] = "error",
    plugins: PluginsOption = None,
) -> int:
    """Look at the home and say what is wrong. Changes nothing."""
    from hermes_doctor.cli import options
    from hermes_doctor.probes import Probes

    threshold = parse_fail_on(fail_on)
    found = options.loaded(plugins)
    checks, codes = options.select(found, only or [], skip or [])
    reports = []
    homes = _homes(home, all_homes)
    for one in homes:
        from hermes_doctor import examination

        named = one.path if all_homes else options.named_home(home)
        repeat = options.repeated(named, plugins, deep=deep, network=network)
        probes = Probes(one, deep=deep, network=network)
        with _progress(deep and not json, len(checks), probes.progress) as step:
            report = examination.report(
                probes,
                found,
                checks,
                options=repeat,
                page_options=options.repeated(plugins=plugins),
                progress=step,
            )
        reports.append(options.narrowed(report, codes))
    _print(reports, json=json, many=all_homes)
    return int(any(fails(report, threshold) for report in reports))


def _homes(home: HomeOption, every: bool) -> list[Home]:
    from hermes_doctor import home as homes
    from hermes_doctor.model import Trouble

    if not every:
        return [homes.find(home)]
    from hermes_doctor.probes import processes

    used = processes.homes_in_use()
    try:
        first = homes.find(home)
    except Trouble:
        if not used or home:
            raise
        first = None
    return homes.all_homes(first, used)


def _print(reports: Sequence[Report], *, json: bool, many: bool) -> None:
    if json:
        from hermes_doctor.render import document

        made = document.of_reports(reports) if many else document.of_report(reports[0])
        typer.echo(document.dump(made))
        return
    from hermes_doctor.render import examined
    from hermes_doctor.render.lines import BLANK, show

    for number, report in enumerate(reports):
        if number:
            show([BLANK, BLANK])
        show(examined.lines(report))


def parse_fail_on(text: str) -> frozenset[str]:
    """The words of --fail-on: at most one severity, and unknown or crashed beside it."""
    from hermes_doctor.model import Severity, Status, Trouble

    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    severities = [s.value for s in Severity]
    known = [*severities, Status.UNKNOWN.value, Status.CRASHED.value]
    wrong = [word for word in words if word not in known]
    if wrong or not words:
        raise Trouble(f"--fail-on takes {', '.join(known)}, not {text!r}.")
    return frozenset(words)


def fails(report: Report, threshold: frozenset[str]) -> bool:
    """Whether this report is as bad as --fail-on says."""
    from hermes_doctor.model import Severity

    ranks = [severity.rank for severity in Severity if severity.value in threshold]
    worst = max(ranks, default=-1)
    return any(f.severity.rank <= worst for f in report.findings) or any(
        check.status.value in threshold for check in report.checks
    )


def _progress(  # type: ignore[no-untyped-def]
    wanted: bool, total: int, says: Callable[[], str]
):
    """A bar on the terminal while a deep examination runs; silence otherwise."""
    import contextlib
    import sys

    if not wanted or not sys.stderr.isatty():
        return contextlib.nullcontext(None)
    from hermes_doctor.render.progress import counting

    return counting("examining", total, says)
