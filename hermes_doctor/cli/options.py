"""Declares the options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hermes_doctor.cli.completions import complete_selector

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
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
    bool,
    typer.Option("--network", help="Also contact every platform and the model provider."),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help="Run only this code, check or group. Repeatable.",
        autocompletion=complete_selector,
    ),
]
SkipOption = Annotated[
    list[str] | None,
    typer.Option(
        "--skip",
        help="Skip this code, check or group. Repeatable.",
        autocompletion=complete_selector,
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to every question.")]
PluginsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugins",
        metavar="DIR",
        help="Also load checks/ and fixes/ from this folder. Repeatable.",
    ),
]
VaultOption = Annotated[
    Path | None,
    typer.Option(
        "--vault",
        metavar="DIR",
        help="Keep backups in this folder instead of HOME/backups/doctor.",
    ),
]


def complete_code(incomplete: str) -> list[str]:
    """The codes with this prefix, for shell completion."""
    from hermes_doctor.cli.shared_options import load_plugins

    codes = sorted({code for one in load_plugins(None).checks for code in one.codes})
    return [code for code in codes if code.startswith(incomplete.upper())]


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
