"""`watch`: look again and again, tell what changed, notify, and heal where that is asked for."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_doctor.cli.options import (
    HomeOption,
    NetworkOption,
    OnlyOption,
    PluginsOption,
    SkipOption,
    VaultOption,
)

EPILOG = """\b
Examples:
  hermes-doctor watch
  hermes-doctor watch --heal --notify-hermes telegram
  hermes-doctor watch --heal --also reset-gateway --budget 3/30m
  hermes-doctor watch --notify-command 'mail -s "$HERMES_DOCTOR_TEXT" me'
  hermes-doctor watch --json | jq -c 'select(.severity == "critical")'
  hermes-doctor watch install --heal        as a service of systemd or launchd
  hermes-doctor watch --once                one round, for cron and timers

\b
Signals:
  SIGHUP looks now. SIGTERM and Ctrl-C end it; a repair under way is
  finished or taken back first.

\b
Exit codes:
  0  told to end; with --once: nothing at or above --fail-on
  1  with --once: findings
  2  could not run (bad usage, no home)
"""

app = typer.Typer(
    help="Look again and again: tell what changed, notify, and heal if asked to.",
    epilog=EPILOG,
    rich_markup_mode=None,
    invoke_without_command=True,
)

IntervalOption = Annotated[
    str, typer.Option("--interval", help="Time between two rounds: 30s, 5m.")
]
HealOption = Annotated[
    bool, typer.Option("--heal", help="Apply fixes that are safe, and restarts; see --also.")
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        help="With --heal: agree beforehand to this code or fix, though it asks. Repeatable.",
    ),
]
AfterOption = Annotated[
    int, typer.Option("--after", min=1, help="Heal what was found so often in a row.")
]
BudgetOption = Annotated[
    str, typer.Option("--budget", help="At most so many repairs in that time.")
]
PatienceOption = Annotated[
    str, typer.Option("--patience", help="How long a repair waits for an answer being written.")
]
NotifyOnOption = Annotated[str, typer.Option("--notify-on", help="Notify from this severity on.")]
CommandOption = Annotated[
    str | None,
    typer.Option(
        "--notify-command",
        help="Run this: the event as JSON on stdin, its fields in HERMES_DOCTOR_*.",
    ),
]
WebhookOption = Annotated[
    str | None,
    typer.Option("--notify-webhook", help="POST the event as JSON; @FILE reads the address there."),
]
HermesOption = Annotated[
    str | None,
    typer.Option(
        "--notify-hermes",
        metavar="PLATFORM[:CHANNEL]",
        help="Send it with `hermes send` (Hermes 0.15 and later).",
    ),
]


@app.callback()
def watch(
    ctx: typer.Context,
    home: HomeOption = None,
    interval: IntervalOption = "30s",
    once: Annotated[
        bool, typer.Option("--once", help="One round; tells what changed since the last one.")
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
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    network: NetworkOption = False,
    only: OnlyOption = None,
    skip: SkipOption = None,
    fail_on: Annotated[
        str, typer.Option("--fail-on", help="With --once: exit 1 from this severity on.")
    ] = "error",
    plugins: PluginsOption = None,
    vault: VaultOption = None,
) -> int:
    """Look again and again: tell what changed, notify, and heal if asked to."""
    from hermes_doctor.model import Trouble

    if ctx.invoked_subcommand is not None:
        _refuse_stray_options(ctx)
        return 0
    from hermes_doctor import home as homes
    from hermes_doctor.cli import asked
    from hermes_doctor.cli.checking import fails, parse_fail_on
    from hermes_doctor.watching import assembly

    threshold = parse_fail_on(fail_on)
    if also and not heal:
        raise Trouble("--also agrees to repairs, so that it needs --heal.")
    ways = assembly.Ways(notify_on, notify_command, notify_webhook, notify_hermes)
    healing = assembly.Healing(after, budget, patience, tuple(also or ()), vault) if heal else None
    where = homes.find(home)
    found = asked.loaded(plugins)
    checks, codes = asked.select(found, only or [], skip or [])
    made = assembly.assemble(
        where,
        found,
        checks,
        codes,
        assembly.Asked(interval, network, ways, healing),
        json=json,
        options=asked.repeated(asked.named_home(home), plugins, vault),
        page_options=asked.repeated(plugins=plugins),
    )
    if not once:
        made.run()
        return 0
    import sys

    report = made.once(loud=json or (sys.stdout is not None and sys.stdout.isatty()))
    return int(report is None or fails(report, threshold))


def _refuse_stray_options(ctx: typer.Context) -> None:
    """Options before the word `install` would be lost in silence."""
    from hermes_doctor.model import Trouble

    for name in ctx.params:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            word = ctx.invoked_subcommand
            option = "--" + name.replace("_", "-")
            raise Trouble(f"{option} belongs after `{word}`: hermes-doctor watch {word} {option} …")
