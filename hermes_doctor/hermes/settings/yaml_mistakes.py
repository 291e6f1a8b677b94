"""Find typical mistakes that make config.yaml invalid, and repair those with a clear fix.

Also characters that only look like spaces or quotes and become part of names and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import yaml

from hermes_doctor.core import setting_lines
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import listed, text as say
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.settings.config_yaml import ConfigFile, ParseError
from hermes_doctor.hermes.settings.document import Document, Path

BLANKS = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"
"""Blanks that look like a space but are not one for YAML."""


_CONFLICT = pattern(r"^(<{7}|={7}|>{7})(\s|$)")
_START = pattern(r"---(\s|$)")
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16"}
_MARKS[b"\xfe\xff"] = "UTF-16"
_NAME = r"[ ]*(?:- +)?[\w.-]+"
_TAB_AFTER = pattern(rf"^({_NAME}:)[\t ]*\t[\t ]*")
_WIDE_COLON = pattern(rf"^({_NAME})[ ]*：[ ]*")
_COLON_WITHIN = pattern(rf"^{_NAME}:\s+[^\s'\"\[{{|>&*!#].*?:(\s|$)")
_CURLY = pattern(r"[“”„‟]")
_CURLY_SINGLE = pattern(r"(?<=[:\s])‘([^’'\n]*)’(?=\s|$)")


class YamlMistake(NamedTuple):
    """The most likely mistake."""

    what: str
    """In words, with what to do about it."""
    line: int | None = None
    repaired: bytes | None = None
    """The repaired file, if a rule repairs it and the result parses."""
    repair: str = ""
    """What the repair does."""
    shown: str = ""
    """The line with possible secrets redacted."""


class _Rule(NamedTuple):
    """A kind of mistake that is visible in the text."""

    what: str
    repair: str
    line: Callable[[list[str]], int | None]
    repairs: tuple[Callable[[str], str], ...]


def yaml_mistake(file: ConfigFile) -> YamlMistake | None:
    """Return the typical mistake that keeps config.yaml from parsing; None if it is another."""
    if file.fault is None:
        return None
    found = _mistake(file.data, file.fault)
    return found._replace(shown=_shown(file.data, found.line)) if found and found.line else found


def _mistake(data: bytes, fault: ParseError) -> YamlMistake | None:
    bare = data.replace(b"\0", b"")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _encoding(data, fault)
    if len(bare) < len(data):
        first = data.index(0)
        rest = data.rstrip(b"\0")
        fine = b"\0" not in rest and bool(config_yaml.parse(rest)[0])
        return YamlMistake(
            "The file contains NUL bytes, as after a power cut or on a full disk. The text in "
            "their place is lost.",
            data.count(b"\n", 0, first) + 1,
            rest if fine else None,
            "remove the NUL bytes at its end",
        )
    if config_yaml.why_not_built(text):
        return None
    lines = text.split("\n")
    marker = next((n for n, line in enumerate(lines, 1) if _CONFLICT.match(line)), None)
    if marker:
        return YamlMistake(
            "The file contains conflict markers of a merge. Keep one side of the conflict.", marker
        )
    found = [(rule, line) for rule in _RULES if (line := rule.line(lines))]
    for rule, line in found:
        mended = _mended(text, rule.repairs)
        if mended:
            return YamlMistake(rule.what, line, mended, rule.repair)
    if len(found) > 1:
        mended = _mended(text, _together([rule for rule, _ in found]))
        if mended:
            how = listed([rule.repair for rule, _ in found])
            return YamlMistake(found[0][0].what, found[0][1], mended, how)
    here = next((YamlMistake(rule.what, line) for rule, line in found if line == fault.line), None)
    return here or _from_parser(text, lines, fault)


def _shown(data: bytes, line: int) -> str:
    texts = data.decode("utf-8", "replace").splitlines()[:line]
    return setting_lines.redact_lines(texts)[-1].strip() if len(texts) == line else ""


def _encoding(data: bytes, fault: ParseError) -> YamlMistake:
    name = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    if name is None:
        return YamlMistake(
            "The file is not saved as UTF-8; older editors save in the encoding of the system. "
            "Open it with that encoding and save it as UTF-8.",
            fault.line,
        )
    try:
        mended = data.decode(name).encode()
    except UnicodeDecodeError:
        mended = b""
    return YamlMistake(
        say(
            "The file is saved as {encoding}, as some editors on Windows do. Save it as UTF-8.",
            encoding=name,
        ),
        repaired=mended if mended and config_yaml.parse(mended)[1] is None else None,
        repair="save it as UTF-8",
    )


def _first(matches: Callable[[str], object]) -> Callable[[list[str]], int | None]:
    return lambda lines: next((n for n, one in enumerate(lines, 1) if matches(one)), None)


def _margin(line: str) -> str:
    bare = line.lstrip(" \t" + BLANKS)
    return line[: len(line) - len(bare)] if bare.strip() else ""


def _each(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(change(line) for line in text.split("\n"))


def _untabbed(width: int) -> Callable[[str], str]:
    def change(line: str) -> str:
        margin = _margin(line)
        line = margin.replace("\t", " " * width) + line[len(margin) :]
        return _TAB_AFTER.sub(r"\1 ", line)

    return _each(change)


def _plain_margin(line: str) -> str:
    margin = _margin(line)
    return "".join(" " if one in BLANKS else one for one in margin) + line[len(margin) :]


plain_spaces = _each(_plain_margin)
"""Replaces lookalike blanks in the indentation by spaces."""


_RULES = (
    _Rule(
        "There is a tab where YAML allows only spaces.",
        "replace tabs by spaces",
        _first(lambda line: "\t" in _margin(line) or _TAB_AFTER.match(line)),
        (_untabbed(2), _untabbed(4), _untabbed(8)),
    ),
    _Rule(
        "A line is indented with blanks that only look like spaces, as copied from a web page.",
        "replace these characters by spaces",
        _first(lambda line: any(one in BLANKS for one in _margin(line))),
        (plain_spaces,),
    ),
    _Rule(
        "There is a full-width colon (：) after a name, but YAML needs a plain one.",
        "replace full-width colons after names by plain ones",
        _first(lambda line: _WIDE_COLON.match(line)),
        (_each(lambda line: _WIDE_COLON.sub(r"\1: ", line).rstrip(" ")),),
    ),
    _Rule(
        "There are curly quotes (“ ”), but YAML needs plain ones.",
        "replace curly quotes by plain ones",
        _first(lambda line: _CURLY.search(line) or _CURLY_SINGLE.search(line)),
        (_each(lambda line: _CURLY_SINGLE.sub(r"'\1'", _CURLY.sub('"', line))),),
    ),
)


def _together(rules: list[_Rule]) -> tuple[Callable[[str], str], ...]:
    def chained(number: int) -> Callable[[str], str]:
        def change(text: str) -> str:
            for rule in rules:
                text = rule.repairs[min(number, len(rule.repairs) - 1)](text)
            return text

        return change

    return tuple(chained(number) for number in range(max(len(rule.repairs) for rule in rules)))


def _mended(text: str, mends: tuple[Callable[[str], str], ...]) -> bytes | None:
    """Return the text that parses after a repair; None if none does, or if results differ."""
    found: list[tuple[object, str]] = []
    if "&" in text and "*" in text:  # values that refer to themselves cannot be compared
        return None
    for mend in mends:
        made = mend(text)
        if config_yaml.why_not_built(made):
            continue
        try:
            values = yaml.load(made, config_yaml.FAST)
        except Exception:  # noqa: BLE001 (PyYAML raises nearly anything)
            continue
        found.append((values, made))
    if not found or any(values != found[0][0] for values, _ in found):
        return None
    data = found[0][1].encode()
    return data if config_yaml.parse(data)[0] else None


def _from_parser(text: str, lines: list[str], fault: ParseError) -> YamlMistake | None:
    """Derive the mistake from the parser's message and the line."""
    error = _error(text)
    if error is None:
        return _at_the_top(fault)
    problem, context = error.problem or "", error.context or ""
    at = error.problem_mark.line if error.problem_mark else None
    if "quoted scalar" in context and "end of stream" in problem and error.context_mark:
        opened = error.context_mark.line + 1
        return YamlMistake(
            say("The quote that opens in line {line} is not closed.", line=opened), opened
        )
    if "single document" in context or "document start" in problem:
        second = _second_document(lines)
        return YamlMistake(
            "A second document begins (`---`), but Hermes reads only files with one.", second
        )
    for words, what in _SAID:
        if words in problem and (what != _WITHIN or (at is not None and _within(lines, at))):
            return YamlMistake(what, at + 1 if at is not None else None)
    return None


def _within(lines: list[str], at: int) -> bool:
    return at < len(lines) and bool(_COLON_WITHIN.match(lines[at]))


_WITHIN = (
    "There is a colon followed by a space inside a value. Put the whole value in quotes, or remove "
    "the second colon."
)
_SAID = (
    ("mapping values are not allowed", _WITHIN),
    (
        "mapping values are not allowed",
        "The line is indented deeper than the line above it, which has a value already, or a quote "
        "or a colon is missing there.",
    ),
    (
        "could not find expected ':'",
        "A name has no colon after it, or a text continues on a line that is not indented.",
    ),
    ("that cannot start any token", "A value that begins with @, ` or % needs quotes."),
    ("undefined alias", "A value that begins with * needs quotes."),
    ("could not determine a constructor", "A value that begins with ! needs quotes."),
    (
        "expected <block end>",
        "The line is not indented like the others of its block, or there is text after a closing "
        "quote. Use the same number of spaces.",
    ),
    (
        "escape",
        "In double quotes a backslash begins an escape such as \\n. Use single quotes, or "
        "write two backslashes.",
    ),
    ("expected ',' or", "An opening bracket is not closed, or a comma is missing after it."),
    (
        "but found another document",
        "A second document begins (`---`), but Hermes reads only files with one.",
    ),
)


def _second_document(lines: list[str]) -> int | None:
    seen = False
    for number, line in enumerate(lines, 1):
        if _START.match(line) and seen:
            return number
        seen = seen or (bool(line.strip()) and not line.lstrip().startswith("#"))
    return None


def _error(text: str) -> yaml.MarkedYAMLError | None:
    try:
        yaml.load(text, config_yaml.loader_for(text))
    except Exception as error:  # noqa: BLE001 (PyYAML raises nearly anything)
        return error if isinstance(error, yaml.MarkedYAMLError) else None
    return None


def _at_the_top(fault: ParseError) -> YamlMistake | None:
    if "is a list at the top" in fault.what:
        return YamlMistake(
            "The file begins with a dash. Settings are `name: value`, without a dash.", 1
        )
    if "at the top" in fault.what:
        return YamlMistake("The first name has no colon after it. Settings are `name: value`.", 1)
    return None


_QUOTES = {"“": "”", "‘": "’", "„": "“", "«": "»", "”": "”", "’": "’"}


class Lookalike(NamedTuple):
    """A name or value with such characters. `value` may be a secret."""

    path: Path
    line: int
    blank: bool
    """True for a blank before a name, false for quotes around a value."""
    value: str = ""
    """The value without the quotes."""


def lookalikes(document: Document) -> Iterator[Lookalike]:
    """Yield each name or value with lookalike characters; the file must parse."""
    for path, place in document.keys.items():
        if str(path[-1]).startswith(tuple(BLANKS)):
            yield Lookalike(path, place.line, True)
    for path, place in document.places.items():
        value = document.value(path)
        if isinstance(value, str) and len(value) > 2 and _QUOTES.get(value[0]) == value[-1]:
            inside = value[1:-1]
            if not any(char.isspace() for char in inside):
                yield Lookalike(path, place.line, False, inside)


def without_blanks(data: bytes) -> bytes | None:
    """Replace odd blanks before names by spaces; None if the result does not parse."""
    made = plain_spaces(data.decode("utf-8")).encode()
    return made if config_yaml.parse(made)[0] else None
