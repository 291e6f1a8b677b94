"""The commands `hook install|remove|status|run`: guard every update of Hermes."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import separate_look, separate_work
from hermes_doctor.cli.help_layout import WholeSummaries
from hermes_doctor.cli.option_declarations import (
    DryRunOption,
    FromChatOption,
    HomeOption,
    JsonOption,
    UpdateAnywayOption,
    VaultOption,
)
from hermes_doctor.cli.option_values import absolute, load_plugins, named_home, repeat_options
from hermes_doctor.cli.progress_bars import print_document
from hermes_doctor.core import home as homes
from hermes_doctor.core.message import ago
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.terminal.lines import row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_doctor.core.home import Home

app = typer.Typer(
    cls=WholeSummaries,
    help="Back up before and check after each Hermes update.",
    epilog="""\b
Examples:
  hermes-doctor hook install
  hermes-doctor hook status
""",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Moment(StrEnum):
    """The two moments of an update at which a hook runs."""

    PRE = "pre-update"
    POST = "post-update"


@app.command(
    epilog="""\b
What it does:
  Puts a launcher `hermes` first on PATH, with lines in your shell's start-up
  files. It guards `hermes update` and passes on every other command. A hook
  in the home does the same for /update in a chat.

\b
Examples:
  hermes-doctor hook install --dry-run      show what would be written
  hermes-doctor hook install
  hermes-doctor hook install --no-shell     guard only /update in chats
  hermes-doctor update-guard -- pipx upgrade hermes-agent

\b
Exit codes:
  0  installed, or already installed
  2  could not be installed
"""
)
def install(
    home: HomeOption = None,
    shell: bool = typer.Option(
        True, "--shell/--no-shell", help="Install the launcher that guards `hermes update`."
    ),
    chat: bool = typer.Option(
        True, "--chat/--no-chat", help="Install the hook that guards /update in chats."
    ),
    dry_run: DryRunOption = False,
) -> int:
    """Guard `hermes update` and /update in chats."""
    import contextlib

    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.operations.updates import chat_hook, launcher, shell_startup

    where = homes.find(home)

    def install_in_home() -> list[Path]:
        with contextlib.nullcontext() if dry_run else lock_home(where):
            return chat_hook.install(where, dry_run=dry_run)

    launcher.prove()
    said = []
    if shell:
        shell_startup.refuse_unwritable()
        launcher.refuse_foreign_launcher()
    if chat:
        hooks = separate_work.do(where, install_in_home, otherwise=install_in_home)
        said += [f"guards /update in chats: {tilde(path)}" for path in hooks]
    if shell:
        if launcher.install(dry_run=dry_run):
            said.append(f"guards hermes update: {tilde(launcher.folder() / launcher.NAME)}")
        files = shell_startup.install(dry_run=dry_run)
        said += [f"puts the launcher first on PATH: {tilde(path)}" for path in files]
    mark = ("→ ", "faint") if dry_run and said else ("✓ ", "good")
    show([row(mark, text, hang=2) for text in said or ["Already installed."]])
    if dry_run:
        show([row("Nothing was written.")])
        return 0
    for why in shell_startup.doubts() if shell else ():
        show([row(("! ", "warning"), f"Some shells do not use the launcher: {why}", hang=2)])
    if shell and not launcher.is_first_on_path():
        show([row("New shells use the launcher. For this shell:", indent=2, hang=2)])
        show([row(("exec $SHELL -l", "command"), indent=2)])

    def gateway_runs() -> bool:
        with contextlib.suppress(CouldNotLook):
            return bool(Probes(where).gateway.running())
        return False

    if chat and said and separate_look.look(where.path, gateway_runs):
        show([row(("  ", "faint"), "/update is guarded after a restart of the gateway.", hang=2)])
    return 0


@app.command(
    epilog="""\b
Examples:
  hermes-doctor hook remove
  hermes-doctor hook remove --no-shell --home DIR     only the hook of DIR

\b
Exit codes:
  0  removed, or it was not installed
  2  could not be removed
"""
)
def remove(
    home: HomeOption = None,
    shell: bool = typer.Option(
        True, "--shell/--no-shell", help="Remove the launcher, which all your homes share."
    ),
    chat: bool = typer.Option(True, "--chat/--no-chat", help="Remove the hook from this home."),
) -> int:
    """Remove everything that `hook install` wrote."""
    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.operations.updates import chat_hook, launcher, shell_startup

    said = []
    where = (_found() if shell and home is None else homes.find(home)) if chat else None
    if where is not None:

        def remove_from_home() -> list[Path]:
            with lock_home(where):
                return chat_hook.remove(where)

        removed = separate_work.do(where, remove_from_home, otherwise=remove_from_home)
        said += [f"Removed {tilde(path)}" for path in removed]
    if shell:
        said += [f"Removed our lines from {tilde(path)}" for path in shell_startup.remove()]
    if shell and launcher.remove():
        said.append(f"Removed {tilde(launcher.folder() / launcher.NAME)}")
    show([row(("✓ ", "good"), text, hang=2) for text in said or ["Nothing was installed."]])
    return 0


@app.command(
    epilog="""\b
Exit codes:
  0  `hermes update` and /update are guarded
  1  at least one of them is not
  2  could not find out
"""
)
def status(home: HomeOption = None, json: JsonOption = False) -> int:
    """Show which ways to update are guarded."""
    where, options = homes.find(home), repeat_options(named_home(home))
    return separate_work.run(where, lambda: _status(where, options, json=json), writes=False)


def _status(where: Home, options: str, *, json: bool) -> int:
    from hermes_doctor.backup.records.updates import UpdateRecords
    from hermes_doctor.operations.updates import update_paths

    ways = update_paths.list_ways(where)
    last = UpdateRecords(where).last()
    if json:
        from hermes_doctor.render import document

        made = {
            "schema": "hermes-doctor/hook/1",
            "home": str(where.path),
            "ways": [
                {
                    "way": way.name,
                    "covered": way.covered,
                    "how": way.description,
                    "next": way.next or None,
                }
                for way in ways
            ],
            "last": document.fields_of(last, "id started_at stage backup") if last else None,
        }
        print_document(made)
    else:
        for update_path in ways:
            mark = ("✓ ", "good") if update_path.covered else ("! ", "warning")
            show([row(mark, (update_path.name, "strong"), f": {update_path.description}", hang=2)])
        if last is not None:
            backup = f"backup {last.backup}" if last.backup else "no backup"
            text = f"Last update: {ago(last.began)}, {last.stage}, {backup}"
            show([row(("  ", "faint"), text, hang=2)])
        commands = dict.fromkeys(way.next for way in ways if way.next)
        for number, bare in enumerate(commands):
            command = bare if "update-guard" in bare else f"{bare}{options}"
            show([row("      " if number else "Next: ", (command, "command"))])
    return int(not all(one.covered for one in ways if one.expected))


def _found() -> Home | None:
    """The home, if it still exists: the shell files must be cleaned up without it, too."""
    try:
        return homes.find(None)
    except Trouble:
        named = os.environ.get("HERMES_HOME")
        if named and os.path.lexists(named):  # it exists, but its hook cannot be removed
            raise
        return None


@app.command(
    epilog="""\b
Examples:
  hermes-doctor hook run pre-update && pip install -U hermes-agent
  hermes-doctor hook run post-update

\b
Exit codes:
  0  pre-update: the update may start; post-update: nothing new is broken
  1  pre-update: it must not start; post-update: something new is broken
  2  could not run
"""
)
def run(
    moment: Moment = typer.Argument(help="Run the part before or after the update."),
    home: HomeOption = None,
    vault: VaultOption = None,
    force: UpdateAnywayOption = False,
    from_chat: FromChatOption = False,
    json: JsonOption = False,
) -> int:
    """Run one part of the guard: before or after an update."""
    from hermes_doctor.cli import after_update, update_guard

    where, vault = homes.find(home), absolute(vault)
    if moment is Moment.POST and not home:
        where = after_update.home_with_records(where)

    def work() -> int:
        if moment is Moment.POST:
            return after_update.examine_last(where, json=json, from_chat=from_chat)
        prepare = update_guard.prepare_chat_update if from_chat else update_guard.prepare_update
        return int(not prepare(where, vault=vault, force=force, json=json))

    actions = separate_work.actions_of_updates(where)
    return separate_work.run(where, work, load_plugins(None), vault=vault, actions=actions)
