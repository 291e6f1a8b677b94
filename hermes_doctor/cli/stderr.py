"""Prints progress and results on stderr, because stdout belongs to the command that is run."""

from __future__ import annotations

import sys


def capitalized(text: str) -> str:
    """Capitalise the first letter, unless the text begins with a file name."""
    is_name = "." in text.split(" ")[0].rstrip(".:")
    return text if is_name else text[:1].upper() + text[1:]


def tell(text: str) -> None:
    """Print what is being done now, if stderr is a terminal."""
    if sys.stderr.isatty():
        print(f"  {text} …", file=sys.stderr)  # noqa: T201


def say(mark: str, style: str, text: str) -> None:
    """Print one line on stderr."""
    from hermes_doctor.terminal.lines import row
    from hermes_doctor.terminal.show import show

    if text:
        show([row((mark, style), text, hang=2)], sys.stderr)


def print_document(data: dict[str, object]) -> None:
    """Print the JSON document on stdout."""
    from hermes_doctor.render import document

    print(document.dump(data))  # noqa: T201
