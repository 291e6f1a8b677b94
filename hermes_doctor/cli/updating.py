"""`update-guard` and `rollback`, and what they share with `hook run`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli.options import HomeOption, JsonOption, VaultOption, YesOption

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.updating.before import Moment
    from hermes_doctor.updating.hermes import Installed
    from hermes_doctor.updating.records import Update

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
    if os.environ.get(guard.INSIDE):
        os.execvp(command[0], command)
    where = homes.find(home)
    update = before(where, vault=vault, force=force, json=False)
    if update is None:
        return 2
    code = guard.carry_out(where, update, command)
    if code:
        say("! ", "warning", f"{command[0]} ended with {code}.")
    good = after(where, update)
    return (code if code > 0 else 128 - code) if code else int(not good)


def before(
    home: Home,
    *,
    vault: Path | None,
    force: bool,
    json: bool,
    patience: float = PATIENCE,
    busy: bool = True,
) -> Update | None:
    """Preflight and backup; None where the update must not begin."""
    from hermes_doctor.cli.asked import loaded
    from hermes_doctor.model import CouldNotLook, Trouble
    from hermes_doctor.probes import Probes
    from hermes_doctor.updating import before as first

    moment = first.preflight(
        Probes(home), loaded(None), patience=patience if busy else None, tell=tell
    )
    for text in moment.obstacles:
        say("✗ ", "error", text[:1].upper() + text[1:])
    if moment.obstacles and not force:
        _stopped("This is no moment for an update", json=json)
        return None
    try:
        update = _backed_up(home, moment, vault, quiet=json)
    except (Trouble, CouldNotLook, OSError) as why:
        say("✗ ", "error", str(why))
        if not force:
            _stopped("There is no backup, so there is no update", json=json)
            return None
        update = first.record(home, None, vault, moment)
    if json:
        _echo({"schema": "hermes-doctor/update/1", "update": update.id, "backup": update.backup})
    else:
        say("✓ ", "good", f"Backup {update.backup} is made and verified." if update.backup else "")
    return update


def _backed_up(home: Home, moment: Moment, vault: Path | None, *, quiet: bool) -> Update:
    import contextlib

    from hermes_doctor.cli.copying import bar
    from hermes_doctor.updating import before as first

    with contextlib.ExitStack() as stack:
        return first.back_up(
            home,
            moment,
            vault=vault,
            progress=lambda total: stack.enter_context(bar("backing up", total, quiet=quiet)),
        )


def _stopped(why: str, *, json: bool) -> None:
    text = f"{why}. Nothing was changed. --force goes on all the same."
    if json:
        _echo({"schema": "hermes-doctor/update/1", "update": None, "error": text})
    else:
        say("✗ ", "error", text)


def after_last(home: Home, *, json: bool, from_chat: bool) -> int:
    """Look at what became of the last update."""
    from hermes_doctor.model import Trouble
    from hermes_doctor.updating.records import BACKED_UP, Records

    update = Records(home).last()
    if from_chat and (update is None or update.stage != BACKED_UP or not _differs(home, update)):
        return 0  # an ordinary start
    if update is None:
        raise Trouble("No update was begun with the guard: hermes-doctor hook run pre-update")
    return int(not after(home, update, json=json, restart=not from_chat))


def _differs(home: Home, update: Update) -> bool:
    from hermes_doctor.probes import Probes
    from hermes_doctor.updating import hermes

    found = Probes(home).installation()
    now = hermes.look(found) if found else None
    then = update.before
    if now is None or then is None:
        return now is not then
    return (now.version, now.revision) != (then.version, then.revision)


def after(home: Home, update: Update, *, json: bool = False, restart: bool = True) -> bool:
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
        show(updated.lines(outcome, repeated(home.path)))
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
    from hermes_doctor.cli import ending
    from hermes_doctor.cli.options import sure
    from hermes_doctor.model import CannotFix, Trouble
    from hermes_doctor.probes import Probes
    from hermes_doctor.updating import going_back, hermes
    from hermes_doctor.updating.downtime import down
    from hermes_doctor.updating.records import BACK, GOING_BACK, Records

    where = homes.find(home)
    records = Records(where)
    which = records.load(update) if update else records.last()
    if which is None:
        raise Trouble("No update was made with the guard, so there is nothing to go back to.")
    if which.before is None:
        raise Trouble(f"Which Hermes was there before update {which.id} is not known.")
    if which.backup is None and not keep_data:
        raise Trouble("That update had no backup. --keep-data brings only the old Hermes back.")
    found = Probes(where).installation()
    try:
        todo = going_back.commands(where, which.before, hermes.look(found) if found else None)
    except CannotFix as why:
        raise Trouble(f"{str(why)[:1].upper()}{str(why)[1:]}. Nothing was changed.") from None
    for one in todo:
        say("→ ", "faint", f"run {one}")
    if not keep_data:
        say("→ ", "faint", f"put back everything from backup {which.backup}")
    if not yes and not sure("Go on? What is there now is backed up first."):
        say("  ", "faint", "Nothing was changed.")
        return 1
    which.stage = GOING_BACK
    records.save(which)
    ending.changed()
    try:
        with down(where, tell) as up_again:
            going_back.bring_back(where, todo, which.before, tell)
            if not keep_data:
                _restore(where, which, json=json)
            up_again()
    except CannotFix as why:
        say(
            "✗ ",
            "error",
            f"{str(why)[:1].upper()}{str(why)[1:]}. Run it again when that is mended.",
        )
        return 1
    which.stage = BACK
    records.save(which)
    say("✓ ", "good", f"Back to Hermes {_named(which.before)}.")
    return 0


def _named(before: Installed) -> str:
    return before.version + (f" ({before.revision[:12]})" if before.revision else "")


def _restore(home: Home, update: Update, *, json: bool) -> None:
    from hermes_doctor import plugins, restoring
    from hermes_doctor.cli.restoring import carry_out, recovered
    from hermes_doctor.lock import locked
    from hermes_doctor.model import CannotFix
    from hermes_doctor.vault import Vault

    assert update.backup is not None
    vault = Path(update.vault) if update.vault else None
    with locked(home), recovered(home, plugins.load(), json=json) as ended:
        store = Vault(home, vault)
        backup = store.load(update.backup)
        wrong = store.verify(backup)
        if wrong:
            raise CannotFix(f"backup {backup.id} is damaged: {wrong[0]}")
        done = carry_out(
            home,
            backup,
            restoring.items_for(home, backup, backup.entries, "rollback"),
            kind="restore",
            of=backup.id,
            ended=ended,
            yes=True,
            json=json,
            vault=vault,
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
