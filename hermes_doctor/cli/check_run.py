"""Implements `check` without typer, so that typer need not be loaded."""

from __future__ import annotations

import contextlib
import gc
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.model import Report, Severity

LIMIT = 11.0
"""Seconds for the checks of one home; see `time_guard.SECONDS`."""
FAIL_ON = "error"
TEXT = "text"
STDOUT = Path("-")
"""`--output -` means: print."""
FORMATS = (TEXT, "json", "prometheus", "nagios", "junit", "github")


def run(
    home: Path | None = None,
    all_homes: bool = False,
    json: bool = False,
    deep: bool = False,
    network: bool = False,
    only: Sequence[str] | None = None,
    skip: Sequence[str] | None = None,
    fail_on: str | None = None,
    plugins: Sequence[Path] | None = None,
    verbose: bool = False,
    format: str | None = None,
    output: Path | None = None,
    record: bool = False,
    force: bool = False,
) -> int:
    """Examine each requested home, print the reports, and return the exit code."""
    from hermes_doctor.cli import homes_to_check, separate_look, shared_options, time_guard
    from hermes_doctor.model import CouldNotLook, Trouble
    from hermes_doctor.probes.probes import Probes

    chosen = parse_format(format, json=json)
    if fail_on is not None:
        parse_fail_on(fail_on)
    homes = homes_to_check.find(home, every=all_homes)
    write = _writer(output, homes, force=force)
    found = shared_options.load_plugins(plugins)
    checks, codes = shared_options.select(found, only or [], skip or [])
    reports: list[Report] = []
    for one in homes:
        from hermes_doctor.examination import runner

        named = one.path if all_homes else shared_options.named_home(home)
        repeat = shared_options.repeat_options(named, plugins, deep=deep, network=network)
        time_guard.begin_home()
        severities = shared_options.severities_for(one.path, found)

        def examine(
            one: Home = one,
            repeat: str = repeat,
            severities: Mapping[str, Severity | None] = severities,
        ) -> Report:
            probes = Probes(
                one,
                deep=deep,
                network=network,
                alone=len(homes) == 1,
                seconds=math.inf if deep else _seconds(network),
            )
            with _progress(chosen == TEXT, len(checks), probes.progress) as step:
                return runner.report(
                    probes,
                    found,
                    checks,
                    options=repeat,
                    page_options=shared_options.repeat_options(plugins=plugins),
                    progress=step,
                    severities=severities,
                )

        try:
            report = separate_look.look_at(one.path, examine, found)
        except (CouldNotLook, Trouble) as why:
            if not all_homes:
                raise
            print(f"hermes-doctor: {why}", file=sys.stderr)  # noqa: T201
            report = runner.unseen(one, checks, why)
        if len(homes) > 1:
            gc.collect()  # the next home needs the memory, which is limited
        shown = shared_options.filter_report(shared_options.mark_muted(report), codes)
        reports.append(_with_times(one, shown) if chosen in (TEXT, "json") else shown)
    thresholds = {report.home: threshold_for(fail_on, report.home) for report in reports}
    if chosen == TEXT and write is None:
        _print(reports, verbose=verbose)
    else:
        from hermes_doctor.cli import check_formats

        made = check_formats.FORMATS[chosen](
            reports, check_formats.Wanted(thresholds, all_homes, verbose)
        )
        (write or _show)(made)
    if chosen == TEXT:
        say_blind(reports)
    if record:
        _record(homes, reports, codes)
    if chosen == "nagios":
        from hermes_doctor.cli.exits import keep_nagios_state
        from hermes_doctor.render import nagios

        return keep_nagios_state(nagios.state(reports))
    return exit_code(reports, thresholds)


def threshold_for(given: str | None, home: Path) -> frozenset[str]:
    """What makes a check of this home fail: --fail-on, else config.toml, else an error."""
    if given is not None:
        return parse_fail_on(given)
    from hermes_doctor.preferences import effective

    chosen = effective.load().fail_on(home)
    return parse_fail_on(chosen.value if chosen else FAIL_ON)


def _with_times(home: Home, report: Report) -> Report:
    """Add how often each problem appeared in the last week, if there is a history."""
    from hermes_doctor.history import place

    if not report.findings or not place.files_of(home):
        return report
    from hermes_doctor.history import reading

    now = int(report.started_at.timestamp())
    keys = [finding.key for finding in report.findings]
    return report._replace(times=reading.times_in_week(home, keys, now))


def _record(homes: Sequence[Home], reports: Sequence[Report], codes: frozenset[str]) -> None:
    """Add the reports to the history; a failure is one line and does not change the exit code."""
    from hermes_doctor.cli import separate_look
    from hermes_doctor.history.recorder import record_once

    for home, report in zip(homes, reports, strict=True):
        for note in record_once(home, report, codes, separate_look.ended_runs):
            print(f"hermes-doctor: {note}", file=sys.stderr)  # noqa: T201


def _writer(
    output: Path | None, homes: Sequence[Home], *, force: bool
) -> Callable[[str], None] | None:
    """Return what writes the file of --output, or None to print.

    Raise Trouble if that file may not be written.
    """
    from hermes_doctor.model import Trouble

    if output is None or output == STDOUT:
        if force:
            raise Trouble("--force replaces the file of --output. Add --output FILE.")
        return None
    from hermes_doctor.cli import output_file

    advice = "Name another file, or replace it with --force."
    rules = output_file.rules_for(homes, force=force, advice=advice)
    output_file.find(output, rules)
    return lambda made: output_file.replace(output, made, rules=rules)


def _show(made: str) -> None:
    from hermes_doctor.cli import output_file

    output_file.show(made)


def _print(reports: Sequence[Report], *, verbose: bool) -> None:
    from hermes_doctor.render import report as render_report
    from hermes_doctor.terminal.lines import BLANK
    from hermes_doctor.terminal.show import show

    for number, report in enumerate(reports):
        if number:
            show([BLANK, BLANK])
        show(render_report.lines(report, verbose=verbose))


def say_blind(reports: Sequence[Report]) -> None:
    """Print one line for each home that no check could examine."""
    for report in reports:
        if report.why_blind:
            print(f"hermes-doctor: {report.why_blind}", file=sys.stderr)  # noqa: T201


def parse_format(given: str | None, *, json: bool) -> str:
    """Parse --format; --json is short for `--format json`."""
    from hermes_doctor.message import text
    from hermes_doctor.model import Trouble

    chosen = (given or ("json" if json else TEXT)).lower()
    if chosen not in FORMATS:
        choices = ", ".join(FORMATS)
        raise Trouble(
            text("Unknown --format {given!r}. Use {choices}.", given=given, choices=choices)
        )
    if json and chosen != "json":
        raise Trouble("--json and --format contradict each other. Give one of them.")
    return chosen


def parse_fail_on(given: str) -> frozenset[str]:
    """Parse --fail-on: at most one severity, and `unknown` or `crashed`."""
    from hermes_doctor.message import text
    from hermes_doctor.model import Trouble
    from hermes_doctor.preferences import config_file

    try:
        return config_file.parse_fail_on(given)
    except config_file.WrongValue as wrong:
        raise Trouble(
            text("Unknown --fail-on {given!r}: {reason}.", given=given, reason=wrong)
        ) from None


def exit_code(reports: Sequence[Report], thresholds: Mapping[Path, frozenset[str]]) -> int:
    """2 if no check could examine any home; 1 for findings, crashes, or one such home."""
    if reports and all(report.why_blind for report in reports):
        return 2
    return int(
        any(report.why_blind or fails(report, thresholds[report.home]) for report in reports)
    )


def fails(report: Report, threshold: frozenset[str]) -> bool:
    """Whether the report reaches --fail-on, or a check crashed and may have missed something."""
    from hermes_doctor.examination.ranking import reaches
    from hermes_doctor.model import Status

    if report.count_checks(Status.CRASHED):
        return True
    return any(reaches(one, threshold) for one in report.findings) or any(
        check.status.value in threshold for check in report.checks
    )


def _seconds(network: bool) -> float:
    """How many seconds the checks of one home may take."""
    from hermes_doctor.cli import time_guard
    from hermes_doctor.system import time_limits

    return (LIMIT + (time_guard.NETWORK if network else 0)) * time_limits.patience()


@contextlib.contextmanager
def _progress(
    wanted: bool, total: int, says: Callable[[], str]
) -> Iterator[Callable[[str], None] | None]:
    """A progress bar on a terminal if the examination takes longer than a second."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from threading import Timer

    from hermes_doctor.cli.progress_bars import patience

    bar = contextlib.ExitStack()
    done: list[str] = []
    steps: list[Callable[[str], None]] = []

    def start() -> None:
        from hermes_doctor.terminal.progress import count_bar

        steps.append(bar.enter_context(count_bar("checking", total, says)))
        for name in done:
            steps[0](name)

    def step(name: str) -> None:
        done.append(name)
        if steps:
            steps[0](name)

    timer = Timer(patience(), start)
    timer.daemon = True
    timer.start()
    try:
        yield step
    finally:
        timer.cancel()
        timer.join()
        bar.close()
