"""The commands `mute`, `unmute` and `mutes`: problems that the operator knows already."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from hermes_doctor.cli import option_values, separate_look
from hermes_doctor.cli.option_declarations import (
    DeepOption,
    HomeOption,
    JsonOption,
    NetworkOption,
    PluginsOption,
    complete_code,
)
from hermes_doctor.cli.option_values import severities_for, suggestion
from hermes_doctor.cli.progress_bars import print_document, waiting
from hermes_doctor.core import home as homes
from hermes_doctor.core.message import ago, clock, listed, sentences, text
from hermes_doctor.core.model import Severity, Status, Trouble
from hermes_doctor.core.preferences import places
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.terminal.lines import BLANK, row, tilde
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_doctor.core.home import Home
    from hermes_doctor.core.model import Report
    from hermes_doctor.core.preferences.mutes import Mute
    from hermes_doctor.core.terminal.lines import Line
    from hermes_doctor.diagnosis.plugins.load import Plugins

EPILOG = """\b
Examples:
  hermes-doctor mute NET-TCP --for 7d
  hermes-doctor mute NET-TCP/telegram --because "blocked in this country"
  hermes-doctor mute GW-LINGER --sticky

\b
A mute ends when the problem disappears (unless --sticky), gets worse,
affects something new, or when the time of --for is over. A muted problem is
still shown in one line. It changes no exit code, and nobody is notified
of it. Neither `watch --heal` nor `fix` repairs it, unless you name it.

\b
Exit codes:
  0  muted
  2  could not be muted
"""
UNMUTE_EPILOG = """\b
Examples:
  hermes-doctor unmute NET-TCP
  hermes-doctor unmute NET-TCP/telegram
  hermes-doctor unmute --all

\b
Exit codes:
  0  the mute was removed
  2  it is not muted, or the mute could not be removed
"""
MUTES_EPILOG = """\b
Exit codes:
  0  listed
  2  could not be read
"""
LONGEST = 366 * 86400.0
LONGEST_REASON = 200
_WhatArgument = Annotated[
    str,
    typer.Argument(
        metavar="CODE[/SUBJECT]",
        help="The code, and the subject as `check --json` names it.",
        autocompletion=complete_code,
    ),
]


def mute(
    what: _WhatArgument,
    time: str | None = typer.Option(
        None, "--for", metavar="TIME", help="End the mute after this time, such as 12h or 7d."
    ),
    sticky: bool = typer.Option(
        False, "--sticky", help="Keep the mute when the problem disappears."
    ),
    because: str = typer.Option("", metavar="TEXT", help="The reason, which `mutes` shows."),
    home: HomeOption = None,
    deep: DeepOption = False,
    network: NetworkOption = False,
    plugins: PluginsOption = None,
) -> int:
    """Silence a known problem until it changes."""
    from hermes_doctor.core.preferences import mutes
    from hermes_doctor.repair.schedule.jobs import parse_seconds

    seconds = None if time is None else parse_seconds(time, "--for", least=60.0, most=LONGEST)
    where, found = homes.find(home), option_values.load_plugins(plugins)
    code, subject = _named(what, found)
    places.refuse_path_inside(mutes.writing_file(), where.path)
    because = " ".join(because.split())
    if len(because) > LONGEST_REASON:
        long = "--because takes at most {most} characters; this has {number}."
        raise Trouble(long, most=LONGEST_REASON, number=len(because))
    report = _examine(where, found, deep=deep, network=network)
    meant = [
        finding
        for finding in report.findings
        if finding.code == code and subject in (None, finding.subject)
    ]
    if not meant and not sticky:
        raise _nothing_to_mute(report, code, subject, found)
    now = datetime.now(UTC)
    made = mutes.made_for(
        meant,
        str(where.path),
        code,
        subject,
        at=now,
        until=None if seconds is None else now + timedelta(seconds=seconds),
        sticky=sticky,
        because=because,
        options=(*(["--deep"] * deep), *(["--network"] * network)),
    )
    if made.worst is Severity.CRITICAL and seconds is None:
        critical = "{name} is critical. Say for how long to mute it, such as --for 2h."
        raise Trouble(critical, name=made.name)
    path = mutes.add(made)
    typer.echo(clean(f"Muted {made.name} {_end_of(made)}. Stored in {tilde(path)}."))
    if not meant and made.worst is not Severity.CRITICAL:
        typer.echo("If it is critical when it appears, it is not muted.")
    ways = [] if sticky else ["disappears"]
    ways += ["gets worse"] if subject is not None else ["gets worse", "affects something new"]
    typer.echo(f"It ends when the problem {listed(ways).replace(' and ', ' or ')}.")
    named = option_values.repeat_options(option_values.named_home(home))
    typer.echo(clean(f"To end it now: hermes-doctor unmute {shlex.quote(made.name)}{named}"))
    return 0


def unmute(
    what: str | None = typer.Argument(
        None,
        metavar="[CODE[/SUBJECT]]",
        help="The mute; a code alone also ends the mutes of its subjects.",
        autocompletion=complete_code,
    ),
    every: bool = typer.Option(False, "--all", help="End all mutes of the home."),
    home: HomeOption = None,
) -> int:
    """End a mute."""
    from hermes_doctor.cli import backup_common
    from hermes_doctor.core.preferences import mutes

    if every == (what is not None):
        raise Trouble("Name a code to unmute, or give --all.")
    where = backup_common.find_home(home, elsewhere=True)
    separate_look.know_secrets(where.path)
    place = str(where.path)
    own = [one for one in mutes.load() if one.home == place]
    code, slash, subject = (what or "").partition("/")
    gone = [
        one
        for one in own
        if every or (one.code == code.upper() and (not slash or one.subject == subject))
    ]
    if not own:
        raise Trouble("Nothing is muted in {home}.", home=place)
    if not gone:
        names = listed([one.name for one in own])
        nothing = "{what} is not muted. Muted in {home}: {names}."
        raise Trouble(nothing, what=what, home=place, names=names)
    mutes.remove(gone)
    for one in gone:
        typer.echo(clean(f"Unmuted {one.name}."))
    return 0


def mutes(json: JsonOption = False) -> int:
    """List the mutes of all homes."""
    from hermes_doctor.core.preferences import mutes

    known = mutes.load()
    if json:
        items = [mutes.document(one) for one in known]
        print_document({"schema": mutes.SCHEMA, "mutes": items})
        return 0
    show(_lines(known, datetime.now(UTC)))
    for path in mutes.ignored_files():
        show([row(f"Ignored, because only root may mute here: {tilde(path)}")])
    return 0


def _lines(known: Sequence[Mute], now: datetime) -> list[Line]:
    if not known:
        return [row("Nothing is muted.")]
    lines: list[Line] = []
    for home in dict.fromkeys(one.home for one in known):
        lines += [BLANK] if lines else []
        lines.append(row(("Muted", "strong"), f" in {tilde(home)}"))
        for one in known:
            if one.home != home:
                continue
            over = " (over)" if one.is_over(now) else ""
            since = (f"  since {ago(one.at, now)}", "faint")
            end = f"  {_end_of(one)}{over}"
            lines.append(row((one.name, "strong"), end, since, indent=2, hang=2))
            if one.because:
                lines.append(row(one.because, indent=4))
    return lines


def _named(what: str, plugins: Plugins) -> tuple[str, str | None]:
    """The code and the subject that were typed; raise Trouble if no check has the code."""
    word, slash, subject = what.partition("/")
    names = {code.lower(): code for check in plugins.checks for code in check.codes}
    if word.lower() not in names:
        raise Trouble(
            sentences(
                text("Unknown code {word!r}.", word=word),
                suggestion(word, names),
                "See: hermes-doctor list codes",
            )
        )
    if slash and not subject:
        raise Trouble("Name the subject after the /, or leave out the /.")
    return names[word.lower()], subject if slash else None


def _examine(home: Home, plugins: Plugins, *, deep: bool, network: bool) -> Report:
    from hermes_doctor.diagnosis.examination import report as reports
    from hermes_doctor.diagnosis.probes.probes import Probes

    severities = severities_for(home.path, plugins)

    def examine() -> Report:
        probes = Probes(home, deep=deep, network=network)
        with waiting("checking", quiet=False):
            return reports.report(probes, plugins, plugins.checks, severities=severities)

    return separate_look.look_at(home.path, examine, plugins)


def _nothing_to_mute(report: Report, code: str, subject: str | None, plugins: Plugins) -> Trouble:
    others = [finding.subject for finding in report.findings if finding.code == code]
    if others:
        wrong = "{code} has no subject {subject!r} now. It has: {others}."
        return Trouble(wrong, code=code, subject=subject, others=listed(others))
    checks = {check.id for check in plugins.checks if code in check.codes}
    unclear = [
        result
        for result in report.checks
        if result.id in checks and result.status in (Status.UNKNOWN, Status.CRASHED)
    ]
    if unclear:
        unknown = "Could not check whether {code} is there: {reason}."
        return Trouble(unknown, code=code, reason=unclear[0].reason)
    absent = "{code} is not found now. Add --sticky to mute it before it appears."
    return Trouble(absent, code=code)


def _end_of(mute: Mute) -> str:
    if mute.until is not None:
        return f"until {clock(mute.until)}" + (", sticky" if mute.sticky else "")
    return "until it gets worse (sticky)" if mute.sticky else "until it changes"
