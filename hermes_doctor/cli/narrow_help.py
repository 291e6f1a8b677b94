"""Fit `--help` into a terminal with fewer than 52 columns, which typer does not."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from typer._click import Context, HelpFormatter

NARROW = 52
_NAMES = 12
"""Options with longer names have their text on the next line."""


class NarrowFormatter(HelpFormatter):
    """Writes long names on a line of their own, and wraps examples and exit codes between words."""

    def write_dl(
        self,
        rows: Sequence[tuple[str, str]],
        col_max: int = _NAMES,
        col_spacing: int = 2,
    ) -> None:
        """Write names and texts in two columns."""
        super().write_dl(rows, min(col_max, _NAMES), col_spacing)

    def write_text(self, text: str) -> None:
        """Write paragraphs; those marked with a backspace keep their lines."""
        margin = " " * self.current_indent
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                self.write_paragraph()
            if not paragraph.startswith("\b"):
                super().write_text(paragraph)
                continue
            for line in paragraph.splitlines()[1:]:
                own = " " * (len(line) - len(line.lstrip()))
                parts = " ".join(line.split())
                later = f"{margin}{own}    "
                made = fill(
                    parts,
                    self.width,
                    initial_indent=margin + own,
                    subsequent_indent=later,
                    break_on_hyphens=False,
                )
                self.write(f"{made}\n")


def use(columns: int) -> dict[str, int]:
    """Prepare for a narrow terminal; return the options for the command line."""
    if columns >= NARROW:
        return {}
    Context.formatter_class = NarrowFormatter
    return {"terminal_width": max(20, columns - 1)}
