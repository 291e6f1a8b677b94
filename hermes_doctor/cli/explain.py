"""The `explain` command: print the page of a code."""

from __future__ import annotations

import typer

from hermes_doctor.cli.option_declarations import PluginsOption, complete_code

EPILOG = """\b
Examples:
  hermes-doctor explain CFG-YAML
  hermes-doctor explain MY-CODE --plugins ./mine

\b
Exit codes:
  0  shown
  2  unknown code
"""


def explain(
    code: str = typer.Argument(
        help="The code to explain, as `check` shows it.", autocompletion=complete_code
    ),
    plugins: PluginsOption = None,
) -> int:
    """Explain a code: what it means and what fixes it."""
    from hermes_doctor.cli.explain_run import run

    return run(code, plugins)
