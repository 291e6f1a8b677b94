"""The `explain` command: print the page of a code."""

from __future__ import annotations

from typing import Annotated

import typer

from hermes_doctor.cli.options import PluginsOption, complete_code

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
    code: Annotated[
        str,
        typer.Argument(
            help="The code to explain, as `check` shows it.", autocompletion=complete_code
        ),
    ],
    plugins: PluginsOption = None,
) -> int:
    """Explain a code: what it means and what fixes it."""
    import sys

    from hermes_doctor.cli.shared_options import suggestion
    from hermes_doctor.message import sentences, text
    from hermes_doctor.model import Trouble
    from hermes_doctor.plugins import load as loader

    found = loader.load(plugins or ())
    pages = {page.stem.lower(): page for folder in found.pages for page in folder.glob("*.md")}
    page = pages.get(code.lower())
    if page is None:
        names = {name: one.stem for name, one in pages.items()}
        raise Trouble(
            sentences(
                text("Unknown code {code!r}.", code=code),
                suggestion(code, names),
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
        from hermes_doctor.terminal.lines import fit_encoding

        typer.echo(fit_encoding(content, sys.stdout), nl=False)
    return 0
