"""The commands `backup schedule install|status|remove`: daily backups, and pruning of old ones."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_doctor.cli import separate_look, separate_work
from hermes_doctor.cli.help_layout import WholeSummaries
from hermes_doctor.cli.option_declarations import (
    CronOption,
    DryRunOption,
    HomeOption,
    SystemOption,
    VaultOption,
)
from hermes_doctor.cli.option_values import absolute
from hermes_doctor.core.message import ago
from hermes_doctor.core.preferences import effective

app = typer.Typer(
    cls=WholeSummaries,
    help="Back up every day and remove old backups.",
    epilog="""\b
Examples:
  hermes-doctor backup schedule install
  hermes-doctor backup schedule status
""",
    no_args_is_help=True,
    rich_markup_mode=None,
)
DailyOption = Annotated[
    int, typer.Option(min=0, metavar="N", help="Keep the newest backup of each of the last N days.")
]
WeeklyOption = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Keep the newest backup of each of the last N weeks."),
]
MonthlyOption = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Keep the newest backup of each of the last N months."),
]


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup schedule install --dry-run
  hermes-doctor backup schedule install --at 03:30 --daily 7 --weekly 4 --monthly 6
  sudo hermes-doctor backup schedule install --system --home /home/alice/.hermes

\b
Exit codes:
  0  installed, or already installed
  2  could not be installed; nothing was changed
"""
)
def install(
    at: str = typer.Option("03:30", help="Back up at this time of the day."),
    daily: DailyOption = 7,
    weekly: WeeklyOption = 4,
    monthly: MonthlyOption = 0,
    include: list[str] | None = typer.Option(
        None, help="Also back up these files, as in `backup create`."
    ),
    exclude: list[str] | None = typer.Option(
        None, help="Leave out these files, as in `backup create`."
    ),
    dry_run: DryRunOption = False,
    system: SystemOption = False,
    cron: CronOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
) -> int:
    """Install a daily backup (systemd, launchd or cron)."""
    from hermes_doctor.backup.vault.prune_rules import Retention
    from hermes_doctor.repair.schedule import daily_backup

    where = separate_look.find_home(home)
    more = [word for one in include or () for word in ("--include", one)]
    more += [word for one in exclude or () for word in ("--exclude", one)]
    manager, job = daily_backup.prepare(
        where,
        at=at,
        retention=Retention(daily, weekly, monthly),
        more=more,
        vault=vault or effective.load().vault(where.path),
        system=system,
        cron=cron,
    )
    typer.echo(f"{manager.describe().capitalize()}: {manager.place(job)}")
    parts = [manager.text(job)]
    if isinstance(manager, daily_backup.DailyTimer):
        parts.append(manager.service_text(job))
    for part in parts:
        typer.echo("".join(f"  {line}\n" for line in part.splitlines()).rstrip("\n"))
    if dry_run:
        typer.echo("Nothing was written.")
        return 0
    changed = manager.install(job)
    done = "Installed" if changed else "Already installed"
    typer.echo(f"{done}: a backup every day at {job.at}.")
    for hint in manager.hints(job):
        typer.echo(hint)
    return 0


@app.command(
    epilog="""\b
Exit codes:
  0  installed, and the last backup is at most two days old
  1  not installed, or no recent backup
  2  could not find out
"""
)
def status(
    system: SystemOption = False,
    cron: CronOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
) -> int:
    """Show whether it is installed, and the last backup."""
    from datetime import UTC, datetime, timedelta

    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.repair.schedule import daily_backup

    where = separate_look.find_home(home)
    manager, job = daily_backup.find_job(where, system=system, cron=cron)
    told = manager.status(job)
    place = absolute(vault) or daily_backup.vault_of(manager, job)
    word = "installed" if told.installed else "not installed"
    typer.echo(f"{manager.describe().capitalize()}: {word}; {told.what}.")

    def work() -> int:
        store = Vault(where, place)
        newest = store.newest()
        if newest is None:
            typer.echo(f"{store.root} contains no backup of this home yet.")
            return 1
        typer.echo(f"Last backup: {newest.id}, {ago(newest.created_at)}, reason: {newest.reason}.")
        late = datetime.now(UTC) - newest.created_at > timedelta(days=2)
        if late and told.installed:
            typer.echo(
                "The last backup is older than 2 days: the daily backup does not run or fails."
            )
        return int(late or not (told.installed and told.running))

    return separate_work.run(where, work, writes=False, vault=place)


@app.command(
    epilog="""\b
Exit codes:
  0  removed, or it was not installed
  2  could not be removed
"""
)
def remove(system: SystemOption = False, cron: CronOption = False, home: HomeOption = None) -> int:
    """Remove the daily backup; existing backups are kept."""
    from hermes_doctor.repair.schedule import daily_backup

    where = separate_look.find_home(home)
    manager, job = daily_backup.find_job(where, system=system, cron=cron)
    if manager.remove(job):
        typer.echo("Removed the daily backup. Existing backups are kept.")
    else:
        typer.echo("The daily backup was not installed.")
    return 0
