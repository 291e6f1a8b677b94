"""The `watch` command: examine at intervals, report changes, notify, and repair if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hermes_doctor.cli.help_layout import WholeSummaries
from hermes_doctor.cli.option_declarations import (
    HomeOption,
    OnlyOption,
    PluginsOption,
    SkipOption,
    VaultOption,
    complete_severity,
)
from hermes_doctor.core.model import Trouble

EPILOG = """\b
Examples:
  hermes-doctor watch
  hermes-doctor watch --heal --notify-hermes telegram
  hermes-doctor watch --heal --also reset-gateway --budget 3/30m
  hermes-doctor watch --notify-command 'mail -s "$HERMES_DOCTOR_TEXT" me'
  hermes-doctor watch --json | jq -c 'select(.severity == "critical")'
  hermes-doctor watch install --heal        install it as a service
  hermes-doctor watch --once                check once, for cron and timers
  hermes-doctor watch --heartbeat @/etc/hermes-doctor/heartbeat
  hermes-doctor watch --metrics /var/lib/prometheus/node-exporter/hermes.prom

\b
Signals:
  SIGHUP checks now. SIGTERM and Ctrl-C stop the watch; a running repair is
  finished or rolled back first.

\b
Exit codes:
  0  stopped by a signal; with --once: no problem at or above --fail-on
  1  with --once: problems, or a check crashed
  2  could not run (wrong option, no home); with --once also: the home is
     missing or no check could read it. Without --once, the watch
     continues while a home that it knows is missing.
"""

app = typer.Typer(
    cls=WholeSummaries,
    help="Check regularly, notify, and repair if asked to.",
    epilog=EPILOG,
    rich_markup_mode=None,
    invoke_without_command=True,
)

IntervalOption = Annotated[
    str | None, typer.Option(help="Check this often: 30s, 5m. [default: 30s]")
]
HealOption = Annotated[
    bool | None,
    typer.Option("--heal/--no-heal", help="Apply safe fixes and restart the gateway; see --also."),
]
WatchNetworkOption = Annotated[
    bool | None,
    typer.Option(
        "--network/--no-network", help="Also contact every platform and the model provider."
    ),
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option(
        help="With --heal: also apply this code or fix, which otherwise asks. Repeatable."
    ),
]
AfterOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Repair a problem after it was found N times in a row. [default: 3]",
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option(help="Allow this many repairs in this time. [default: 3/30m]")
]
PatienceOption = Annotated[
    str | None,
    typer.Option(help="Let a repair wait this long for a running answer. [default: 10m]"),
]
NotifyOnOption = Annotated[
    str | None,
    typer.Option(
        help="Notify from this severity on: critical, error, warning, info. [default: error]",
        autocompletion=complete_severity,
    ),
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        help="Run this command (@FILE reads it from a file) with the event as JSON on stdin and "
        "in HERMES_DOCTOR_* variables."
    ),
]
WebhookOption = Annotated[
    str | None,
    typer.Option(help="POST the event as JSON to this address (@FILE reads it from a file)."),
]
HermesOption = Annotated[
    str | None,
    typer.Option(
        metavar="PLATFORM[:CHANNEL]",
        help="Send the event with `hermes send` (Hermes 0.15 or later).",
    ),
]

FailOnOption = Annotated[
    str | None,
    typer.Option(
        help="From this severity on, exit with 1 (with --once) and use --heartbeat-fail. "
        "[default: error]",
        autocompletion=complete_severity,
    ),
]
MetricsOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="After each check, write metrics for Prometheus here."),
]

HeartbeatOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="After each check, request this address (@FILE reads it from a file), so that a "
        "service notices when the watch is gone.",
    ),
]
HeartbeatFailOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="If there are problems at or above --fail-on, or the home cannot be checked, request "
        "this address instead (@FILE reads it from a file).",
    ),
]


@app.callback()
def watch(
    ctx: typer.Context,
    home: HomeOption = None,
    interval: IntervalOption = None,
    once: bool = typer.Option(
        False, "--once", help="Check once and report what has changed since the last time."
    ),
    heal: HealOption = None,
    also: AlsoOption = None,
    after: AfterOption = None,
    budget: BudgetOption = None,
    patience: PatienceOption = None,
    notify_on: NotifyOnOption = None,
    notify_command: CommandOption = None,
    notify_webhook: WebhookOption = None,
    notify_hermes: HermesOption = None,
    json: bool = typer.Option(False, "--json", help="Print one JSON object per line."),
    network: WatchNetworkOption = None,
    only: OnlyOption = None,
    skip: SkipOption = None,
    fail_on: FailOnOption = None,
    plugins: PluginsOption = None,
    vault: VaultOption = None,
    metrics: MetricsOption = None,
    heartbeat: HeartbeatOption = None,
    heartbeat_fail: HeartbeatFailOption = None,
) -> int:
    """Check regularly, notify, and repair if asked to."""
    options = dict(locals())  # before there is any other name
    del options["ctx"]
    if ctx.invoked_subcommand is not None:
        _refuse_stray_options(ctx)
        return 0
    from hermes_doctor.cli.watch_run import run

    return run(**options)


def _refuse_stray_options(ctx: typer.Context) -> None:
    """Raise if options precede the subcommand, where they would have no effect."""
    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            word = ctx.invoked_subcommand
            option = "--" + name.replace("_", "-")
            raise Trouble(
                "Put {option} after `{word}`: hermes-doctor watch {word} {option} …",
                option=option,
                word=word,
            )
