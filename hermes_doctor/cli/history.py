"""The `history` command: what was wrong in the last weeks, how often, and for how long."""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from hermes_doctor.cli import option_values, separate_look
from hermes_doctor.cli.help_layout import WholeSummaries
from hermes_doctor.cli.option_declarations import HomeOption, JsonOption, complete_code
from hermes_doctor.cli.option_values import load_plugins, suggestion
from hermes_doctor.cli.progress_bars import print_document
from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import size
from hermes_doctor.core.terminal.lines import tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.core.home import Home
    from hermes_doctor.operations.history.reading import HistoryRows

EPILOG = """\b
Examples:
  hermes-doctor history
  hermes-doctor history QQ-TOKEN
  hermes-doctor history --since 90d
  hermes-doctor history --json | jq .availability
  hermes-doctor history prune --keep 90d

\b
The watch writes the history, and so does `check --record`.

\b
Exit codes:
  0  shown
  2  could not run (no history yet, a damaged one, unknown code, no home)
"""
PRUNE_EPILOG = """\b
Examples:
  hermes-doctor history prune               remove what is older than 400 days
  hermes-doctor history prune --keep 90d    of all homes in the file
  hermes-doctor history prune --keep 90d --home ~/.hermes

\b
An open problem stays. A home without a record in that time is removed, too;
one with an open problem only after 400 days.

\b
Exit codes:
  0  removed, or nothing was that old
  2  could not run (no history yet, a damaged one, wrong option)
"""
MOST_DAYS = 400
"""The watch keeps no more."""


class CodeOrCommand(WholeSummaries):
    """A group whose first word is a command or, if there is none of that name, a code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; before a command, the code is empty."""
        if args and args[0] in self.commands:
            args = ["", *args]
        else:
            ctx.allow_interspersed_args = True
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=CodeOrCommand,
    help="Show what was wrong, how often and for how long.",
    epilog=EPILOG,
    rich_markup_mode=None,
    invoke_without_command=True,
)


@app.callback()
def history(
    ctx: typer.Context,
    code: str = typer.Argument(
        "", help="Show the episodes of this code.", autocompletion=complete_code
    ),
    home: HomeOption = None,
    since: str = typer.Option(
        "30d", help="Show what happened since then: 12h, 30d, or a local date such as 2026-11-01."
    ),
    json: JsonOption = False,
) -> int:
    """Show what was wrong, how often and for how long."""
    if ctx.invoked_subcommand is not None:
        return 0
    from hermes_doctor.operations.history import reading
    from hermes_doctor.render import history as rendered

    if code == "prune":
        raise Trouble("Put the options after `prune`: hermes-doctor history prune --keep 90d")
    now = datetime.now(UTC)
    first, start = _start(since, now)
    where = separate_look.find_home(home)
    rows = reading.load(where, start, int(now.timestamp()))
    if rows is None:
        raise _no_history(where)
    for why in rows.unread:
        typer.echo(f"hermes-doctor: Another history is not shown. {why}", err=True)
    options = option_values.repeat_options(option_values.named_home(home))
    shown = rendered.View(
        where.path, rows, start, int(now.timestamp()), first, _known(code, rows), options
    )
    if json:
        print_document(rendered.document(shown))
    else:
        show(rendered.lines(shown))
    return 0


@app.command("prune", epilog=PRUNE_EPILOG)
def prune(
    home: HomeOption = None,
    keep: str = typer.Option(f"{MOST_DAYS}d", help="Keep what is newer than this, such as 90d."),
) -> int:
    """Remove old records of all homes, or of --home."""
    from hermes_doctor.operations.history import place, prune

    match = re.fullmatch(r"([1-9]\d{0,4})\s*d", keep.strip())
    if match is None:
        raise Trouble("--keep needs days, such as 90d; got {given!r}.", given=keep)
    kept = int(match[1]) * 86400
    where = separate_look.find_home(home)
    files = place.files_of(where)
    if not files:
        raise _no_history(where)
    for file in files:
        done = prune.prune_file(file, kept, where if home else None)
        typer.echo(f"{file}: {prune.describe(done.removed)} removed, {size(done.size)} left.")
    return 0


def _no_history(home: Home) -> Exception:
    from hermes_doctor.core.system import crontab

    has_systemd = os.path.isdir("/run/systemd/system")
    installs = sys.platform == "darwin" or has_systemd or crontab.is_installed()
    return Trouble(
        "{home} has no history yet. The watch writes it: {command}",
        home=tilde(home.path),
        command="hermes-doctor watch install" if installs else "hermes-doctor watch",
    )


def _start(since: str, now: datetime) -> tuple[date, int]:
    """The first day to show, and the moment from which on everything counts."""
    from hermes_doctor.cli.timeline import moment

    today = now.astimezone().date()
    if match := re.fullmatch(r"(\d{1,5})\s*([dw])", since.strip()):
        days = min(MOST_DAYS, max(1, int(match[1]) * (7 if match[2] == "w" else 1)))
        first = today - timedelta(days=days - 1)
        return first, int(datetime(first.year, first.month, first.day).astimezone().timestamp())
    at = max(moment(since), now - timedelta(days=MOST_DAYS))
    return at.astimezone().date(), int(at.timestamp())


def _known(given: str, rows: HistoryRows) -> str:
    """The code as it is spelled; Trouble if neither a check nor the history knows it."""
    if not given:
        return ""
    codes = {code for check in load_plugins(None).checks for code in check.codes}
    names = {code.lower(): code for code in (*codes, *(episode.code for episode in rows.episodes))}
    failure = names.get(given.lower())
    if failure is None:
        raise Trouble(
            sentences(
                text("Unknown code {code!r}.", code=given),
                suggestion(given, names),
                "See: hermes-doctor list codes",
            )
        )
    return failure
