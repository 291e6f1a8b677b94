"""The commands `backup schedule install|status|remove`: daily backups, and pruning of old ones."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_doctor.cli.options import HomeOption, VaultOption

app = typer.Typer(
    help="A backup every day by a timer, and only so many of the old ones kept.",
    epilog="""\b
Examples:
  hermes-doctor backup schedule install
  hermes-doctor backup schedule status
""",
    no_args_is_help=True,
    rich_markup_mode=None,
)
SystemOption = Annotated[
    bool, typer.Option("--system", help="A timer of the machine, not of the user.")
]
CronOption = Annotated[bool, typer.Option("--cron", help="A line in the crontab, nothing else.")]
DailyOption = Annotated[
    int, typer.Option("--daily", min=0, help="Keep the newest of so many days.")
]
WeeklyOption = Annotated[
    int, typer.Option("--weekly", min=0, help="Keep the newest of so many weeks.")
]
MonthlyOption = Annotated[
    int, typer.Option("--monthly", min=0, help="Keep the newest of so many months.")
]


@app.command(
    epilog="""\b
Examples:
  hermes-doctor backup schedule install --dry-run
  hermes-doctor backup schedule install --at 03:30 --daily 7 --weekly 4 --monthly 6
  sudo hermes-doctor backup schedule install --system --home /home/alice/.hermes

\b
Exit codes:
  0  installed, or so already
  2  could not be done
"""
)
def install(
    at: Annotated[str, typer.Option("--at", help="The time of the day.")] = "03:30",
    daily: DailyOption = 7,
    weekly: WeeklyOption = 4,
    monthly: MonthlyOption = 0,
    include: Annotated[
        list[str] | None, typer.Option("--include", help="As for `backup create`. Repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="As for `backup create`. Repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written; write nothing.")
    ] = False,
    system: SystemOption = False,
    cron: CronOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
) -> int:
    """Install it: a timer of systemd, a job of launchd, or a line of the crontab."""
    from hermes_doctor import home as homes
    from hermes_doctor.backup.retention import Retention
    from hermes_doctor.model import CannotFix, Trouble
    from hermes_doctor.schedule import daily_backup

    more = [word for one in include or () for word in ("--include", one)]
    more += [word for one in exclude or () for word in ("--exclude", one)]
    try:
        manager, job = daily_backup.prepare(
            homes.find(home),
            at=at,
            retention=Retention(daily, weekly, monthly),
            more=more,
            vault=vault,
            system=system,
            cron=cron,
        )
        typer.echo(f"{manager.describe().capitalize()}: {manager.place(job)}")
        parts = [manager.text(job)]
        if isinstance(manager, daily_backup.DailyTimer):
            parts.append(manager.service_text(job))
        for text in parts:
            typer.echo("".join(f"  {line}\n" for line in text.splitlines()).rstrip("\n"))
        if dry_run:
            typer.echo("Nothing was written.")
            return 0
        changed = manager.install(job)
    except CannotFix as why:
        raise Trouble(f"{str(why).rstrip('.')}.") from None
    done = "Installed" if changed else "It is installed already"
    typer.echo(f"{done}: a backup every day at {job.at}.")
    for hint in manager.hints(job):
        typer.echo(hint)
    return 0


@app.command(
    epilog="""\b
Exit codes:
  0  installed, and the last backup is not older than two days
  1  not so
  2  could not tell
"""
)
def status(
    system: SystemOption = False,
    cron: CronOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
) -> int:
    """Is it installed, and when was the last backup?"""
    from datetime import UTC, datetime, timedelta

    from hermes_doctor import home as homes
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.model import CannotFix, Trouble
    from hermes_doctor.schedule import daily_backup
    from hermes_doctor.schedule.durations import format_duration

    where = homes.find(home)
    try:
        manager, job = daily_backup.find_job(where, system=system, cron=cron)
        told = manager.status(job)
        place = vault or daily_backup.vault_of(manager, job)
    except CannotFix as why:
        raise Trouble(f"{str(why).rstrip('.')}.") from None
    word = "installed" if told.installed else "not installed"
    typer.echo(f"{manager.describe().capitalize()}: {word}; {told.what}.")
    store = Vault(where, place)
    newest = store.newest()
    if newest is None:
        typer.echo(f"There is no backup of this home in {store.root} yet.")
        return 1
    ago = datetime.now(UTC) - newest.created_at
    seconds = max(0.0, ago.total_seconds())
    typer.echo(
        f"The last backup of the home: {newest.id}, "
        f"{format_duration(seconds)} ago ({newest.reason})."
    )
    late = ago > timedelta(days=2)
    if late and told.installed:
        typer.echo("That is too long ago: it does not run, or it fails.")
    return int(late or not (told.installed and told.running))


@app.command(
    epilog="""\b
Exit codes:
  0  it is gone, or was not there
  2  could not be done
"""
)
def remove(system: SystemOption = False, cron: CronOption = False, home: HomeOption = None) -> int:
    """Take it away again. The backups stay."""
    from hermes_doctor import home as homes
    from hermes_doctor.model import CannotFix, Trouble
    from hermes_doctor.schedule import daily_backup

    try:
        manager, job = daily_backup.find_job(homes.find(home), system=system, cron=cron)
        there = manager.remove(job)
    except CannotFix as why:
        raise Trouble(f"{str(why).rstrip('.')}.") from None
    typer.echo("It is gone; the backups stay." if there else "It was not installed.")
    return 0
