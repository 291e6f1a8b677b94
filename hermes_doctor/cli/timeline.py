"""The `timeline` command: what happened to a home, in order of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import option_values, separate_look
from hermes_doctor.cli.option_declarations import DeepOption, HomeOption, JsonOption, PluginsOption
from hermes_doctor.cli.progress_bars import print_document, waiting
from hermes_doctor.core import home as homes
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.examination.timeline import Timeline

EPILOG = """\b
Examples:
  hermes-doctor timeline
  hermes-doctor timeline --since 2h
  hermes-doctor timeline --since '2026-11-15 03:00' --json

\b
Exit codes:
  0  shown
  2  could not run (wrong option, no home)
"""
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FIRST = datetime(1970, 1, 2, tzinfo=UTC)
"""The earliest moment to show: nothing is older, and every time zone can represent it."""


def timeline(
    home: HomeOption = None,
    since: str = typer.Option(
        "24h", help="Start this long ago (30m, 2h, 3d) or at a local date and time."
    ),
    json: JsonOption = False,
    deep: DeepOption = False,
    plugins: PluginsOption = None,
) -> int:
    """Show restarts, errors, edits and repairs by time."""
    from hermes_doctor import __version__
    from hermes_doctor.diagnosis.examination import timeline as timelines
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.render import timeline as rendered

    began = moment(since)
    found = option_values.load_plugins(plugins)
    place = homes.find(home)
    rules = found.rules

    def read() -> Timeline:
        with waiting("reading the logs", quiet=json):
            return timelines.make_timeline(Probes(place, deep=deep), rules, began)

    told = separate_look.look(place.path, read, (timelines.__name__,))
    if json:
        print_document(rendered.document(place.path, __version__, told))
    else:
        pages = option_values.repeat_options(plugins=plugins)
        show(rendered.lines(place.path, told, pages))
    return 0


def moment(given: str) -> datetime:
    """Parse --since."""
    now = datetime.now(UTC)
    if match := re.fullmatch(r"(\d{1,5})\s*([mhdw])", given.strip()):
        return max(_FIRST, now - timedelta(**{_UNITS[match[2]]: int(match[1])}))
    try:
        at = datetime.fromisoformat(given.strip()).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise Trouble(
            "--since needs 30m, 2h, 3d or a time like '2026-11-15 03:00'; got {given!r}.",
            given=given,
        ) from None
    if at > now:
        raise Trouble("--since {given!r} is in the future.", given=given)
    return max(_FIRST, at)
