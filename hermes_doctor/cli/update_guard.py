"""The `update-guard` command, and the preparation of an update."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli.options import HomeOption, VaultOption
from hermes_doctor.cli.stderr import capitalized, print_document, say, tell

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.records.updates import Update
    from hermes_doctor.updates.before_update import UpdatePreflight

PATIENCE = 120.0
MOMENT = 60.0
"""Most seconds between the question of the gateway's hook and the update itself."""
GUARD_EPILOG = """\b
Examples:
  hermes-doctor update-guard -- hermes update
  hermes-doctor update-guard -- pipx upgrade hermes-agent
  hermes-doctor update-guard -- docker compose up -d --pull always

\b
Exit codes:
  0    updated, and nothing new is broken
  1    updated, but something new is broken
  2    not started: a check objects, or no backup; nothing was changed
  …    otherwise the exit code of the command itself
"""


def update_guard(
    context: typer.Context,
    home: HomeOption = None,
    vault: VaultOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Update even if a check objects or the backup fails.")
    ] = False,
    from_chat: Annotated[bool, typer.Option("--from-chat", hidden=True)] = False,
) -> int:
    """Run an update command between a backup and a check."""
    from hermes_doctor import home as homes
    from hermes_doctor.cli.after_update import examine_and_report
    from hermes_doctor.cli.exits import command_exit_code
    from hermes_doctor.model import Trouble
    from hermes_doctor.updates import chat_hook, guard

    command = list(context.args)
    if not command:
        raise Trouble(
            "No update command given. Example: hermes-doctor update-guard -- hermes update"
        )
    if guard.is_guarded():
        guard.exec_command(command)
    where = homes.find(home)
    if from_chat and (seen := chat_hook.guarded_home(where)) is not None:
        if not prepare_chat_update(seen, vault=vault, force=force):
            return 2
        guard.record_command(seen)
        guard.exec_command(command)  # the gateway that it starts examines the result
    where = where if home else homes.root_home(where)
    with contextlib.ExitStack() as held:
        update = prepare_update(
            where,
            vault=vault,
            force=force,
            json=False,
            busy=not from_chat,
            command=command,
            lock_stack=held,
        )
        if update is None:
            return 2
        code = guard.run_command(where, update, command)
        if code:
            say("! ", "warning", f"{command[0]} failed with exit code {code}.")
        good = examine_and_report(where, update, restart=not from_chat, to=sys.stderr)
    return command_exit_code(code if code > 0 else 128 - code) if code else int(not good)


def prepare_update(
    home: Home,
    *,
    vault: Path | None,
    force: bool,
    json: bool,
    timeout: float = PATIENCE,
    busy: bool = True,
    command: Sequence[str] = (),
    lock_stack: contextlib.ExitStack | None = None,
) -> Update | None:
    """Check and back up before an update; None if it must not start.

    With `lock_stack`, no other update or rollback starts until that stack is closed.
    """
    with contextlib.ExitStack() as own_stack:
        stack = lock_stack or own_stack
        return _before(home, vault, force, json, timeout if busy else None, command, stack)


def _before(
    home: Home,
    vault: Path | None,
    force: bool,
    json: bool,
    timeout: float | None,
    command: Sequence[str],
    hold: contextlib.ExitStack,
) -> Update | None:
    from hermes_doctor.cli.shared_options import load_plugins
    from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.records.updates import UpdateRecords
    from hermes_doctor.updates import before_update

    again = _forced(home, vault, command, chat=timeout is None)
    with contextlib.closing(Probes(home)) as probes:
        moment = before_update.preflight(
            probes, load_plugins(None), timeout=timeout, report_progress=tell
        )
    for text in moment.obstacles:
        say("✗ ", "error", capitalized(text))
    if moment.obstacles and not force:
        _stopped("The update was not started", again, json=json)
        return None
    with contextlib.suppress(OSError):  # if the disk is full, the backup reports it
        hold.enter_context(UpdateRecords(home).lock())
    try:
        update = _backed_up(home, moment, vault, command, quiet=json)
    except (Trouble, CouldNotLook, CannotFix, OSError) as why:
        say("✗ ", "error", str(why))
        if not force:
            _stopped("The update was not started, because the backup failed", again, json=json)
            return None
        update = before_update.record_state(home, None, vault, moment, command)
    if update.others and update.before is not None:
        where = f"{update.before.version} in {update.before.where}"
        more = ", ".join(f"{version} in {place}" for place, version in update.others.items())
        say("! ", "warning", f"Several Hermes are installed. This updates {where}, not {more}.")
    if update.doubt:
        say("! ", "warning", f"A rollback could restore only the data: {update.doubt}.")
    if json:
        print_document(
            {"schema": "hermes-doctor/update/1", "update": update.id, "backup": update.backup}
        )
    else:
        say("✓ ", "good", f"Backup {update.backup} created and verified." if update.backup else "")
    return update


def _backed_up(
    home: Home, moment: UpdatePreflight, vault: Path | None, command: Sequence[str], *, quiet: bool
) -> Update:
    from hermes_doctor.cli.progress_bars import bar
    from hermes_doctor.updates import before_update

    with contextlib.ExitStack() as stack:
        return before_update.back_up(
            home,
            moment,
            vault=vault,
            command=command,
            progress=lambda total: stack.enter_context(bar("backing up", total, quiet=quiet)),
            warn=lambda text: say("! ", "warning", text),
        )


def _stopped(why: str, again: str, *, json: bool) -> None:
    text = f"{why}. Nothing was changed. To update anyway: {again}"
    if json:
        print_document({"schema": "hermes-doctor/update/1", "update": None, "error": text})
    else:
        say("✗ ", "error", text)


def _forced(home: Home, vault: Path | None, command: Sequence[str], *, chat: bool) -> str:
    """The full command that forces the update.

    An operator who typed `hermes update` cannot add an option of ours, nor can a chat.
    """
    import shlex

    from hermes_doctor.cli.shared_options import repeat_options
    from hermes_doctor.system.files import user_home

    usual = home.path == (user_home() / ".hermes").resolve()
    options = repeat_options(None if usual else home.path, vault=vault)
    typed = ("hermes", "update") if chat else command
    if not typed:
        return f"hermes-doctor hook run pre-update --force{options}"
    forced = f"hermes-doctor update-guard --force{options} -- {shlex.join(typed)}"
    return f"{forced} (in a shell)" if chat else forced


def prepare_chat_update(home: Home, *, vault: Path | None, force: bool, json: bool = False) -> bool:
    """Prepare an update from a chat, which Hermes runs; the gateway that it starts examines it."""
    from hermes_doctor.records.updates import UPDATING, UpdateRecords
    from hermes_doctor.updates import guard

    if guard.is_guarded() or _is_prepared(home):
        return True
    update = prepare_update(home, vault=vault, force=force, json=json, busy=False)
    if update is None:
        return False
    update.chat = True
    update.stage = UPDATING
    UpdateRecords(home).save(update)
    return True


def _is_prepared(home: Home) -> bool:
    """Whether the gateway's hook has just prepared this update from a chat.

    The hook asks a moment before the launcher does.
    """
    from datetime import UTC, datetime

    from hermes_doctor.records.updates import UPDATING, UpdateRecords

    last = UpdateRecords(home).last()
    if last is None or not last.chat or last.stage != UPDATING or last.backup is None:
        return False
    if last.is_running():  # that update has started, so this is another one
        return False
    return 0 <= (datetime.now(UTC) - last.began).total_seconds() < MOMENT
