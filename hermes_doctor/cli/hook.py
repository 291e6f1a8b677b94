"""The commands `hook install|remove|status|run`: guard every update of Hermes."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli.options import HomeOption, JsonOption, VaultOption

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.records.updates import Update

app = typer.Typer(
    help="See to it that every update of Hermes has a backup before and a check after it.",
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
  A launcher `hermes` comes first on PATH, by lines in your shell's start-up
  files, and hands every command on but `hermes update`. A hook in the home
  does the same for /update in a chat.

\b
Examples:
  hermes-doctor hook install
  hermes-doctor hook install --no-shell     only /update in chats
  hermes-doctor update-guard -- pipx upgrade hermes-agent

\b
Exit codes:
  0  installed, or so already
  2  could not be done
"""
)
def install(
    home: HomeOption = None,
    shell: Annotated[
        bool, typer.Option("--shell/--no-shell", help="The launcher for `hermes update`.")
    ] = True,
    chat: Annotated[
        bool, typer.Option("--chat/--no-chat", help="The gateway's hook for /update.")
    ] = True,
) -> int:
    """Put a backup before every update, however it is started."""
    from hermes_doctor import home as homes
    from hermes_doctor.records.home_lock import lock_home
    from hermes_doctor.terminal.lines import row, tilde
    from hermes_doctor.terminal.show import show
    from hermes_doctor.updates import chat_hook, launcher, own_command, shell_startup

    where = homes.find(home)
    own_command.prove()
    said = []
    if shell:
        shell_startup.refuse_unwritable()
        launcher.refuse_foreign_launcher()
    if chat:
        with lock_home(where):
            said += [f"/update in a chat: {tilde(path)}" for path in chat_hook.install(where)]
    if shell:
        if launcher.install():
            said.append(f"hermes update: {tilde(launcher.folder() / launcher.NAME)}")
        said += [f"first on PATH by {tilde(path)}" for path in shell_startup.install()]
    show(
        [row(("✓ ", "good"), text, hang=2) for text in said or ["Everything is in place already."]]
    )
    for why in shell_startup.doubts() if shell else ():
        show([row(("! ", "warning"), f"Not in every shell: {why}", hang=2)])
    if shell and not launcher.is_first_on_path():
        show([row(("  ", "faint"), "It counts in new shells. In this one: exec $SHELL -l", hang=2)])
    if chat and said and _runs(where):
        show([row(("  ", "faint"), "/update counts once the gateway was started anew.", hang=2)])
    return 0


@app.command(
    epilog="""\b
Examples:
  hermes-doctor hook remove
  hermes-doctor hook remove --no-shell --home DIR     you have another home

\b
Exit codes:
  0  nothing of it is left
  2  could not be done
"""
)
def remove(
    home: HomeOption = None,
    shell: Annotated[
        bool, typer.Option("--shell/--no-shell", help="The launcher, which is for all your homes.")
    ] = True,
    chat: Annotated[
        bool, typer.Option("--chat/--no-chat", help="The hook of this home's gateway.")
    ] = True,
) -> int:
    """Take away everything that `hook install` wrote."""
    from hermes_doctor import home as homes
    from hermes_doctor.records.home_lock import lock_home
    from hermes_doctor.terminal.lines import row, tilde
    from hermes_doctor.terminal.show import show
    from hermes_doctor.updates import chat_hook, launcher, shell_startup

    said = []
    where = (_found() if shell and home is None else homes.find(home)) if chat else None
    if where is not None:
        with lock_home(where):
            said += [f"{tilde(path)} is gone." for path in chat_hook.remove(where)]
    if shell:
        said += [f"{tilde(path)} is as it was." for path in shell_startup.remove()]
    if shell and launcher.remove():
        said.append(f"{tilde(launcher.folder() / launcher.NAME)} is gone.")
    show([row(("✓ ", "good"), text, hang=2) for text in said or ["Nothing was installed."]])
    return 0


@app.command(
    epilog="""\b
Exit codes:
  0  `hermes update` and /update are covered
  1  not all of it is
  2  could not tell
"""
)
def status(home: HomeOption = None, json: JsonOption = False) -> int:
    """Say which ways to update are covered, and which are not."""
    from hermes_doctor import home as homes
    from hermes_doctor.records.updates import UpdateRecords
    from hermes_doctor.updates import coverage

    where = homes.find(home)
    ways = coverage.list_ways(where)
    last = UpdateRecords(where).last()
    if json:
        from hermes_doctor.render import document

        typer.echo(
            document.dump(
                {
                    "schema": "hermes-doctor/hook/1",
                    "home": str(where.path),
                    "ways": [
                        {"way": w.name, "covered": w.covered, "how": w.description} for w in ways
                    ],
                    "last": _last(last),
                }
            )
        )
    else:
        from hermes_doctor.cli.shared_options import named_home, repeat_options
        from hermes_doctor.terminal.lines import row
        from hermes_doctor.terminal.show import show

        install = f"{coverage.INSTALL}{repeat_options(named_home(home))}"
        for one in ways:
            mark = ("✓ ", "good") if one.covered else ("! ", "warning")
            text = one.description.replace(coverage.INSTALL, install)
            show([row(mark, (one.name, "strong"), f": {text}", hang=2)])
        if last is not None:
            backup = last.backup or "no backup"
            text = f"Last update: {last.began:%Y-%m-%d %H:%M} UTC, {last.stage}, {backup}"
            show([row(("  ", "faint"), text, hang=2)])
    return int(not all(one.covered for one in ways if one.expected))


def _found() -> Home | None:
    """The home, if it still exists: the shell files must be cleaned up without it, too."""
    from hermes_doctor import home as homes
    from hermes_doctor.model import Trouble

    try:
        return homes.find(None)
    except Trouble:
        named = os.environ.get("HERMES_HOME")
        if named and os.path.lexists(named):  # it exists, but its hook cannot be removed
            raise
        return None


def _last(last: Update | None) -> dict[str, object] | None:
    if last is None:
        return None
    return {
        "id": last.id,
        "started_at": last.started_at,
        "stage": last.stage,
        "backup": last.backup,
    }


def _runs(home: Home) -> bool:
    from hermes_doctor.model import CouldNotLook
    from hermes_doctor.probes.probes import Probes

    try:
        return bool(Probes(home).gateways())
    except CouldNotLook:
        return False


ForceOption = Annotated[
    bool, typer.Option("--force", help="Go on although the moment is bad or the backup failed.")
]
ChatOption = Annotated[bool, typer.Option("--from-chat", hidden=True)]


@app.command(
    epilog="""\b
Examples:
  hermes-doctor hook run pre-update && pip install -U hermes-agent
  hermes-doctor hook run post-update

\b
Exit codes:
  0  the update may begin; or it broke nothing that matters
  1  it must not; or something is broken that was not before
  2  could not run
"""
)
def run(
    moment: Annotated[Moment, typer.Argument(help="pre-update or post-update.")],
    home: HomeOption = None,
    vault: VaultOption = None,
    force: ForceOption = False,
    from_chat: ChatOption = False,
    json: JsonOption = False,
) -> int:
    """Do one half of the guard: what comes before an update, or what comes after it."""
    from hermes_doctor import home as homes
    from hermes_doctor.cli import after_update, update_guard

    where = homes.find(home)
    if moment is Moment.PRE and from_chat:
        return int(not update_guard.prepare_chat_update(where, vault=vault, force=force, json=json))
    if moment is Moment.PRE:
        return int(update_guard.prepare_update(where, vault=vault, force=force, json=json) is None)
    where = where if home else after_update.home_with_records(where)
    return after_update.examine_last(where, json=json, from_chat=from_chat)
