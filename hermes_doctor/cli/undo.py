"""`undo`: take a run back."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_doctor.cli.options import HomeOption, JsonOption, PluginsOption, YesOption

EPILOG = """\b
Examples:
  hermes-doctor undo                              the last run
  hermes-doctor undo 20261115-031500-1234f --yes  that run, without asking

\b
Exit codes:
  0  undone
  1  not undone, or not agreed to
  2  could not run; nothing was changed
"""


def undo(
    run: Annotated[str | None, typer.Argument(help="The run; else the last one.")] = None,
    yes: YesOption = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also where a file was changed since; that goes to the vault."
        ),
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
    plugins: PluginsOption = None,
) -> int:
    """Give back what a run changed, byte for byte. Can be undone itself."""
    from hermes_doctor import home as homes, recovery, restoring
    from hermes_doctor.cli import options
    from hermes_doctor.cli.restoring import carry_out
    from hermes_doctor.journal import Journals
    from hermes_doctor.lock import locked
    from hermes_doctor.plan import verifier
    from hermes_doctor.probes import Probes

    where = homes.find(home)
    with locked(where):
        verify = verifier(lambda: Probes(where), options.loaded(plugins))
        said = recovery.recover(where, verify)
        book = Journals(where)
        journal = book.load(run) if run else restoring.last_run(book)
        backup, items = restoring.undo_plan(where, journal, force=force)
        done = carry_out(
            where,
            backup,
            items,
            kind="undo",
            of=journal.id,
            said=said,
            yes=yes,
            json=json,
            vault=None,
            repeat=options.repeated(home, None),
        )
        if done is not None and done.state == "done":
            recovery.mark_undone(book, journal.id, done.id)
    return int(done is None or done.state != "done")
