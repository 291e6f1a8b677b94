"""Builds a Watch from the command-line options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor import __version__
from hermes_doctor.examination import runner
from hermes_doctor.history.recorder import Recorder
from hermes_doctor.home import Home
from hermes_doctor.lazy import EMPTY, NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import Report, Severity, Trouble
from hermes_doctor.plugins.declare import Check
from hermes_doctor.plugins.load import Plugins
from hermes_doctor.probes.probes import Probes
from hermes_doctor.schedule import durations
from hermes_doctor.schedule.durations import format_duration
from hermes_doctor.terminal.lines import tilde
from hermes_doctor.watch.event_lines import EventPrinter
from hermes_doctor.watch.muting import Muting
from hermes_doctor.watch.rounds import Watch
from hermes_doctor.watch.store import WatchStateFiles

if TYPE_CHECKING:
    from hermes_doctor.watch.channels import Channel
    from hermes_doctor.watch.examination_apart import Separate
    from hermes_doctor.watch.heal import Healer
    from hermes_doctor.watch.heartbeat import HeartbeatSender
    from hermes_doctor.watch.notices import Notices

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
    """Seconds between two rounds."""
    return durations.parse_seconds(chosen.interval, "--interval", least=SHORTEST)


def validate(chosen: WatchOptions, home: Home, plugins: Plugins) -> None:
    """Raise Trouble if an option is invalid."""
    interval_seconds(chosen)
    _notices(chosen.notify, home)
    _heartbeat(chosen)
    if chosen.healing:
        durations.parse_budget(chosen.healing.budget)
        durations.parse_seconds(chosen.healing.timeout, "--patience")
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
            report = runner.report(
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
    made = Watch(
        home=home,
        examine=look,
        print_event=EventPrinter(home.path, json=json),
        store=WatchStateFiles(home),
        interval=interval_seconds(chosen),
        min_rounds=healing.min_rounds if healing else 1,
        notices=_notices(chosen.notify, home),
    )
    made.mark_muted = Muting(made.memory.ended_mutes).mark
    made.history = Recorder(home, made.interval, codes=codes, boot=made.clock.boot)
    made.heartbeat = _heartbeat(chosen)
    made.title = f"hermes-doctor {__version__} watches {tilde(home.path)}"
    made.title += f" every {format_duration(made.interval)}"
    if healing is not None:
        budget = durations.parse_budget(healing.budget)
        made.title += f" and repairs (at most {budget.limit} in {format_duration(budget.period)})"
        made.enable(_healer(made, plugins, healing, options))
    return made


def use_child_processes(watch: Watch, plugins: Plugins, separate: Separate | None = None) -> None:
    """Let a watch that keeps running do the work of each round in a process that then ends."""
    from hermes_doctor.watch.child_process import ChildProcesses
    from hermes_doctor.watch.examination_apart import ExaminationApart
    from hermes_doctor.watch.heal import Healer
    from hermes_doctor.watch.healing_apart import RepairApart

    children = ChildProcesses()
    apart = (separate,) if separate else ()
    watch.examine = ExaminationApart(watch.examine, plugins, children, *apart)
    if isinstance(watch.healer, Healer):
        watch.healer.repair = RepairApart(watch.healer, children)
    if watch.history:
        watch.history.apart = children.result_or_reason


def _heartbeat(chosen: WatchOptions) -> HeartbeatSender | None:
    if chosen.heartbeat is None:
        if chosen.heartbeat_fail is not None:
            raise Trouble("--heartbeat-fail needs --heartbeat.")
        return None
    from hermes_doctor.watch import secret_options
    from hermes_doctor.watch.heartbeat import FAIL_OPTION, OPTION, HeartbeatSender

    bad = chosen.heartbeat_fail
    return HeartbeatSender(
        secret_options.option_value(chosen.heartbeat, OPTION),
        None if bad is None else secret_options.option_value(bad, FAIL_OPTION),
    )


def _healer(watch: Watch, plugins: Plugins, asked: HealOptions, options: str) -> Healer:
    from hermes_doctor.watch.heal import Healer
    from hermes_doctor.watch.repair_budget import RepairBudget

    memory = watch.memory
    return Healer(
        home=watch.home,
        plugins=plugins,
        store=watch.store,
        ledger=RepairBudget(durations.parse_budget(asked.budget), memory.repairs, memory.failures),
        clock=watch.clock,
        signals=watch.signals,
        min_rounds=asked.min_rounds,
        timeout=durations.parse_seconds(asked.timeout, "--patience"),
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
        text(
            "--also needs a code or fix; no fix is known for {word!r}. See: "
            "hermes-doctor list fixes",
            word=word,
        )
    )


def _notices(ways: NotifyOptions, home: Home) -> Notices | None:
    try:
        threshold = Severity(ways.min_severity.lower())
    except ValueError:
        listed = ", ".join(severity.value for severity in Severity)
        raise Trouble(
            text(
                "Unknown --notify-on {given!r}. Use {choices}.",
                given=ways.min_severity,
                choices=listed,
            )
        ) from None
    if not (ways.command or ways.webhook or ways.hermes):
        return None
    from hermes_doctor.watch import secret_options
    from hermes_doctor.watch.channels import CommandChannel, HermesChannel, WebhookChannel
    from hermes_doctor.watch.notices import Notices

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
