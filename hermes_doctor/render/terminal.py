"""Lines on a terminal: coloured unless NO_COLOR, wrapped with their indent, 100 columns at most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from hermes_doctor.render.lines import Line, fitting

STYLES = {
    "critical": "bold white on red",
    "error": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "good": "green",
    "faint": "dim",
    "strong": "bold",
    "command": "bold cyan",
    "added": "green",
    "removed": "red",
}


def show(lines: Iterable[Line], out: TextIO, console: Console | None = None) -> None:
    """Print them."""
    console = console or Console(file=out, highlight=False)
    width = max(40, min(console.width, 100))
    for line in lines:
        text = Text()
        for part, style in line.spans:
            text.append(fitting(part, out), style=STYLES.get(style, ""))
        rows = text.wrap(console, max(20, width - line.indent - line.hang))
        for number, piece in enumerate(rows or [Text()]):
            piece.rstrip()
            margin = line.indent + (line.hang if number else 0)
            console.print(Text(" " * margin) + piece, no_wrap=True, overflow="ignore", crop=False)
