"""The words that options and arguments accept, for the completion of shells."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import typer


def complete_selector(incomplete: str) -> list[str]:
    """The groups, checks and codes that --only and --skip accept."""
    from hermes_doctor.cli.shared_options import load_plugins, selectors

    return _with_prefix(sorted(selectors(load_plugins(None)).values()), incomplete)


def complete_severity(incomplete: str) -> list[str]:
    """The severities, worst first."""
    from hermes_doctor.model import Severity

    return _with_prefix((one.value for one in Severity), incomplete)


def complete_format(incomplete: str) -> list[str]:
    """The formats of `check`."""
    from hermes_doctor.cli.check_run import FORMATS

    return _with_prefix(FORMATS, incomplete)


def complete_question(incomplete: str) -> list[str]:
    """The questions of `probe`."""
    from hermes_doctor.examination.container_probe import QUESTIONS

    return _with_prefix(QUESTIONS, incomplete)


def complete_protocol(incomplete: str) -> list[str]:
    """The protocols of model providers."""
    from hermes_doctor.settings.urls import CHAT, MESSAGES, RESPONSES

    return _with_prefix((CHAT, MESSAGES, RESPONSES), incomplete)


def complete_store(incomplete: str) -> list[str]:
    """The parts of a home that `backup restore` knows by name."""
    from hermes_doctor.backup.selection import STORES

    return _with_prefix(STORES, incomplete)


def complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """The runs that can be undone, newest first."""
    from hermes_doctor import home
    from hermes_doctor.model import CouldNotLook, Trouble
    from hermes_doctor.records.journal import Journals

    given = ctx.params.get("home")
    try:
        runs = Journals(home.find(Path(given) if given else None)).all()
    except (Trouble, CouldNotLook, OSError):
        return []
    return _with_prefix((one.id for one in reversed(runs) if one.in_place), incomplete)


def _with_prefix(words: Iterable[str], start: str) -> list[str]:
    return [word for word in words if word.startswith(start)]
