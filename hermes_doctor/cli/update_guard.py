"""The `update-guard` command, and the preparation of an update."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from hermes_doctor.cli import separate_look, separate_work
from hermes_doctor.cli.exits import command_exit_code
from hermes_doctor.cli.option_declarations import (
    FromChatOption,
    HomeOption,
    UpdateAnywayOption,
    VaultOption,
)
from hermes_doctor.cli.option_values import absolute, load_plugins, repeat_options
from hermes_doctor.cli.progress_bars import bar, capitalized, print_document, say, tell
from hermes_doctor.core import home as homes
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.files import user_home

if TYPE_CHECKING:
    from hermes_doctor.backup.records.updates import Update
    from hermes_doctor.core.home import Home

T = TypeVar("T")
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
    force: UpdateAnywayOption = False,
    from_chat: FromChatOption = False,
) -> int:
    """Run an update command between a backup and a check."""
    from hermes_doctor.operations.updates import guard

    command = list(context.args)
    if not command:
        raise Trouble(
            "No update command given. Example: hermes-doctor update-guard -- hermes update"
        )
    if guard.is_guarded(separate_look.look):
        guard.exec_command(command)
    where, vault = homes.find(home), absolute(vault)
    if from_chat:
        pid = os.getpid()
        prepared = separate_work.run(where, lambda: _in_chat(where, vault, force, pid), vault=vault)
        if prepared != NOT_IN_CHAT:
            if prepared:
                return 2
            guard.exec_command(command)  # the gateway that it starts examines the result
    where = where if home else homes.root_home(where)
    return _guarded(where, vault, command, force=force, from_chat=from_chat)


NOT_IN_CHAT = 3
"""What `_in_chat` returns if no hook of a gateway has asked before."""


def _in_chat(home: Home, vault: Path | None, force: bool, pid: int) -> int:
    """Prepare an update that the hook of the home guards; 2 if it must not start."""
    from hermes_doctor.operations.updates import chat_hook, guard

    seen = chat_hook.guarded_home(home)
    if seen is None:
        return NOT_IN_CHAT
    if not prepare_chat_update(seen, vault=vault, force=force):
        return 2
    guard.record_command(seen, pid)
    return 0


def _guarded(
    where: Home, vault: Path | None, command: Sequence[str], *, force: bool, from_chat: bool
) -> int:
    """Prepare, run the command and examine; the home's owner does the first and the last.

    Root runs the command, which the operator has typed, and holds the lock until the end.
    """
    from hermes_doctor.backup.records.updates import UpdateRecords
    from hermes_doctor.cli.after_update import examine_and_report
    from hermes_doctor.operations.updates import guard

    plugins, records, busy = load_plugins(None), UpdateRecords(where), not from_chat

    def keep(fd: int) -> None:
        if root_parent.is_separate():
            root_parent.ask_root("keep_update_lock", descriptors=(fd,))
        else:
            held.callback(os.close, os.dup(fd))

    def prepare() -> str | None:
        update = prepare_update(
            where,
            vault=vault,
            force=force,
            json=False,
            busy=busy,
            command=command,
            keep_lock=keep,
        )
        return update.id if update else None

    def as_owner(work: Callable[[], T]) -> T:
        actions = {
            **separate_work.actions_of_updates(where),
            "keep_update_lock": lambda *, descriptors: keep(*descriptors),
        }
        return separate_work.do(where, work, plugins, otherwise=work, vault=vault, actions=actions)

    with contextlib.ExitStack() as held:
        id = as_owner(prepare)
        if id is None:
            return 2

        def note(**facts: Any) -> None:
            as_owner(lambda: guard.note(where, records.load(id), **facts))

        code = guard.run_command(id, where, command, note)
        if code:
            say("! ", "warning", f"{command[0]} failed with exit code {code}.")
        good = as_owner(
            lambda: examine_and_report(where, records.load(id), restart=busy, to=sys.stderr)
        )
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
    keep_lock: Callable[[int], None] = lambda _: None,
) -> Update | None:
    """Check and back up before an update; None if it must not start.

    While its lock is held, no other update or rollback starts. `keep_lock` may copy it.
    """
    with contextlib.ExitStack() as hold:
        wait = timeout if busy else None
        return _before(home, vault, force, json, wait, command, hold, keep_lock)


def _before(
    home: Home,
    vault: Path | None,
    force: bool,
    json: bool,
    timeout: float | None,
    command: Sequence[str],
    hold: contextlib.ExitStack,
    keep_lock: Callable[[int], None],
) -> Update | None:
    from hermes_doctor.backup.records.updates import UpdateRecords
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.operations.updates import before_update

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
        keep_lock(hold.enter_context(UpdateRecords(home).lock()))
    try:
        with contextlib.ExitStack() as stack:
            update = before_update.back_up(
                home,
                moment,
                vault=vault,
                command=command,
                progress=lambda total: stack.enter_context(bar("backing up", total, quiet=json)),
                warn=lambda text: say("! ", "warning", text),
            )
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

    usual = home.path == (user_home() / ".hermes").resolve()
    options = repeat_options(None if usual else home.path, vault=vault)
    typed = ("hermes", "update") if chat else command
    if not typed:
        return f"hermes-doctor hook run pre-update --force{options}"
    forced = f"hermes-doctor update-guard --force{options} -- {shlex.join(typed)}"
    return f"{forced} (in a shell)" if chat else forced


def prepare_chat_update(home: Home, *, vault: Path | None, force: bool, json: bool = False) -> bool:
    """Prepare an update from a chat, which Hermes runs; the gateway that it starts examines it."""
    from hermes_doctor.backup.records.updates import UPDATING, UpdateRecords
    from hermes_doctor.operations.updates import guard

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

    from hermes_doctor.backup.records.updates import UPDATING, UpdateRecords

    last = UpdateRecords(home).last()
    if last is None or not last.chat or last.stage != UPDATING or last.backup is None:
        return False
    if last.is_running():  # that update has started, so this is another one
        return False
    return 0 <= (datetime.now(UTC) - last.began).total_seconds() < MOMENT
