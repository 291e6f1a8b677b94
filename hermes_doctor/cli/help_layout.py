"""What `--help` looks like: summaries are never cut, and a narrow terminal shows all of it.

Typer cuts summaries, examples below 80 columns, and options below 52.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

LONGEST = 200
"""More characters than any summary has."""
WIDE, NARROW = 80, 52
_NAMES = 12
"""Options with longer names have their text on the next line."""
_LEAST = 20
"""Fewer columns than this are not left for the second of two columns."""
_COLUMNS = re.compile(r"(\s*(?:\S+ )*\S+ {2,})(\S.*)")


class WholeSummaries(TyperGroup):
    """A group whose `--help` lists each command with its whole summary."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; without any, print the help of a group that needs a command."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def format_commands(self, _: Any, formatter: Any) -> None:
        """Write one section with all commands."""
        rows = [
            (name, command.get_short_help_str(limit=LONGEST))
            for name, command in self.commands.items()
            if not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


class WrappingFormatter(typer.Context.formatter_class):  # type: ignore[misc,valid-type]
    """Wraps examples and exit codes between words, and keeps their columns."""

    def write_text(self, text: str) -> None:
        """Write paragraphs; those marked with a backspace keep their lines."""
        margin = " " * self.current_indent
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                self.write_paragraph()
            if not paragraph.startswith("\b"):
                super().write_text(paragraph)
                continue
            for line in _whole_lines(paragraph.splitlines()[1:]):
                self.write(f"{self._wrapped(margin + line)}\n")

    def _wrapped(self, line: str) -> str:
        if len(line) <= self.width:
            return line
        own = " " * (len(line) - len(line.lstrip()))
        below = own + 4 * " " if "hermes-doctor" in line else own
        columns = _COLUMNS.fullmatch(line)
        if columns is None:
            return self._filled(line.strip(), own, below)
        if len(columns[1]) <= self.width - _LEAST:
            return self._filled(columns[2], columns[1], " " * len(columns[1]))
        first = self._filled(columns[1].strip(), own, below)
        return f"{first}\n{self._filled(columns[2], own + 4 * ' ', own + 4 * ' ')}"

    def _filled(self, text: str, first: str, later: str) -> str:
        return fill(
            " ".join(text.split()),
            self.width,
            initial_indent=first,
            subsequent_indent=later,
            break_on_hyphens=False,
        )


class NarrowFormatter(WrappingFormatter):
    """Also writes long names on a line of their own."""

    def write_dl(
        self,
        rows: Sequence[tuple[str, str]],
        col_max: int = _NAMES,
        col_spacing: int = 2,
    ) -> None:
        """Write names and texts in two columns."""
        super().write_dl(rows, min(col_max, _NAMES), col_spacing)


def _whole_lines(lines: Sequence[str]) -> Iterator[str]:
    """Join each line with those that continue its second column."""
    whole = ""
    for line in lines:
        columns = _COLUMNS.fullmatch(whole)
        indent = len(line) - len(line.lstrip())
        if columns and indent == len(columns[1]):
            whole += f" {line.lstrip()}"
            continue
        if whole:
            yield whole
        whole = line
    if whole:
        yield whole


def use(columns: int) -> dict[str, int]:
    """Prepare for a narrow terminal; return the options for the command line."""
    if columns >= WIDE:
        return {}

    class NarrowContext(typer.Context):
        formatter_class = WrappingFormatter if columns >= NARROW else NarrowFormatter

    TyperCommand.context_class = TyperGroup.context_class = NarrowContext
    return {} if columns >= NARROW else {"terminal_width": max(20, columns - 1)}
