"""What a command says while it works: on stderr, since stdout is that of the command it runs."""

from __future__ import annotations

import sys

import typer


def begun(text: str) -> str:
    """As a sentence begins; the name of a file at its beginning stays as it is."""
    is_name = "." in text.split(" ")[0].rstrip(".:")
    return text if is_name else text[:1].upper() + text[1:]


def tell(text: str) -> None:
    """What is being done now, where somebody waits for it."""
    if sys.stderr.isatty():
        typer.echo(f"  {text} …", err=True)


def say(mark: str, style: str, text: str) -> None:
    """One line on stderr: stdout is the command's."""
    from hermes_doctor.terminal.lines import row
    from hermes_doctor.terminal.show import show

    if text:
        show([row((mark, style), text, hang=2)], sys.stderr)


def echo(made: dict[str, object]) -> None:
    """The one document on stdout."""
    from hermes_doctor.render import document

    typer.echo(document.dump(made))
