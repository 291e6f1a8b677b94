"""Parse .env like each of Hermes' two parsers, with the line of every variable.

python-dotenv fills the environment of the process. Hermes' own parser reads the keys of built-in
providers directly from the file, and supports neither comments after a value nor `${NAME}`. Both
get the file after Hermes has cleaned it up: spaces around lines are removed, and a line with two
known variables is split.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.settings.env_file import LIMIT, NAME, EnvFile
from hermes_doctor.settings.release import Release
from hermes_doctor.settings.sourced_text import ENV, Source, Text
from hermes_doctor.system.files import size

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


NOTHING = EnvReadings(ParsedEnv({}, {}), ParsedEnv({}, {}))


def read(file: EnvFile, release: Release, environment: Mapping[str, str]) -> EnvReadings:
    """Read the variables with each parser; `environment` is what `${NAME}` may refer to.

    Raises ExpandsTooFar if these references make the values too long.
    """
    lines = list(_tidied(_text(file, release), release))
    return EnvReadings(_dotenv(file, lines, environment), _own(lines, release))


def line_of_expansion(file: EnvFile) -> int | None:
    """Return the line at which references have made the values too long; None if none has."""
    if b"${" not in file.data:
        return None
    try:
        _dotenv(file, list(_tidied(_text(file, Release(None)), Release(None))), {})
    except ExpandsTooFar as found:
        return found.line
    return None


def _text(file: EnvFile, release: Release) -> str:
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
            _keep(found, again, name, next((one for one in values if one), ""), number)
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
