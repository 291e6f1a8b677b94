"""A group of commands whose `--help` does not cut summaries, however narrow the terminal is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

LONGEST = 200
"""More characters than any summary has."""


class WholeSummaries(TyperGroup):
    """A group whose `--help` lists each command with its whole summary."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002
        """Write one section with all commands."""
        rows = [
            (name, one.get_short_help_str(limit=LONGEST))
            for name, one in self.commands.items()
            if not one.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
