"""The commands `watch install|status|remove`: run the watch as a service or cron job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import option_values, separate_look, watch as own
from hermes_doctor.cli.option_declarations import (
    CronOption,
    DryRunOption,
    HomeOption,
    PluginsOption,
    SystemOption,
    VaultOption,
)
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.redaction import clean

if TYPE_CHECKING:
    from hermes_doctor.core.home import Home

app = own.app
INSTALL_EPILOG = """\b
Examples:
  hermes-doctor watch install --dry-run     show what would be written
  hermes-doctor watch install --heal
  sudo hermes-doctor watch install --system --home /home/alice/.hermes --heal

\b
Exit codes:
  0  installed and running (with cron: scheduled), or already so
  2  could not be installed
"""
STATUS_EPILOG = """\b
Exit codes:
  0  installed and running or scheduled, and the last check is recent
  1  not installed, not running, or no recent check
  2  could not find out
"""

REMOVE_EPILOG = """\b
Exit codes:
  0  removed, or it was not installed
  2  could not be removed
"""


@app.command("install", epilog=INSTALL_EPILOG)
def install(
    home: HomeOption = None,
    system: SystemOption = False,
    cron: CronOption = False,
    dry_run: DryRunOption = False,
    interval: own.IntervalOption = None,
    heal: own.HealOption = None,
    also: own.AlsoOption = None,
    after: own.AfterOption = None,
    budget: own.BudgetOption = None,
    patience: own.PatienceOption = None,
    notify_on: own.NotifyOnOption = None,
    notify_command: own.CommandOption = None,
    notify_webhook: own.WebhookOption = None,
    notify_hermes: own.HermesOption = None,
    network: own.WatchNetworkOption = None,
    fail_on: own.FailOnOption = None,
    plugins: PluginsOption = None,
    vault: VaultOption = None,
    metrics: own.MetricsOption = None,
    heartbeat: own.HeartbeatOption = None,
    heartbeat_fail: own.HeartbeatFailOption = None,
) -> int:
    """Install the watch as a service and start it.

    systemd, launchd or cron runs it.
    """
    typed = dict(locals())  # all options, before there is any other name
    from hermes_doctor.cli import watch_run
    from hermes_doctor.cli.check_run import parse_fail_on
    from hermes_doctor.operations.watch import install

    where = separate_look.find_home(home)
    values = watch_run.complete(where.path, typed)
    if fail_on is not None:
        parse_fail_on(fail_on)
    wanted = watch_run.assemble(values, vault or effective.load().vault(where.path), fail_on)
    declined = [("--no-heal", heal), ("--no-network", network)]
    wanted = wanted._replace(declined=tuple(word for word, typed in declined if typed is False))
    watch_run.warn_of_open_files(wanted)
    if wanted.metrics is not None:
        wanted = wanted._replace(metrics=_metrics_file(wanted.metrics, where, system=system))
    found = option_values.load_plugins(plugins)
    manager, job = install.prepare(
        where, found, wanted, system=system, cron=cron, folders=plugins or ()
    )
    typer.echo(f"{manager.place(job)}:")
    for line in manager.text(job).splitlines():
        typer.echo(f"  {clean(line)}")
    if dry_run:
        typer.echo("Nothing was written.")
        return 0
    changed = install.install(manager, job, wanted)
    done = "Installed" if changed else "Already installed"
    if not manager.schedules:
        done += " and started" if changed else " and running"
    typer.echo(f"{done}: {manager.describe()}.")
    for hint in (*manager.hints(job), *install.secret_file_lines(job)):
        typer.echo(hint)
    return 0


@app.command("status", epilog=STATUS_EPILOG)
def status(home: HomeOption = None, system: SystemOption = False, cron: CronOption = False) -> int:
    """Show whether the watch runs and what it did."""
    from hermes_doctor.operations.watch import install

    where = separate_look.find_home(home)
    manager, job = install.find_job(where, system=system, cron=cron)
    told = manager.status(job)
    word = "installed" if told.installed else "not installed"
    typer.echo(f"{manager.describe().capitalize()}: {word}; {told.what}.")
    if told.since:
        typer.echo(f"Running since {told.since}.")
    for line in install.state_lines(job):
        typer.echo(clean(line))
    late = install.overdue_reason(job, scheduled=manager.schedules) if told.installed else None
    if late:
        typer.echo(late)
    return int(not (told.installed and told.running) or bool(late))


@app.command("remove", epilog=REMOVE_EPILOG)
def remove(home: HomeOption = None, system: SystemOption = False, cron: CronOption = False) -> int:
    """Stop the watch and remove everything it installed.

    Backups and receipts are kept, so that its repairs can be undone, and so is
    the history.
    """
    from hermes_doctor.operations.history import place
    from hermes_doctor.operations.watch import install

    where = separate_look.find_home(home)
    manager, job = install.find_job(where, system=system, cron=cron)
    if not manager.remove(job):  # existing files belong to a watch that somebody started by hand
        typer.echo("The watch was not installed.")
        return 0
    left = install.remove_state(job)
    typer.echo(f"Removed: {manager.place(job)}")
    for path in left:
        typer.echo(f"Removed: {path}")
    if (history := job.folder / place.FILE).is_file():
        typer.echo(f"Kept: {history}")
    return 0


def _metrics_file(given: Path, home: Home, *, system: bool) -> Path:
    """The file for Prometheus; raise Trouble if the service could not write it."""
    from hermes_doctor.cli import output_file

    path = output_file.find(given, output_file.rules_for([home]))
    if system and any(path.is_relative_to(place) for place in ("/tmp", "/var/tmp")):
        raise Trouble(
            "A system service has its own {folder}. Choose another --metrics file.",
            folder=path.parent,
        )
    return path
