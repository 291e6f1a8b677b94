"""`backup prune`: old backups go."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from hermes_doctor.cli import backup_schedule as schedule
from hermes_doctor.cli.options import HomeOption, JsonOption, VaultOption, YesOption
from hermes_doctor.cli.vaults import echo, vault_of

EPILOG = """\b
Examples:
  hermes-doctor backup prune --keep 10
  hermes-doctor backup prune --older-than 30d --yes

\b
Exit codes:
  0  done
  2  could not run, or not agreed to; nothing was removed
"""


def prune(
    keep: Annotated[int, typer.Option("--keep", min=1, help="Keep this many of the newest.")] = 10,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only those older than this: 30d, 12h, 4w.")
    ] = "0d",
    daily: schedule.DailyOption = 0,
    weekly: schedule.WeeklyOption = 0,
    monthly: schedule.MonthlyOption = 0,
    yes: YesOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Remove old backups. The newest that verifies stays, and the newest of the whole home."""
    from hermes_doctor import home as homes, leftovers
    from hermes_doctor.cli import ending
    from hermes_doctor.cli.options import sure
    from hermes_doctor.interrupts import interruptible
    from hermes_doctor.lock import locked
    from hermes_doctor.model import Trouble
    from hermes_doctor.outliving import beyond, outlived
    from hermes_doctor.render.lines import row, show
    from hermes_doctor.retention import Retention

    age = _age(older_than)
    where = homes.find(home)
    with locked(where), interruptible():
        store = vault_of(home, vault)
        leftovers.tidy(store)
        rule = Retention(daily, weekly, monthly)
        doomed = outlived(store, rule) if rule else beyond(store, keep, age)
        if not json:
            show([row(("→ ", "faint"), f"remove backup {one}") for one in doomed])
            if not doomed:
                show([row("No backup is old enough to go.")])
        if doomed and not yes and (json or not sure(f"Remove {len(doomed)} for good?")):
            raise Trouble("Removing backups is for good. Nothing was removed. Say --yes.")
        for one in doomed:
            ending.changed()
            store.discard(one)
    if json:
        echo("prune", {"removed": doomed, "kept": store.ids()})
    return 0


def _age(text: str) -> timedelta:
    from hermes_doctor.model import Trouble

    units = {"h": "hours", "d": "days", "w": "weeks"}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdecimal() or len(number) > 5:
        raise Trouble(f"--older-than takes a number and h, d or w (30d, 12h, 4w), not {text!r}.")
    return timedelta(**{units[unit]: int(number)})
