"""The `undo` command: undo the last command that changed files, with all its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import option_values, separate_work
from hermes_doctor.cli.option_declarations import (
    HomeOption,
    JsonOption,
    PluginsOption,
    YesOption,
    complete_run,
)
from hermes_doctor.cli.progress_bars import print_schema_document, waiting
from hermes_doctor.cli.restore_common import exit_code, recover_first, restore_items
from hermes_doctor.core import home as homes

if TYPE_CHECKING:
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.plugins.load import Plugins

EPILOG = """\b
Examples:
  hermes-doctor undo                              undo the last command
  hermes-doctor undo 20261115-031500-1234f --yes  undo the command of this run
                                                  without asking

\b
Exit codes:
  0  undone
  1  not undone or only partly, or you answered no
  2  could not run; nothing was changed
"""


def undo(
    run: str | None = typer.Argument(
        None,
        help="A run of the command to undo; without it, the last command.",
        autocompletion=complete_run,
    ),
    yes: YesOption = False,
    force: bool = typer.Option(
        False, "--force", help="Undo even if a file has changed since; that version is backed up."
    ),
    home: HomeOption = None,
    json: JsonOption = False,
    plugins: PluginsOption = None,
) -> int:
    """Restore the files that a repair or restore changed.

    All runs of one command are undone together. An undo can itself be undone.
    """
    where = homes.find(home)
    loaded = option_values.load_plugins(plugins)
    repeat = option_values.repeat_options(option_values.named_home(home))
    return separate_work.run(
        where,
        lambda: _undo(where, loaded, run, yes=yes, force=force, json=json, repeat=repeat),
        loaded,
    )


def _undo(
    where: Home,
    plugins: Plugins,
    run: str | None,
    *,
    yes: bool,
    force: bool,
    json: bool,
    repeat: str,
) -> int:
    import contextlib

    from hermes_doctor.backup.records.home_lock import lock_home
    from hermes_doctor.backup.records.journal import Journals
    from hermes_doctor.repair.transaction import recovery, undo

    with lock_home(where), recover_first(where, plugins, json=json) as ended:
        book = Journals(where)
        gone = [
            one for one in ended if one.kind != "undo" and not one.finished and not one.said_before
        ]
        cut_off = undo.rest_of_command(book, gone[-1].journal) if gone else None
        if gone and run is None and cut_off is None:  # the last run is rolled back by now
            if json:
                said = [one.text for one in ended]
                print_schema_document("run-report", {"run": None, "recovered": said})
            return int(any(one.partial for one in ended))
        journal = book.load(run) if run else cut_off or undo.last_run(book)
        with waiting("comparing the files with the run", quiet=json):
            plan = undo.undo_plan(where, journal, force=force)
        undone = [one.id for one in plan.runs]
        done = restore_items(
            where,
            plan.items,
            plan.verify,
            kind="undo",
            of=undone[-1],
            hermes=plan.hermes,
            ended=ended,
            yes=yes,
            json=json,
            vault=None,
            repeat=repeat,
            undone=undone,
            was_running=plan.was_running,
            stores=any(one.kind != "fix" for one in plan.runs),
            losses=plan.losses,
            more={"undone": undone},
        )
        if done is not None and done.state == "done":
            with contextlib.suppress(OSError):  # it is undone; the next run records that
                recovery.mark_undone(plan.runs, done.id)
    return exit_code(done, ended)
