"""Implements `check` without typer, so that typer need not be loaded."""

from __future__ import annotations

import contextlib
import gc
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.cli import option_values, separate_look, time_guard
from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Status, Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system import limits
from hermes_doctor.core.terminal.lines import BLANK
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.core.model import Report, Severity
    from hermes_doctor.diagnosis.plugins.declare import Check
    from hermes_doctor.diagnosis.plugins.load import Plugins
    from hermes_doctor.hermes.processes.gateway_processes import Candidate

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
    chosen = parse_format(format, json=json)
    parse_fail_on(FAIL_ON if fail_on is None else fail_on)
    homes = find_homes(home, every=all_homes)
    write = _writer(output, homes, force=force)
    found = option_values.load_plugins(plugins)
    checks, codes = option_values.select(found, only or [], skip or [])
    request = _Request(found, checks, plugins, deep, network, len(homes) == 1, chosen != TEXT)
    reports: list[Report] = []
    for place in homes:
        named = place.path if all_homes else option_values.named_home(home)
        severities = option_values.severities_for(place.path, found)
        time_guard.begin_home()
        try:
            report = request.examine(place, named, severities)
        except (CouldNotLook, Trouble) as why:
            if not all_homes:
                raise
            from hermes_doctor.diagnosis.examination.report import unseen

            print(f"hermes-doctor: {why}", file=sys.stderr)  # noqa: T201
            report = unseen(place, checks, why)
        if len(homes) > 1:
            gc.collect()  # the next home needs the memory, which is limited
        shown = option_values.filter_report(option_values.mark_muted(report), codes)
        reports.append(_with_times(place, shown) if chosen in (TEXT, "json") else shown)
    thresholds = {report.home: threshold_for(fail_on, report.home) for report in reports}
    if chosen == TEXT and write is None:
        _print(reports, verbose=verbose)
    else:
        from hermes_doctor.cli import output_file

        page = formatted(chosen, reports, thresholds, all_homes=all_homes, verbose=verbose)
        (write or output_file.show)(page)
    if chosen == TEXT:
        say_blind(reports)
    if record:
        _record(homes, reports, codes)
    if chosen == "nagios":
        from hermes_doctor.cli.exits import keep_nagios_state
        from hermes_doctor.render import nagios

        return keep_nagios_state(nagios.state(reports))
    return exit_code(reports, thresholds)


class _Request(NamedTuple):
    """What to examine in each home, and how."""

    plugins: Plugins
    checks: Sequence[Check]
    folders: Sequence[Path] | None
    """Those of `--plugins`."""
    deep: bool
    network: bool
    alone: bool
    """Whether it is about one home only."""
    quiet: bool

    def examine(
        self, home: Home, named: Path | None, severities: Mapping[str, Severity | None]
    ) -> Report:
        """Examine a home as its owner; hints name it if it is `named`."""
        from hermes_doctor.diagnosis.examination import report
        from hermes_doctor.diagnosis.probes.probes import Probes

        seconds = (LIMIT + (time_guard.NETWORK if self.network else 0)) * limits.patience()
        repeat = option_values.repeat_options(
            named, self.folders, deep=self.deep, network=self.network
        )

        def work() -> Report:
            probes = Probes(
                home,
                deep=self.deep,
                network=self.network,
                alone=self.alone,
                seconds=math.inf if self.deep else seconds,
            )
            with _progress(not self.quiet, len(self.checks), probes.progress) as step:
                return report.report(
                    probes,
                    self.plugins,
                    self.checks,
                    options=repeat,
                    page_options=option_values.repeat_options(plugins=self.folders),
                    progress=step,
                    severities=severities,
                )

        return separate_look.look_at(home.path, work, self.plugins)


def threshold_for(given: str | None, home: Path) -> frozenset[str]:
    """What makes a check of this home fail: --fail-on, else config.toml, else an error."""
    if given is not None:
        return parse_fail_on(given)
    chosen = effective.load().fail_on(home)
    return parse_fail_on(chosen.value if chosen else FAIL_ON)


def _with_times(home: Home, report: Report) -> Report:
    """Add how often each problem appeared in the last week, if there is a history."""
    from hermes_doctor.operations.history import place

    if not report.findings or not place.files_of(home):
        return report
    from hermes_doctor.operations.history import reading

    now = int(report.started_at.timestamp())
    keys = [finding.key for finding in report.findings]
    return report._replace(times=reading.times_in_week(home, keys, now))


def _record(homes: Sequence[Home], reports: Sequence[Report], codes: frozenset[str]) -> None:
    """Add the reports to the history; a failure is one line and does not change the exit code."""
    from hermes_doctor.operations.history.when_to_record import record_once

    for home, report in zip(homes, reports, strict=True):
        for note in record_once(home, report, codes, separate_look.ended_runs):
            print(f"hermes-doctor: {note}", file=sys.stderr)  # noqa: T201


def _writer(
    output: Path | None, homes: Sequence[Home], *, force: bool
) -> Callable[[str], None] | None:
    """Return what writes the file of --output, or None to print.

    Raise Trouble if that file may not be written.
    """
    if output is None or output == STDOUT:
        if force:
            raise Trouble("--force replaces the file of --output. Add --output FILE.")
        return None
    from hermes_doctor.cli import output_file

    advice = "Name another file, or replace it with --force."
    rules = output_file.rules_for(homes, force=force, advice=advice)
    output_file.find(output, rules)
    return lambda made: output_file.replace(output, made, rules=rules)


def _print(reports: Sequence[Report], *, verbose: bool) -> None:
    from hermes_doctor.render import report as render_report

    for number, report in enumerate(reports):
        if number:
            show([BLANK, BLANK])
        show(render_report.lines(report, verbose=verbose))


def formatted(
    name: str,
    reports: Sequence[Report],
    thresholds: Mapping[Path, frozenset[str]],
    *,
    all_homes: bool,
    verbose: bool,
) -> str:
    """The reports in one of FORMATS; with --all-homes, JSON has a list also of one home."""
    if name == TEXT:
        from hermes_doctor.render import report as render_report

        pages = [render_report.lines(report, verbose=verbose) for report in reports]
        return "\n\n\n".join("\n".join(line.text for line in page) for page in pages) + "\n"
    if name == "json":
        from hermes_doctor.render import document

        if all_homes:
            return document.dump_reports(reports) + "\n"
        return document.dump(document.of_report(reports[0])) + "\n"
    if name == "junit":
        from hermes_doctor.render import junit

        return junit.of_reports(reports, thresholds)
    if name == "github":
        from hermes_doctor.render import github

        return github.of_reports(reports)
    if name == "nagios":
        from hermes_doctor.render import nagios

        return nagios.of_reports(reports)
    from hermes_doctor.render import prometheus

    return prometheus.of_reports(reports)


def say_blind(reports: Sequence[Report]) -> None:
    """Print one line for each home that no check could examine."""
    for report in reports:
        if report.why_blind:
            print(f"hermes-doctor: {report.why_blind}", file=sys.stderr)  # noqa: T201


def parse_format(given: str | None, *, json: bool) -> str:
    """Parse --format; --json is short for `--format json`."""
    chosen = (given or ("json" if json else TEXT)).lower()
    if chosen not in FORMATS:
        choices = ", ".join(FORMATS)
        raise Trouble("Unknown --format {given!r}. Use {choices}.", given=given, choices=choices)
    if json and chosen != "json":
        raise Trouble("--json and --format contradict each other. Give one of them.")
    return chosen


def parse_fail_on(given: str) -> frozenset[str]:
    """Parse --fail-on: at most one severity, and `unknown` or `crashed`."""
    from hermes_doctor.core.preferences import config_toml

    try:
        return config_toml.parse_fail_on(given)
    except config_toml.WrongValue as wrong:
        raise Trouble("Unknown --fail-on {given!r}: {reason}.", given=given, reason=wrong) from None


def exit_code(reports: Sequence[Report], thresholds: Mapping[Path, frozenset[str]]) -> int:
    """2 if no check could examine any home; 1 for findings, crashes, or one such home."""
    if reports and all(report.why_blind for report in reports):
        return 2
    return int(
        any(report.why_blind or fails(report, thresholds[report.home]) for report in reports)
    )


def fails(report: Report, threshold: frozenset[str]) -> bool:
    """Whether the report reaches --fail-on, or a check crashed and may have missed something."""
    from hermes_doctor.diagnosis.examination.ranking import reaches

    if report.count_checks(Status.CRASHED):
        return True
    return any(reaches(finding, threshold) for finding in report.findings) or any(
        check.status.value in threshold for check in report.checks
    )


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
        from hermes_doctor.core.terminal.progress import count_bar

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


def find_homes(option: Path | None, *, every: bool) -> list[Home]:
    """Return the home that is meant, or also those beside it and those of running gateways."""
    if not every:
        return [homes.find(option)]
    from hermes_doctor.hermes.processes import gateway_processes

    used = gateway_processes.homes_in_use(_works)
    try:
        roots = [homes.find(option).path, *used]
    except Trouble:
        if not used or option:
            raise
        roots = used
    return [Home(path) for path in dict.fromkeys(one for root in roots for one in _beside(root))]


def _works(candidate: Candidate) -> bool:
    """Whether a process works as a gateway, which the files of its home may have to say."""
    if candidate.claim is None or candidate.claim.locked is not False:
        return candidate.works
    try:
        return separate_look.look(candidate.claim.home, lambda: candidate.works)
    except (CouldNotLook, Trouble):
        return True


def _beside(root: Path) -> list[Path]:
    """Return this home and the others of the same root."""
    try:
        return separate_look.look(
            root, lambda: [home.path for home in homes.all_homes(None, [root])]
        )
    except (CouldNotLook, Trouble):
        return [root]
