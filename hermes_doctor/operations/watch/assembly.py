"""Builds a Watch from the command-line options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor import __version__
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.model import Report, Severity, Trouble
from hermes_doctor.core.terminal.lines import tilde
from hermes_doctor.diagnosis.examination import report as reports
from hermes_doctor.diagnosis.plugins.declare import Check
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.history.when_to_record import Recorder
from hermes_doctor.operations.watch import secret_options
from hermes_doctor.operations.watch.channels import (
    Channel,
    CommandChannel,
    HermesChannel,
    WebhookChannel,
)
from hermes_doctor.operations.watch.child_process import ChildProcesses
from hermes_doctor.operations.watch.consent import RepairBudget
from hermes_doctor.operations.watch.events import EventPrinter
from hermes_doctor.operations.watch.examination_apart import ExaminationApart, Separate
from hermes_doctor.operations.watch.heal import Healer
from hermes_doctor.operations.watch.healing_apart import RepairApart
from hermes_doctor.operations.watch.heartbeat import FAIL_OPTION, OPTION, HeartbeatSender
from hermes_doctor.operations.watch.muting import Muting
from hermes_doctor.operations.watch.notices import Notices
from hermes_doctor.operations.watch.rounds import Watch
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.schedule import jobs
from hermes_doctor.repair.schedule.jobs import format_duration

SHORTEST = 1.0


class NotifyOptions(NamedTuple):
    """The notification options: the channels, and the lowest severity to notify about."""

    min_severity: str
    command: str | None
    webhook: str | None
    hermes: str | None


class HealOptions(NamedTuple):
    """The limits of `--heal`."""

    min_rounds: int
    budget: str
    timeout: str
    confirmed: tuple[str, ...]
    vault: Path | None


class WatchOptions(NamedTuple):
    """All options of `hermes-doctor watch`."""

    interval: str
    network: bool
    notify: NotifyOptions
    healing: HealOptions | None
    metrics: Path | None = None
    """The file for Prometheus."""
    heartbeat: str | None = None
    heartbeat_fail: str | None = None
    fail_on: str | None = None
    """None: what config.toml says, or an error."""
    declined: tuple[str, ...] = ()
    """Options that switch off what config.toml may switch on."""

    @property
    def secrets(self) -> tuple[str | None, ...]:
        """The values that may be addresses with a secret in them."""
        return self.notify.webhook, self.heartbeat, self.heartbeat_fail


def interval_seconds(chosen: WatchOptions) -> float:
    return jobs.parse_seconds(chosen.interval, "--interval", least=SHORTEST)


def validate(chosen: WatchOptions, home: Home, plugins: Plugins) -> None:
    interval_seconds(chosen)
    _notices(chosen.notify, home)
    _heartbeat(chosen)
    if chosen.healing:
        jobs.parse_budget(chosen.healing.budget)
        jobs.parse_seconds(chosen.healing.timeout, "--patience")
        _agreed(plugins, chosen.healing)


def assemble(
    home: Home,
    plugins: Plugins,
    checks: Sequence[Check],
    codes: frozenset[str],
    chosen: WatchOptions,
    *,
    json: bool,
    options: str,
    page_options: str,
    severities: Mapping[str, Severity | None] = EMPTY,
) -> Watch:
    """Build the watch; its hints repeat `options`, so that they work when pasted."""

    def look() -> Report:
        probes = Probes(home, network=chosen.network, paid_requests=False)
        try:
            report = reports.report(
                probes,
                plugins,
                checks,
                options=options + (" --network" if chosen.network else ""),
                page_options=page_options,
                severities=severities,
            )
        finally:
            probes.close()
        shown = tuple(finding for finding in report.findings if finding.code in codes)
        return report._replace(findings=shown)

    validate(chosen, home, plugins)
    healing = chosen.healing
    watch = Watch(
        home=home,
        examine=look,
        print_event=EventPrinter(home.path, json=json),
        store=WatchStateFiles(home),
        interval=interval_seconds(chosen),
        min_rounds=healing.min_rounds if healing else 1,
        notices=_notices(chosen.notify, home),
    )
    watch.mark_muted = Muting(watch.memory.ended_mutes).mark
    watch.history = Recorder(home, watch.interval, codes=codes, boot=watch.clock.boot)
    watch.heartbeat = _heartbeat(chosen)
    watch.title = f"hermes-doctor {__version__} watches {tilde(home.path)}"
    watch.title += f" every {format_duration(watch.interval)}"
    if healing is not None:
        budget = jobs.parse_budget(healing.budget)
        watch.title += f" and repairs (at most {budget.limit} in {format_duration(budget.period)})"
        watch.enable(_healer(watch, plugins, healing, options))
    return watch


def use_child_processes(
    watch: Watch,
    plugins: Plugins,
    separate: Separate | None = None,
    *,
    examine_unchanged: bool = False,
) -> None:
    """Let a watch that keeps running do the work of each round in a process that then ends.

    With `examine_unchanged`, it examines the home in each round, also if nothing has changed.
    """
    children = ChildProcesses()
    home = None if examine_unchanged else watch.home
    examination = ExaminationApart(watch.examine, plugins, children, separate, home)
    watch.examine, watch.forget_last_report = examination, examination.forget
    if isinstance(watch.healer, Healer):
        watch.healer.repair = RepairApart(watch.healer, children)
    if watch.history:
        watch.history.apart = children.result_or_reason


def _heartbeat(chosen: WatchOptions) -> HeartbeatSender | None:
    if chosen.heartbeat is None:
        if chosen.heartbeat_fail is not None:
            raise Trouble("--heartbeat-fail needs --heartbeat.")
        return None
    bad = chosen.heartbeat_fail
    return HeartbeatSender(
        secret_options.option_value(chosen.heartbeat, OPTION),
        None if bad is None else secret_options.option_value(bad, FAIL_OPTION),
    )


def _healer(watch: Watch, plugins: Plugins, asked: HealOptions, options: str) -> Healer:
    memory = watch.memory
    return Healer(
        home=watch.home,
        plugins=plugins,
        store=watch.store,
        ledger=RepairBudget(jobs.parse_budget(asked.budget), memory.repairs, memory.failures),
        clock=watch.clock,
        signals=watch.signals,
        min_rounds=asked.min_rounds,
        timeout=jobs.parse_seconds(asked.timeout, "--patience"),
        confirmed=_agreed(plugins, asked),
        vault=asked.vault.expanduser().absolute() if asked.vault else None,
        options=options,
    )


def _agreed(plugins: Plugins, asked: HealOptions) -> frozenset[str]:
    """Codes and fixes to apply without asking: those of --also, and fixes marked unattended."""
    known = {name for fix in plugins.fixes for name in (fix.id, *fix.codes)}
    meant = {fix.id for fix in plugins.fixes if fix.unattended}
    return frozenset(_known(word, known) for word in asked.confirmed) | meant


def _known(word: str, known: set[str]) -> str:
    for name in (word.lower(), word.upper()):
        if name in known:
            return name
    raise Trouble(
        "--also needs a code or fix; no fix is known for {word!r}. See: hermes-doctor list fixes",
        word=word,
    )


def _notices(ways: NotifyOptions, home: Home) -> Notices | None:
    try:
        threshold = Severity(ways.min_severity.lower())
    except ValueError:
        listed = ", ".join(severity.value for severity in Severity)
        raise Trouble(
            "Unknown --notify-on {given!r}. Use {choices}.", given=ways.min_severity, choices=listed
        ) from None
    if not (ways.command or ways.webhook or ways.hermes):
        return None
    channels: list[Channel] = []
    if ways.command:
        channels.append(CommandChannel(ways.command))
    if ways.webhook:
        channels.append(
            WebhookChannel(secret_options.option_value(ways.webhook, "--notify-webhook"))
        )
    if ways.hermes:
        channels.append(HermesChannel(home, ways.hermes))
    return Notices(channels, str(home.path), threshold)
