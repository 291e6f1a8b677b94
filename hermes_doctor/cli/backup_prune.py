"""The `backup prune` command: remove old backups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import backup_schedule as schedule, exits
from hermes_doctor.cli.backup_common import run_on_vault
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, VaultOption, YesOption
from hermes_doctor.cli.progress_bars import print_schema_document, waiting
from hermes_doctor.core.message import count, sentences, text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import progress
from hermes_doctor.core.system.signals import interruptible
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.vault.prune_rules import PruneSelection
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.core.terminal.lines import Line

EPILOG = """\b
Examples:
  hermes-doctor backup prune --keep 10
  hermes-doctor backup prune --older-than 30d --yes
  hermes-doctor backup prune ID           remove this one even if it is needed

\b
Exit codes:
  0  done
  2  could not run, or you answered no; nothing was removed
"""


def prune(
    ids: list[str] | None = typer.Argument(
        None, metavar="[ID]...", help="Remove these backups, even if still needed."
    ),
    keep: int | None = typer.Option(
        None, min=1, metavar="N", help="Keep the N newest backups.", show_default="10"
    ),
    older_than: str | None = typer.Option(
        None, help="Remove only backups older than this: 30d, 12h, 4w.", show_default="0d"
    ),
    daily: schedule.DailyOption = 0,
    weekly: schedule.WeeklyOption = 0,
    monthly: schedule.MonthlyOption = 0,
    yes: YesOption = False,
    home: HomeOption = None,
    vault: VaultOption = None,
    json: JsonOption = False,
) -> int:
    """Remove old backups that are no longer needed.

    Always kept: the newest intact backup, the newest of the whole home, what `undo` or `rollback`
    needs for 30 days, and the last backup that has rows which the database lacks.
    """
    from hermes_doctor.backup.vault.prune_rules import Retention

    age = _age("0d" if older_than is None else older_than)
    rule = Retention(daily, weekly, monthly)
    if ids and (rule or keep is not None or older_than is not None):
        raise Trouble(
            "Give backup ids or a rule (--keep, --daily, …), not both. Nothing was removed."
        )

    def select(store: Vault) -> tuple[PruneSelection, list[str]]:
        from hermes_doctor.backup.vault import prune_rules

        if ids:
            doomed, lost = prune_rules.check_named(store, ids)
            return prune_rules.PruneSelection(doomed, {}), lost
        if rule:
            return prune_rules.select_by_retention(store, rule), []
        number = 10 if keep is None else keep
        return prune_rules.select_by_count_and_age(store, number, age), []

    return run_on_vault(home, vault, lambda store: _prune(store, select, yes=yes, json=json))


def _prune(
    store: Vault,
    select: Callable[[Vault], tuple[PruneSelection, list[str]]],
    *,
    yes: bool,
    json: bool,
) -> int:
    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.cli.option_declarations import confirm

    exits.set_interrupt_text("No backup was removed.")
    with lock_home(store.home), interruptible():
        with waiting("looking for backups that are still needed", quiet=json):
            store.remove_leftovers()
            prune_selection, lost = select(store)
        doomed = prune_selection.to_remove
        if not json:
            show([row(("→ ", "faint"), f"remove backup {one}") for one in doomed])
            show([row(("! ", "warning"), loss, hang=2) for loss in lost])
            show(protected_lines(prune_selection))
            if not doomed:
                why = "No backup was removed." if prune_selection.protected else ""
                show([row(why or "No backup is old enough to be removed.")])
        question = "Remove {backups}? A removed backup cannot be restored."
        backups = count(len(doomed), "backup")
        if doomed and not yes and (json or not confirm(text(question, backups=backups))):
            raise Trouble(
                sentences(
                    "A removed backup cannot be restored.",
                    *(lost if json else ()),
                    "Nothing was removed. To remove: add --yes",
                )
            )
        with waiting("removing old backups", quiet=json):
            for number, one in enumerate(doomed):
                exits.note_change()
                exits.set_interrupt_text(_part_done(doomed, number))
                progress.report(f"removing backup {one}", number / len(doomed))
                store.discard(one)
    if doomed and not json:
        kept = count(len(store.ids()), "backup")
        show([row(("✓ ", "good"), f"Removed {backups}; {kept} left.", hang=2)])
    if json:
        protected = [{"id": id, "why": why} for id, why in prune_selection.protected.items()]
        made = {"removed": doomed, "kept": store.ids(), "protected": protected, "lost": lost}
        print_schema_document("prune", made)
    return 0


def protected_lines(prune_selection: PruneSelection) -> Iterator[Line]:
    """One line for each backup that is still needed, and how to remove it anyway."""
    for id, why in prune_selection.protected.items():
        yield row(("! ", "warning"), f"keep backup {id}: {why}", hang=2)
    if prune_selection.protected:
        text = "To remove such a backup anyway: hermes-doctor backup prune ID"
        yield row((text, "faint"), indent=2)


def _part_done(doomed: Sequence[str], number: int) -> str:
    """What is removed when the removal of the backup with this number is interrupted."""
    left = len(doomed) - number - 1
    done = f"{number} of {count(len(doomed), 'backup')} removed; {doomed[number]} may be too."
    return f"{done} {count(left, 'backup')} left to remove." if left else done


def _age(given: str) -> timedelta:
    units = {"h": "hours", "d": "days", "w": "weeks"}
    number, unit = given[:-1], given[-1:]
    if unit not in units or not number.isdecimal() or len(number) > 5:
        raise Trouble(
            "--older-than needs a number and h, d or w, such as 30d; got {given!r}.", given=given
        )
    return timedelta(**{units[unit]: int(number)})
