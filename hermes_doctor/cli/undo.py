"""The `undo` command: undo a run."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_doctor.cli.options import HomeOption, JsonOption, PluginsOption, YesOption

EPILOG = """\b
Examples:
  hermes-doctor undo                              undo the last run
  hermes-doctor undo 20261115-031500-1234f --yes  undo this run without asking

\b
Exit codes:
  0  undone
  1  not undone or only partly, or you answered no
  2  could not run; nothing was changed
"""


def undo(
    run: Annotated[str | None, typer.Argument(help="A run id; without it, the last run.")] = None,
    yes: YesOption = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Undo even if a file changed since; that version is backed up."
        ),
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
    plugins: PluginsOption = None,
) -> int:
    """Restore the files that a repair or restore changed.

    An undo can itself be undone.
    """
    import contextlib

    from hermes_doctor import home as homes
    from hermes_doctor.cli import shared_options
    from hermes_doctor.cli.progress_bars import waiting
    from hermes_doctor.cli.restore_common import exit_code, recover_first, restore_items
    from hermes_doctor.records.home_lock import lock_home
    from hermes_doctor.records.journal import Journals
    from hermes_doctor.repair import recovery, undo

    where = homes.find(home)
    with (
        lock_home(where),
        recover_first(where, shared_options.load_plugins(plugins), json=json) as ended,
    ):
        book = Journals(where)
        gone = [
            one for one in ended if one.kind != "undo" and not one.finished and not one.said_before
        ]
        if gone and run is None:  # the last run was cut off and is rolled back by now
            _say([one.text for one in ended], json=json)
            return int(any(one.partial for one in ended))
        journal = book.load(run) if run else undo.last_run(book)
        with waiting("comparing the files with the run", quiet=json):
            backup, items = undo.undo_plan(where, journal, force=force)
        done = restore_items(
            where,
            backup,
            items,
            kind="undo",
            of=journal.id,
            ended=ended,
            yes=yes,
            json=json,
            vault=None,
            repeat=shared_options.repeat_options(shared_options.named_home(home)),
        )
        if done is not None and done.state == "done":
            with contextlib.suppress(OSError):  # it is undone; the next run records that
                recovery.mark_undone(book, journal.id, done.id)
    return exit_code(done, ended)


def _say(said: list[str], *, json: bool) -> None:
    """Print the JSON document if finishing a cut-off run was all there was to do."""
    if json:
        from hermes_doctor.render import document

        typer.echo(
            document.dump({"schema": "hermes-doctor/run-report/1", "run": None, "recovered": said})
        )
