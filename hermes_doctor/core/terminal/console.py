"""Print lines on a terminal: coloured unless NO_COLOR is set, wrapped at 100 columns at most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hermes_doctor.core.terminal.lines import Line, Span, fit_encoding

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

NARROW = 24
"""Fewer columns than this are not left for the text beside the right edge."""
LEAD = 8
"""Characters of a word such as `Next: ` that stays in front of its command."""


def show(lines: Iterable[Line], out: TextIO, console: Console | None = None) -> None:
    """Print lines with their styles; wrapped text keeps the indent of its line."""
    console = console or Console(file=out, highlight=False)
    width = max(40, min(console.width, 100))
    for line in lines:
        number = 0
        for whole, spans in _parts(line, width):
            text = Text()
            for part, style in spans:
                text.append(fit_encoding(part, out), style=STYLES.get(style, ""))
            right = _right(line, out, width)
            aside = right.cell_len + 2 if right else 0
            if line.right and not right:  # too narrow for a column of its own
                text.append(f"  {fit_encoding(line.right[0], out)}", STYLES.get(line.right[1], ""))
            room = max(20, width - line.indent - aside)
            for piece in [text] if whole else _wrapped(text, console, room, line.hang):
                piece.rstrip()
                margin = line.indent + (line.hang if number else 0)
                if whole:  # a command that can be pasted matters more than its indent
                    margin = max(0, min(margin, width - piece.cell_len))
                shown = Text(" " * margin) + piece
                if right and not number:
                    shown.append(" " * max(2, width - shown.cell_len - right.cell_len))
                    shown.append_text(right)
                console.print(shown, no_wrap=True, overflow="ignore", crop=False)
                number += 1


def _wrapped(text: Text, console: Console, room: int, hang: int) -> list[Text]:
    """The rows of a text; those after the first are shorter by the hanging indent."""
    rows = list(text.wrap(console, room)) or [Text()]
    if len(rows) == 1 or not hang:
        return rows
    end = len(rows[0].plain.rstrip())
    rest = text[end:]
    spaces = len(rest.plain) - len(rest.plain.lstrip())
    return [rows[0], *rest[spaces:].wrap(console, max(20, room - hang))]


def _right(line: Line, out: TextIO, width: int) -> Text:
    """The text at the right edge, if the terminal is wide enough for it."""
    if line.right is None:
        return Text()
    right = Text(fit_encoding(line.right[0], out), STYLES.get(line.right[1], ""))
    fits = width - line.indent - line.hang - right.cell_len - 2 >= NARROW
    return right if fits else Text()


def _parts(line: Line, width: int) -> list[tuple[bool, list[Span]]]:
    """Split a line that is too long so that each command is on one row and can be pasted.

    The flag of each part says whether it has a command and must not be wrapped. A short word in
    front of a command (`Next: `) stays with it if there is room.
    """
    if cell_len(line.text) <= width or not any(style == "command" for _, style in line.spans):
        return [(False, list(line.spans))]
    parts: list[tuple[bool, list[Span]]] = []
    for text, style in line.spans:
        command = style == "command"
        before = "".join(word for word, _ in parts[-1][1]) if len(parts) == 1 else ""
        fits = cell_len(before + text) + line.indent <= width
        if command and before and len(before) <= LEAD and fits:
            parts[-1] = (True, [*parts[-1][1], (text, style)])
            continue
        if command or not parts or parts[-1][0]:
            parts.append((command, []))
        after_command = len(parts) > 1 and not parts[-1][1] and not command
        parts[-1][1].append((text.lstrip() if after_command else text, style))
    return [part for part in parts if "".join(text for text, _ in part[1]).strip()]
