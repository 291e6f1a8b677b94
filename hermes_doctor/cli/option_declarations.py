"""Declares the options that several commands share, and the words that options accept."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from hermes_doctor.core import home
from hermes_doctor.core.model import CouldNotLook, Severity, Trouble


def complete_selector(incomplete: str) -> list[str]:
    """The groups, checks and codes that --only and --skip accept."""
    from hermes_doctor.cli.option_values import load_plugins, selectors

    return _with_prefix(sorted(selectors(load_plugins(None)).values()), incomplete)


def complete_severity(incomplete: str) -> list[str]:
    """The severities, worst first."""
    return _with_prefix((severity.value for severity in Severity), incomplete)


def complete_format(incomplete: str) -> list[str]:
    """The formats of `check`."""
    from hermes_doctor.cli.check_run import FORMATS

    return _with_prefix(FORMATS, incomplete)


def complete_question(incomplete: str) -> list[str]:
    """The questions of `probe`."""
    from hermes_doctor.diagnosis.examination.container_probe import QUESTIONS

    return _with_prefix(QUESTIONS, incomplete)


def complete_protocol(incomplete: str) -> list[str]:
    """The protocols of model providers."""
    from hermes_doctor.hermes.settings.urls import CHAT, MESSAGES, RESPONSES

    return _with_prefix((CHAT, MESSAGES, RESPONSES), incomplete)


def complete_store(incomplete: str) -> list[str]:
    """The parts of a home that `backup restore` knows by name."""
    from hermes_doctor.backup.vault.selection import STORES

    return _with_prefix(STORES, incomplete)


def complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """The runs that can be undone, newest first."""
    from hermes_doctor.backup.records.journal import Journals
    from hermes_doctor.cli import separate_look

    given = ctx.params.get("home")
    try:
        where = home.find(Path(given) if given else None)
        ids = separate_look.look(
            where.path,
            lambda: [journal.id for journal in Journals(where).all() if journal.in_place],
        )
    except (Trouble, CouldNotLook, OSError):
        return []
    return _with_prefix(reversed(ids), incomplete)


def complete_code(incomplete: str) -> list[str]:
    """The codes with this prefix, for shell completion."""
    from hermes_doctor.cli.option_values import load_plugins

    codes = {code for check in load_plugins(None).checks for code in check.codes}
    return _with_prefix(sorted(codes), incomplete.upper())


def _with_prefix(words: Iterable[str], start: str) -> list[str]:
    return [word for word in words if word.startswith(start)]


HomeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Use this Hermes home. Without it: HERMES_HOME, then config.toml, then ~/.hermes, "
        "then /opt/data.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of text.")
]
DeepOption = Annotated[
    bool, typer.Option("--deep", help="Read every page and row; slow for large databases.")
]
NetworkOption = Annotated[
    bool, typer.Option("--network", help="Also contact every platform and the model provider.")
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Run only this code, check or group. Repeatable.", autocompletion=complete_selector
    ),
]
SkipOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Skip this code, check or group. Repeatable.", autocompletion=complete_selector
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to every question.")]
PluginsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Also load checks/ and fixes/ from this folder. Repeatable."),
]
VaultOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep backups in this folder instead of HOME/backups/doctor."),
]
SystemOption = Annotated[
    bool, typer.Option("--system", help="For the whole machine, not only for your user (sudo).")
]
CronOption = Annotated[
    bool, typer.Option("--cron", help="Use the crontab even if systemd or launchd runs.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be written, without writing it.")
]
UpdateAnywayOption = Annotated[
    bool, typer.Option("--force", help="Update even if a check objects or the backup fails.")
]
FromChatOption = Annotated[bool, typer.Option("--from-chat", hidden=True)]


def refuse_nan(seconds: float) -> float:
    """Refuse `nan`, which passes every comparison with a minimum and a maximum."""
    if seconds != seconds:
        raise typer.BadParameter("nan is not a number of seconds.")
    return seconds


def can_ask() -> bool:
    """Whether there is a terminal to ask a question on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str) -> bool:
    """Ask a yes-or-no question; without a terminal the answer is no."""
    if not can_ask():
        return False
    from shutil import get_terminal_size
    from textwrap import fill

    room = max(20, get_terminal_size().columns - len(" [y/N]: "))
    return typer.confirm(fill(question, room), default=False, err=True)
