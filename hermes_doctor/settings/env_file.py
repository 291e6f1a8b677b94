"""Read .env as bytes and detect its encoding."""

from __future__ import annotations

import codecs
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, Snapshot, read_if_there

NAME = ".env"
_NAME = pattern(r"[A-Z][A-Z0-9_]{0,63}")
_ASSIGNMENT = pattern(rb"[ \t]*(?:export[ \t]+)?[A-Z_][A-Z0-9_]*=")
LIMIT = 4 * MEGABYTE
MOST_LINES = 20_000
"""No real file comes near it; python-dotenv reads some 20,000 lines per second."""

MANGLED = "mangled"
"""A byte order mark that was decoded as text and saved: two replacement characters."""

_MARKS = (  # longer marks first: UTF-32 LE starts with the mark of UTF-16 LE
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF8, "UTF-8-SIG"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
    ("\ufffd\ufffd".encode(), MANGLED),
)


class EnvFile(NamedTuple):
    """.env: its bytes, and their encoding according to the first bytes and a trial."""

    path: Path
    data: bytes
    snapshot: Snapshot

    @property
    def mark(self) -> str | None:
        """The encoding according to the byte order mark."""
        return next((name for mark, name in _MARKS if self.data.startswith(mark)), None)

    def line(self, number: int) -> str:
        """Return one line without its ending, counted from 1; lines end as for Hermes."""
        import re

        lines = re.split(r"\r\n|\r|\n", self.text or "")
        return lines[number - 1] if 0 < number <= len(lines) else ""

    @property
    def text(self) -> str | None:
        """The text without a byte order mark; None if no encoding is certain."""
        mark = self.mark
        data = self.data[6:] if mark == MANGLED else self.data
        encoding = "UTF-8" if mark == MANGLED else mark or self._unmarked() or "UTF-8"
        try:
            return data.decode(encoding).lstrip("\ufeff")
        except UnicodeDecodeError:
            return None

    @property
    def lost_name(self) -> str | None:
        """The variable that is lost because of the byte order mark; None if none is lost.

        Empty if the name is not an ordinary one, which may be a secret.
        """
        from hermes_doctor.redaction import looks_like_secret

        sign = "\ufffd"  # not the mark itself, which python-dotenv removes since 1.2.4
        start = (self.text or "")[:65536]
        kept = _parsed(sign + start)
        for name, value in _parsed(start).items():
            if name not in kept and value is not None:
                plain = _NAME.fullmatch(name) and not value.startswith("=")
                return name if plain and not looks_like_secret(name) else ""
        return None

    def values(self) -> dict[str, str]:
        """Return the variables as python-dotenv reads them. Contains secrets: show only names."""
        return {name: value for name, value in _parsed(self.text or "").items() if value}

    def without_nul(self) -> bytes | None:
        """The bytes without NUL; None unless the rest is plain text with the same variables.

        NUL bytes between two variables took the place of at least the line end, so they become
        one. Inside a quoted value that is not certain.
        """
        if b"\0" not in self.data:
            return self.data
        rest, added = _part(self.data)
        if not is_plain(rest) or _variables(rest) != _variables(self.data) + added:
            return None
        return rest

    def _unmarked(self) -> str | None:
        """Detect UTF-16 without a mark: every second byte of ASCII text is NUL."""
        half = len(self.data) // 2
        if half and len(self.data) % 2 == 0:
            if self.data[1::2].count(0) > half * 0.9:
                return "UTF-16-LE"
            if self.data[0::2].count(0) > half * 0.9:
                return "UTF-16-BE"
        return None


def is_plain(data: bytes) -> bool:
    """Tell whether bytes are text of lines, without control characters."""
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return bool(content.strip()) and all(one in "\t\r\n" or one.isprintable() for one in content)


def _part(data: bytes) -> tuple[bytes, int]:
    """Remove NUL bytes, and end the line where a variable follows; return how often that was."""
    added = 0
    lines = []
    for line in data.split(b"\n"):
        whole = b""
        for piece in line.split(b"\0"):
            if _ASSIGNMENT.match(piece) and (b"=" in whole or b"#" in whole):
                lines.append(whole)
                whole = b""
                added += 1
            whole += piece
        lines.append(whole)
    return b"\n".join(lines), added


def _parsed(content: str) -> dict[str, str | None]:
    """Return the variables as python-dotenv reads them, without its warnings about bad lines."""
    import logging
    from io import StringIO

    from dotenv import dotenv_values

    logging.getLogger("dotenv.main").disabled = True
    return dotenv_values(stream=StringIO(content), interpolate=False)


def _variables(data: bytes) -> int:
    """How many variables python-dotenv finds."""
    from io import StringIO

    from dotenv.parser import parse_stream

    found = parse_stream(StringIO(data.decode("utf-8", "replace")))
    return sum(one.key is not None and one.value is not None for one in found)


def read(home: Home) -> EnvFile | None:
    """.env of this home, or None when there is none; CouldNotLook if it has too many lines."""
    found = read_if_there(home / NAME, LIMIT)
    if found and max(found[0].count(b"\n"), found[0].count(b"\r")) > MOST_LINES:
        raise CouldNotLook(
            text("{file}: too many lines to read (more than {most:,})", file=NAME, most=MOST_LINES)
        )
    return EnvFile(home / NAME, *found) if found else None
