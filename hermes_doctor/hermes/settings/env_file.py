"""Read .env as bytes, detect its encoding, and parse it like each of Hermes' two parsers.

python-dotenv fills the environment of the process. Hermes' own parser reads the keys of built-in
providers directly from the file, and supports neither comments after a value nor `${NAME}`. Both
get the file after Hermes has cleaned it up: spaces around lines are removed, and a line with two
known variables is split.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, read_if_there, size
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings.document import ENV, Source, Text

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
        from hermes_doctor.core.redaction import looks_like_secret

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

    stream = parse_stream(StringIO(data.decode("utf-8", "replace")))
    return sum(binding.key is not None and binding.value is not None for binding in stream)


def read(home: Home) -> EnvFile | None:
    """.env of this home, or None when there is none; CouldNotLook if it has too many lines."""
    if_there = read_if_there(home / NAME, LIMIT)
    if if_there and max(if_there[0].count(b"\n"), if_there[0].count(b"\r")) > MOST_LINES:
        raise CouldNotLook(
            "{file}: too many lines to read (more than {most:,})", file=NAME, most=MOST_LINES
        )
    return EnvFile(home / NAME, *if_there) if if_there else None


_PLAIN = pattern(
    r"""(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(?:"([^"\\$\n]*)"|'([^'\\$\n]*)'|"""
    r"""([!%&(-\[\]-~][ !%&(-\[\]-~]*)?)"""
)
"""An assignment without escapes, references and comments, which all parsers read the same."""
_CREDENTIAL = ("_API_KEY", "_TOKEN", "_SECRET", "_KEY")
_STRUCTURED = ("://", "?", "&")


class ParsedEnv(NamedTuple):
    """The variables as one parser reads them, including secrets."""

    values: Mapping[str, Text]
    again: Mapping[str, tuple[int, ...]]
    """Names that are set more than once: the lines that a later one overrides."""
    unread: tuple[int, ...] = ()
    """Lines that the parser could not read."""


class EnvReadings(NamedTuple):
    """The results of both parsers."""

    dotenv: ParsedEnv
    own: ParsedEnv


class ExpandsTooFar(CouldNotLook):
    """The variables that refer to others contain more than LIMIT characters together."""

    def __init__(self, line: int) -> None:
        super().__init__(
            text("{file}: its variables expand to more than {most}", file=NAME, most=size(LIMIT))
        )
        self.line = line


NO_VARIABLES = EnvReadings(ParsedEnv({}, {}), ParsedEnv({}, {}))


def parse_env(file: EnvFile, release: Release, environment: Mapping[str, str]) -> EnvReadings:
    """Read the variables with each parser; `environment` is what `${NAME}` may refer to.

    Raises ExpandsTooFar if these references make the values too long.
    """
    lines = list(_tidied(_decoded(file, release), release))
    return EnvReadings(_dotenv(file, lines, environment), _own(lines, release))


def line_of_expansion(file: EnvFile) -> int | None:
    """Return the line at which references have made the values too long; None if none has."""
    if b"${" not in file.data:
        return None
    try:
        _dotenv(file, list(_tidied(_decoded(file, Release(None)), Release(None))), {})
    except ExpandsTooFar as found:
        return found.line
    return None


def _decoded(file: EnvFile, release: Release) -> str:
    """Decode the file; invalid bytes are replaced as Hermes does."""
    if file.mark == "UTF-16" and release.since(0, 19):
        text = file.data.decode("utf-16", errors="replace")
    else:
        text = file.data.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


def _tidied(text: str, release: Release) -> Iterator[tuple[int, str]]:
    """Yield the lines after Hermes' clean-up, each with its line number in the file."""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if line and not line.startswith("#"):
            for part in split_line(line, release):
                yield number, part
        else:
            yield number, raw


def split_line(line: str, release: Release) -> list[str]:
    """Split a line where another known variable starts."""
    if line.count("=") < 2:
        return [line]
    spans = [
        (match.start(), match.end())
        for name in release.names
        if f"{name}=" in line
        for match in re.finditer(re.escape(f"{name}="), line)
    ]
    cuts = sorted(
        {
            start
            for start, end in spans
            if not any(a <= start and b >= end and (a, b) != (start, end) for a, b in spans)
        }
    )
    if len(cuts) < 2:
        return [line]
    cut = [line[a:b].strip() for a, b in zip(cuts, [*cuts[1:], len(line)], strict=True)]
    if release.since(0, 18):
        values = (part.partition("=")[2] for part in cut[:-1])
        if cuts[0] != 0 or any(_is_structured(value) for value in values):
            return [line]
    return [part for part in cut if part]


def _is_structured(value: str) -> bool:
    return any(mark in value for mark in _STRUCTURED) or any(char.isspace() for char in value)


def _dotenv(
    file: EnvFile, lines: list[tuple[int, str]], environment: Mapping[str, str]
) -> ParsedEnv:
    """Parse like python-dotenv, which is only imported if the file needs it."""
    plain = _plainly(lines)
    if plain is not None:
        return plain
    from io import StringIO

    from dotenv.parser import parse_stream
    from dotenv.variables import parse_variables

    content = "\n".join(line for _, line in lines)
    if "\ufffd" in content and file.mark is None:
        content = file.data.decode("latin-1")  # Hermes reads such a file as Latin-1
    scope: dict[str, str | None] = dict(environment)
    left = LIMIT + len(content)
    found: dict[str, Text] = {}
    again: dict[str, tuple[int, ...]] = {}
    unread = []
    for binding in parse_stream(StringIO(content)):
        blank = len(binding.original.string) - len(binding.original.string.lstrip())
        above = binding.original.string.count("\n", 0, blank)
        number = _number(lines, binding.original.line + above)
        if binding.error:
            unread.append(number)
        if binding.key is None or binding.value is None:
            continue
        parts = []
        for atom in parse_variables(binding.value):
            parts.append(atom.resolve(scope))
            left -= len(parts[-1])
            if left < 0:
                raise ExpandsTooFar(number)
        value = scope[binding.key] = "".join(parts)
        _keep(found, again, binding.key, value, number)
    return ParsedEnv(found, again, tuple(unread))


def _plainly(lines: list[tuple[int, str]]) -> ParsedEnv | None:
    """Parse a file of plain lines, which all parsers read the same; None if a line is not plain."""
    found: dict[str, Text] = {}
    again: dict[str, tuple[int, ...]] = {}
    for number, line in lines:
        bare = line.strip()
        if not bare.startswith("#") and bare:
            match = _PLAIN.fullmatch(bare)
            if match is None:
                return None
            name, *values = match.groups()
            _keep(found, again, name, next((value for value in values if value), ""), number)
        elif "\ufffd" in bare:
            return None
    return ParsedEnv(found, again)


def _number(lines: list[tuple[int, str]], position: int) -> int:
    return lines[position - 1][0] if 0 < position <= len(lines) else position


def _own(lines: list[tuple[int, str]], release: Release) -> ParsedEnv:
    """Parse like Hermes' own parser."""
    found: dict[str, Text] = {}
    again: dict[str, tuple[int, ...]] = {}
    for number, raw in lines:
        line = raw.strip()
        if not line or line.startswith("#") or "=" not in line:
            continue
        if release.since(0, 18) and line.startswith("export "):
            line = line[7:]
        name, _, value = line.partition("=")
        bare = _unquoted(value.strip()) if release.since(0, 18) else value.strip().strip("\"'")
        _keep(found, again, name.strip(), bare, number)
    return ParsedEnv(found, again)


def _unquoted(value: str) -> str:
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "\"'":
        return value
    inside = value[1:-1]
    return re.sub(r"\\([\"\\])", r"\1", inside) if value[0] == '"' else inside


def _keep(
    found: dict[str, Text], again: dict[str, tuple[int, ...]], name: str, value: str, line: int
) -> None:
    before = found.get(name)
    if before is not None and before.source.line:
        again[name] = (*again.get(name, ()), before.source.line)
    found[name] = Text(value, Source(ENV, name, NAME, line))


def ascii_credential(name: str, value: Text) -> Text:
    """Return a credential as it ends up in the environment: non-ASCII characters are removed."""
    if name.endswith(_CREDENTIAL) and not value.isascii():
        return value.like("".join(char for char in value if char.isascii()))
    return value
