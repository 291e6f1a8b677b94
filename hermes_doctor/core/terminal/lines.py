"""Define styled lines of text, which a terminal shows in colour and a pipe gets as plain text."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system.files import user_home

Span = tuple[str, str]


class Line(NamedTuple):
    """One logical line: spans of text with a style each, and an indent that wrapped text keeps."""

    spans: tuple[Span, ...]
    indent: int = 0
    hang: int = 0
    """Additional indent of wrapped text after the first row."""
    right: Span | None = None
    """A short text at the right edge of a terminal, behind the line in a pipe."""

    @property
    def text(self) -> str:
        """The line without styles."""
        right = f"  {self.right[0]}" if self.right else ""
        return " " * self.indent + "".join(text for text, _ in self.spans).rstrip() + right


def row(*parts: str | Span, indent: int = 0, hang: int = 0, right: Span | None = None) -> Line:
    """Make a line from plain strings and (text, style) spans; control characters are replaced."""
    spans = [(part, "") if isinstance(part, str) else part for part in parts]
    edge = (clean(right[0]), right[1]) if right else None
    return Line(tuple((clean(text), style) for text, style in spans), indent, hang, edge)


def rows_of(line: Line, width: int) -> int:
    """How many rows of a terminal a line takes; only a word longer than a row is split."""
    room = max(20, width - line.indent - (len(line.right[0]) + 2 if line.right else 0))
    rows, used = 1, 0
    for word in "".join(text for text, _ in line.spans).split(" "):
        cells = cell_width(word)
        if not used:
            used = cells
        elif used + 1 + cells <= room:
            used += 1 + cells
        else:
            rows, used = rows + 1, cells + line.hang
        if used > room:
            rows, used = rows + (used - 1) // room, (used - 1) % room + 1
    return rows


def cell_width(text: str) -> int:
    """The number of terminal cells that a text takes; Chinese characters take two each."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


BLANK = Line(())


def tilde(path: Path | str) -> str:
    """Write a path with `~` for the user's folder, because reports get pasted in public."""
    home = str(user_home())
    text = str(path)
    return "~" + text[len(home) :] if text == home or text.startswith(home + "/") else text


_ASCII = str.maketrans(
    {
        "✗": "x",
        "✓": "+",
        "·": "-",
        "→": "->",
        "…": "...",
        "‹": "<",
        "›": ">",
        "×": "x",
        "└": "`",
        "─": "-",
        "–": "-",
        "�": "?",
        "▶": ">",
        "■": "#",
        "✎": "*",
        "↑": "^",
        "⛁": "=",
        "•": "-",
    }
)


def fit_encoding(text: str, out: TextIO) -> str:
    """Replace the characters that the encoding of the output does not support."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
