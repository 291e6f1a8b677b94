"""`update-guard` and `rollback`, and what they share with `hook run`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from hermes_doctor.cli.options import HomeOption, JsonOption, VaultOption, YesOption

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.recovery import Ended
    from hermes_doctor.updating.before import Moment
    from hermes_doctor.updating.going_back import Plan
    from hermes_doctor.updating.hermes import Installed
    from hermes_doctor.updating.records import Update
    from hermes_doctor.vault import Backup

PATIENCE = 120.0
GUARD_EPILOG = """\b
Examples:
  hermes-doctor update-guard -- hermes update
  hermes-doctor update-guard -- pipx upgrade hermes-agent
  hermes-doctor update-guard -- docker compose up -d --pull always

\b
Exit codes:
  0    updated, and nothing that matters is broken
  1    something is broken that was not before
  2    not begun: a bad moment, or no backup; nothing was changed
  …    else the exit code of the command itself
"""
ROLLBACK_EPILOG = """\b
What it does:
  Stops the gateway, brings the Hermes of before back, then the data of the
  backup, and starts the gateway. What is there now is backed up first:
  `hermes-doctor undo` brings the data back.

\b
Examples:
  hermes-doctor rollback                    ask first
  hermes-doctor rollback --keep-data --yes  only the old Hermes

\b
Exit codes:
  0  back, and verified
  1  not agreed to, or something could not be brought back
  2  could not run; nothing was changed
"""


def update_guard(
    context: typer.Context,
    home: HomeOption = None,
    vault: VaultOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Go on although the moment is bad or the backup failed.")
    ] = False,
) -> int:
    """Run a command that updates Hermes between a backup and a check."""
    from hermes_doctor import home as homes
    from hermes_doctor.model import Trouble
    from hermes_doctor.updating import guard

    command = list(context.args)
    if not command:
        raise Trouble("No command. Try: hermes-doctor update-guard -- hermes update")
    if guard.is_inside():
        os.execvp(command[0], command)
    where = homes.find(home)
    with contextlib.ExitStack() as held:
        update = before(where, vault=vault, force=force, json=False, command=command, held=held)
        if update is None:
            return 2
        code = guard.carry_out(where, update, command)
        if code:
            say("! ", "warning", f"{command[0]} ended with {code}.")
        good = after(where, update, to=sys.stderr)
    return (code if code > 0 else 128 - code) if code else int(not good)


def before(
    home: Home,
    *,
    vault: Path | None,
    force: bool,
    json: bool,
    patience: float = PATIENCE,
    busy: bool = True,
    command: Sequence[str] = (),
    held: contextlib.ExitStack | None = None,
) -> Update | None:
    """Preflight and backup; None where the update must not begin.

    With `held`, no other update or rollback begins until that is left.
    """
    with contextlib.ExitStack() as meanwhile:
        hold = held or meanwhile
        return _before(home, vault, force, json, patience if busy else None, command, hold)


def _before(
    home: Home,
    vault: Path | None,
    force: bool,
    json: bool,
    patience: float | None,
    command: Sequence[str],
    hold: contextlib.ExitStack,
) -> Update | None:
    from hermes_doctor.cli.asked import loaded
    from hermes_doctor.model import CouldNotLook, Trouble
    from hermes_doctor.probes import Probes
    from hermes_doctor.updating import before as first
    from hermes_doctor.updating.records import Records

    moment = first.preflight(Probes(home), loaded(None), patience=patience, tell=tell)
    for text in moment.obstacles:
        say("✗ ", "error", text[:1].upper() + text[1:])
    if moment.obstacles and not force:
        _stopped("This is no moment for an update", json=json)
        return None
    with contextlib.suppress(OSError):  # where there is no room for it, the backup says so
        hold.enter_context(Records(home).held())
    try:
        update = _backed_up(home, moment, vault, command, quiet=json)
    except (Trouble, CouldNotLook, OSError) as why:
        say("✗ ", "error", str(why))
        if not force:
            _stopped("There is no backup, so there is no update", json=json)
            return None
        update = first.record(home, None, vault, moment, command)
    if update.others and update.before is not None:
        where = f"{update.before.version} in {update.before.where}"
        more = ", ".join(f"{version} in {place}" for place, version in update.others.items())
        say("! ", "warning", f"There are several Hermes. This update is of {where}, not of {more}.")
    if json:
        _echo({"schema": "hermes-doctor/update/1", "update": update.id, "backup": update.backup})
    else:
        say("✓ ", "good", f"Backup {update.backup} is made and verified." if update.backup else "")
    return update


def _backed_up(
    home: Home, moment: Moment, vault: Path | None, command: Sequence[str], *, quiet: bool
) -> Update:
    from hermes_doctor.cli.copying import bar
    from hermes_doctor.updating import before as first

    with contextlib.ExitStack() as stack:
        return first.back_up(
            home,
            moment,
            vault=vault,
            command=command,
            progress=lambda total: stack.enter_context(bar("backing up", total, quiet=quiet)),
        )


def _stopped(why: str, *, json: bool) -> None:
    text = f"{why}. Nothing was changed. --force goes on all the same."
    if json:
        _echo({"schema": "hermes-doctor/update/1", "update": None, "error": text})
    else:
        say("✗ ", "error", text)


def began_in_chat(home: Home, update: Update) -> None:
    """Hermes goes on by itself from here; the gateway that it starts looks at it."""
    from hermes_doctor.updating.records import UPDATING, Records

    update.chat = True
    update.stage = UPDATING
    Records(home).save(update)


def after_last(home: Home, *, json: bool, from_chat: bool) -> int:
    """Look at what became of the last update."""
    from hermes_doctor.model import Trouble
    from hermes_doctor.updating.records import Records

    records = Records(home)
    update = records.last() if from_chat else records.newest()
    if from_chat and not _is_of_chat(home, update):
        return 0  # an ordinary start
    if update is None:
        raise Trouble("No update was begun with the guard: hermes-doctor hook run pre-update")
    _refuse_attended(update)
    with records.held():
        return int(not after(home, update, json=json, restart=not from_chat))


def _is_of_chat(home: Home, update: Update | None) -> bool:
    """Whether a gateway that starts is the one that an update without a guard has started."""
    from hermes_doctor.probes import Probes
    from hermes_doctor.updating.hermes import differs
    from hermes_doctor.updating.records import BACKED_UP, UPDATING

    if update is None or update.stage not in (BACKED_UP, UPDATING):
        return False
    if update.stage == UPDATING and not update.chat:
        return False
    return differs(Probes(home).installation(), update.before)


def _refuse_attended(update: Update) -> None:
    from hermes_doctor.model import Trouble

    who = update.attendant()
    if who is not None and who != os.getpid():
        raise Trouble(
            f"Update {update.id} is still under way (process {who}). Nothing was changed; "
            "try again when that has ended."
        )


def after(
    home: Home,
    update: Update,
    *,
    json: bool = False,
    restart: bool = True,
    to: TextIO | None = None,
) -> bool:
    """Look at everything, say what was broken; whether nothing that matters was."""
    from hermes_doctor.cli.asked import loaded, repeated
    from hermes_doctor.render import updated
    from hermes_doctor.render.lines import show
    from hermes_doctor.updating import after as second

    outcome = second.examine(
        home, update, loaded(None), settle=_settle(), restart=restart, tell=tell
    )
    if json:
        _echo(updated.document(outcome))
    else:
        show(updated.lines(outcome, repeated(home.path)), to)
    return outcome.good


def _settle() -> float:
    from hermes_doctor.updating.after import SETTLE

    try:
        return float(os.environ["HERMES_DOCTOR_SETTLE"])
    except (KeyError, ValueError):
        return SETTLE


def rollback(
    update: Annotated[str | None, typer.Argument(help="The update; else the last one.")] = None,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Only the old Hermes; the data stays as it is.")
    ] = False,
    home: HomeOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> int:
    """Go back to the Hermes and the data that were there before an update."""
    from hermes_doctor import home as homes
    from hermes_doctor.cli.options import sure
    from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
    from hermes_doctor.updating.records import BACK, Records

    where = homes.find(home)
    records = Records(where)
    which = records.load(update) if update else records.newest()
    if which is None:
        raise Trouble("No update was made with the guard, so there is nothing to go back to.")
    if which.stage == BACK and not update:
        raise Trouble(
            f"Update {which.id} was taken back already. What came in since then would be replaced "
            f"by the backup again: if that is meant, say hermes-doctor rollback {which.id}. "
            "Nothing was changed."
        )
    _refuse_attended(which)
    with records.held():
        try:
            plan, backup = _planned(where, which, keep_data=keep_data)
        except (CannotFix, CouldNotLook, Trouble) as why:
            said = _sentence(why).replace(" Nothing was changed.", "")
            raise Trouble(f"{said} Nothing was changed.") from None
        for one in plan.commands:
            say("→ ", "faint", f"run {one}")
        for note in plan.notes:
            say("  ", "faint", note)
        if backup is not None:
            say("→ ", "faint", f"put back everything from backup {backup.id}")
        if not yes and not sure("Go on? What is there now is backed up first."):
            say("  ", "faint", "Nothing was changed.")
            return 1
        return _go_back(where, which, plan, backup, json=json)


def _sentence(why: object) -> str:
    text = str(why)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _planned(home: Home, update: Update, *, keep_data: bool) -> tuple[Plan, Backup | None]:
    """Everything that can be known to fail, before anything is changed."""
    from hermes_doctor.model import Trouble
    from hermes_doctor.probes import Probes
    from hermes_doctor.probes.installation import at
    from hermes_doctor.updating import going_back, hermes
    from hermes_doctor.vault import Vault

    if update.before is None:
        raise Trouble(f"Which Hermes was there before update {update.id} is not known.")
    if update.backup is None and not keep_data:
        raise Trouble("That update had no backup. --keep-data brings only the old Hermes back.")
    found = at(Path(update.before.where)) or Probes(home).installation()
    plan = going_back.plan(home, update, hermes.look(found) if found else None)
    going_back.refuse_holders(home, keep_data=keep_data)
    if keep_data or update.backup is None:
        return plan, None
    store = Vault(home, Path(update.vault) if update.vault else None)
    backup = store.load(update.backup)
    tell(f"verifying backup {backup.id}")
    if wrong := store.verify(backup):
        raise Trouble(f"Backup {backup.id} is damaged: {wrong[0]}.")
    return plan, backup


def _go_back(home: Home, update: Update, plan: Plan, backup: Backup | None, *, json: bool) -> int:
    from hermes_doctor import plugins
    from hermes_doctor.cli import ending
    from hermes_doctor.cli.restoring import recovered
    from hermes_doctor.lock import locked
    from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
    from hermes_doctor.updating import going_back
    from hermes_doctor.updating.downtime import down
    from hermes_doctor.updating.records import BACK, GOING_BACK, Records, process

    assert update.before is not None
    records = Records(home)
    with locked(home), recovered(home, plugins.load(), json=json) as ended:
        update.stage = GOING_BACK
        update.guard = process(os.getpid()) or []
        records.save(update)
        ending.changed()
        try:
            with down(home, update, tell) as up_again:
                going_back.bring_back(home, plan.commands, update.before, tell)
                if backup is not None:
                    _restore(home, update, backup, ended, json=json)
                up_again()
        except (CannotFix, CouldNotLook, Trouble) as why:
            said = _sentence(why)
            for denied in (" Nothing was changed.", " Nothing was changed;"):
                said = said.replace(denied, "")
            say(
                "✗ ",
                "error",
                f"{said} The way back is unfinished: run it again when that is mended.",
            )
            for note in plan.notes:
                say("  ", "faint", note)
            return 1
        update.stage = BACK
        update.guard = []
        records.save(update)
    say("✓ ", "good", f"Back to Hermes {_named(update.before)}.")
    for note in plan.notes:
        say("  ", "faint", note)
    return 0


def _named(before: Installed) -> str:
    return before.version + (f" ({before.revision[:12]})" if before.revision else "")


def _restore(
    home: Home, update: Update, backup: Backup, ended: Sequence[Ended], *, json: bool
) -> None:
    from hermes_doctor import outside, restoring
    from hermes_doctor.cli.restoring import carry_out
    from hermes_doctor.model import CannotFix

    wanted, left = outside.coming_back(home, backup.entries, backup.entries)
    for name in left:
        say("! ", "warning", f"{name} lies outside of the home, and is left as it is.")
    done = carry_out(
        home,
        backup,
        restoring.items_for(home, backup, wanted, "rollback"),
        kind="restore",
        of=backup.id,
        ended=ended,
        yes=True,
        json=json,
        vault=Path(update.vault) if update.vault else None,
        repeat="",
    )
    if done is None or done.state != "done":
        raise CannotFix("the data could not be brought back")


def tell(text: str) -> None:
    """What is being done now, where somebody waits for it."""
    if sys.stderr.isatty():
        typer.echo(f"  {text} …", err=True)


def say(mark: str, style: str, text: str) -> None:
    """One line on stderr: stdout is the command's."""
    from hermes_doctor.render.lines import row, show

    if text:
        show([row((mark, style), text, hang=2)], sys.stderr)


def _echo(made: dict[str, object]) -> None:
    from hermes_doctor.render import document

    typer.echo(document.dump(made))
