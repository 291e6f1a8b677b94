"""The `watch` command: examine at intervals, report changes, notify, and repair if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli.options import (
    HomeOption,
    NetworkOption,
    OnlyOption,
    PluginsOption,
    SkipOption,
    VaultOption,
)
from hermes_doctor.cli.whole_summaries import WholeSummaries

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.model import Trouble

EPILOG = """\b
Examples:
  hermes-doctor watch
  hermes-doctor watch --heal --notify-hermes telegram
  hermes-doctor watch --heal --also reset-gateway --budget 3/30m
  hermes-doctor watch --notify-command 'mail -s "$HERMES_DOCTOR_TEXT" me'
  hermes-doctor watch --json | jq -c 'select(.severity == "critical")'
  hermes-doctor watch install --heal        install it as a service
  hermes-doctor watch --once                check once, for cron and timers

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

IntervalOption = Annotated[str, typer.Option("--interval", help="Check this often: 30s, 5m.")]
HealOption = Annotated[
    bool, typer.Option("--heal", help="Apply safe fixes and restart the gateway; see --also.")
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        help="With --heal: also apply this code or fix, which otherwise asks. Repeatable.",
    ),
]
AfterOption = Annotated[
    int,
    typer.Option(
        "--after", min=1, metavar="N", help="Repair a problem after it was found N times in a row."
    ),
]
BudgetOption = Annotated[
    str, typer.Option("--budget", help="Allow this many repairs in this time, such as 3/30m.")
]
PatienceOption = Annotated[
    str, typer.Option("--patience", help="Let a repair wait this long for a running answer.")
]
NotifyOnOption = Annotated[
    str,
    typer.Option(
        "--notify-on", help="Notify from this severity on: critical, error, warning, info."
    ),
]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--notify-command",
        help="Run this command (@FILE reads it from a file) with the event as JSON on stdin and "
        "in HERMES_DOCTOR_* variables.",
    ),
]
WebhookOption = Annotated[
    str | None,
    typer.Option(
        "--notify-webhook",
        help="POST the event as JSON to this address (@FILE reads it from a file).",
    ),
]
HermesOption = Annotated[
    str | None,
    typer.Option(
        "--notify-hermes",
        metavar="PLATFORM[:CHANNEL]",
        help="Send the event with `hermes send` (Hermes 0.15 or later).",
    ),
]


@app.callback()
def watch(
    ctx: typer.Context,
    home: HomeOption = None,
    interval: IntervalOption = "30s",
    once: Annotated[
        bool, typer.Option("--once", help="Check once and report what changed since the last time.")
    ] = False,
    heal: HealOption = False,
    also: AlsoOption = None,
    after: AfterOption = 3,
    budget: BudgetOption = "3/30m",
    patience: PatienceOption = "10m",
    notify_on: NotifyOnOption = "error",
    notify_command: CommandOption = None,
    notify_webhook: WebhookOption = None,
    notify_hermes: HermesOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    network: NetworkOption = False,
    only: OnlyOption = None,
    skip: SkipOption = None,
    fail_on: Annotated[
        str, typer.Option("--fail-on", help="With --once: exit with 1 from this severity on.")
    ] = "error",
    plugins: PluginsOption = None,
    vault: VaultOption = None,
) -> int:
    """Check regularly, notify, and repair if asked to."""
    from hermes_doctor.model import Trouble

    if ctx.invoked_subcommand is not None:
        _refuse_stray_options(ctx)
        return 0
    from hermes_doctor import __version__
    from hermes_doctor.cli import shared_options
    from hermes_doctor.cli.check_run import exit_code, parse_fail_on, say_blind
    from hermes_doctor.cli.stderr import tell
    from hermes_doctor.terminal.lines import tilde
    from hermes_doctor.watch import assembly

    threshold = parse_fail_on(fail_on)
    if also and not heal:
        raise Trouble("--also needs --heal.")
    ways = assembly.NotifyOptions(notify_on, notify_command, notify_webhook, notify_hermes)
    healing = (
        assembly.HealOptions(after, budget, patience, tuple(also or ()), vault) if heal else None
    )
    where, gone = _where(home)
    found = shared_options.load_plugins(plugins)
    checks, codes = shared_options.select(found, only or [], skip or [])
    made = assembly.assemble(
        where,
        found,
        checks,
        codes,
        assembly.WatchOptions(interval, network, ways, healing),
        json=json,
        options=shared_options.repeat_options(shared_options.named_home(home), plugins, vault),
        page_options=shared_options.repeat_options(plugins=plugins),
    )
    import os
    import sys

    from hermes_doctor.schedule.systemd import SERVICE_VARIABLE

    unknown = gone is not None and made.first_watch and not os.environ.get(SERVICE_VARIABLE)
    if not json and sys.stdout is not None and sys.stdout.isatty():
        tell(f"checking {tilde(where.path)}")
    if not once and not unknown:
        made.run()
        return 0
    made.title = f"hermes-doctor {__version__} checked {tilde(where.path)} once"
    report = made.once(always_report=json or (sys.stdout is not None and sys.stdout.isatty()))
    if gone is not None and not once and not json:
        raise gone
    if report is None:
        return 2
    say_blind([report])
    return exit_code([report], threshold)


def _where(option: Path | None) -> tuple[Home, Trouble | None]:
    """The home, and a Trouble if it is missing, so that the watch can report it as away."""
    import os

    from hermes_doctor import home as homes
    from hermes_doctor.model import Trouble
    from hermes_doctor.system.files import user_home
    from hermes_doctor.watch.store import WatchStateFiles

    try:
        return homes.find(option), None
    except Trouble as trouble:
        named = option or Path(os.environ.get("HERMES_HOME", ""))
        path = (named if named.parts else user_home() / ".hermes").expanduser()
        home = homes.Home(path.resolve(), path)
        if not named.parts and WatchStateFiles(home).load("") is None:
            raise  # no home was named, and none was ever watched
        return home, trouble


def _refuse_stray_options(ctx: typer.Context) -> None:
    """Raise if options precede the subcommand, where they would have no effect."""
    from hermes_doctor.message import text
    from hermes_doctor.model import Trouble

    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            word = ctx.invoked_subcommand
            option = "--" + name.replace("_", "-")
            raise Trouble(
                text(
                    "Put {option} after `{word}`: hermes-doctor watch {word} {option} …",
                    option=option,
                    word=word,
                )
            )
