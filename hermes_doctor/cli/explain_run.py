"""Implements `explain` without typer, so that typer need not be loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.terminal.lines import fit_encoding


def run(code: str, plugins: Sequence[Path] | None = None) -> int:
    """Print the page of a code."""
    from hermes_doctor.diagnosis.plugins.mount import page_folders

    pages = {
        page.stem.lower(): page
        for folder in page_folders(plugins or effective.load().plugins())
        for page in folder.glob("*.md")
    }
    page = pages.get(code.lower())
    if page is None:
        from hermes_doctor.cli.option_values import suggestion

        raise Trouble(
            sentences(
                text("Unknown code {code!r}.", code=code),
                suggestion(code, {name: one.stem for name, one in pages.items()}),
                "See: hermes-doctor list codes",
            )
        )
    content = page.read_text(encoding="utf-8")
    if sys.stdout.isatty() and (sys.stdout.encoding or "").lower().startswith("utf"):
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console(width=min(Console().width, 90))
        console.print(Markdown(content))
    else:
        print(fit_encoding(content, sys.stdout), end="")  # noqa: T201
    return 0
