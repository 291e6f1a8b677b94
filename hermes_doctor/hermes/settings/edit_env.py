"""Edit .env line by line, so that both of Hermes' parsers read the intended values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hermes_doctor.core import redaction
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.settings.edits import Assign, EnvEdit, ReplaceLine, Unset

Reader = Callable[[bytes], Sequence["dict[str, str]"]]
"""Reads .env as each of Hermes' parsers does."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@+,=~%*-]*")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_ENDING = re.compile(r"[\r\n]*$")
_SET = re.compile(r"[^\S\r\n]*(?:export[^\S\r\n]+)?(?P<name>[^=\s]+)[^\S\r\n]*=[^\S\r\n]*")
_COMMENT = re.compile(r"[^\S\r\n]+(#[^\r\n]*)$")
MARK = "\ufeff"


class _Statement(NamedTuple):
    """A variable and its position in the text, in whole lines with their endings."""

    name: str
    start: int
    end: int
    value: str


def apply_edits(data: bytes, edits: Sequence[EnvEdit], read: Reader) -> bytes:
    """Return the edited file; CannotFix unless both parsers then read what was intended."""
    content = data.decode("utf-8", "surrogateescape")
    if "\0" in content:
        raise CannotFix(".env contains NUL bytes. Repair its encoding first.")
    for edit in edits:
        if isinstance(edit, ReplaceLine):
            content = _mended(content, edit)
        elif isinstance(edit, Unset):
            content = _without(content, edit.name)
        else:
            content = _assigned(content, edit, read)
    made = content.encode("utf-8", "surrogateescape")
    _refuse_else(data, made, edits, read)
    return made


def _refuse_else(before: bytes, after: bytes, edits: Sequence[EnvEdit], read: Reader) -> None:
    """Raise CannotFix if a variable that was not named has changed.

    An edit that replaces a line decides about the variables on it, and may reveal others that the
    broken line had swallowed; variables that were read before must stay the same.
    """
    named, mends = set[str](), False
    for edit in edits:
        if isinstance(edit, ReplaceLine):
            mends = True
            for content in (edit.old, edit.new):
                named |= {
                    n for one in read(content.encode("utf-8", "surrogateescape")) for n in one
                }
        else:
            named.add(edit.name)
    for old, new in zip(read(before), read(after), strict=True):
        every = {*old} if mends else {*old, *new}
        moved = {name for name in every - named if old.get(name) != new.get(name)}
        if moved:
            raise CannotFix(
                "{name} in .env depends on it. Change both by hand.", name=sorted(moved)[0]
            )


def _statements(content: str) -> Iterator[_Statement]:
    """Yield the variables as python-dotenv finds them; a value may span several lines."""
    from io import StringIO

    from dotenv.parser import parse_stream

    at = len(content) - len(content.removeprefix(MARK))
    for binding in parse_stream(StringIO(content[at:], newline="")):
        string = binding.original.string
        blank = len(string) - len(string.lstrip())
        start = at + max(string.rfind(end, 0, blank) for end in "\r\n") + 1
        if binding.key is not None and binding.value is not None:
            yield _Statement(binding.key, start, at + len(string), binding.value)
        at += len(string)


def _assigned(content: str, edit: Assign, read: Reader) -> str:
    if not _NAME.fullmatch(edit.name):
        raise CannotFix(
            "{name} is not a valid name of a variable. Use another name.",
            name=redaction.redact_unless_variable(edit.name),
        )
    if not edit.value.isprintable() or not edit.value.isascii() or "${" in edit.value:
        raise CannotFix(
            "The value of {name} contains characters that .env cannot store. Change it by hand.",
            name=edit.name,
        )
    statements = [statement for statement in _statements(content) if statement.name == edit.name]
    if statements and _value(read, content, edit.name) == {edit.value}:
        return content
    for form in _forms(edit.value):
        made = (
            _set(content, statements[-1], form)
            if statements
            else _appended(content, f"{edit.name}={form}")
        )
        if _value(read, made, edit.name) == {edit.value}:
            return made
    raise CannotFix("{name} is written in an unusual way. Change it by hand.", name=edit.name)


def _value(read: Reader, content: str, name: str) -> set[str | None]:
    """Return what the parsers read; one element if they agree."""
    return {one.get(name) for one in read(content.encode("utf-8", "surrogateescape"))}


def _forms(value: str) -> Iterator[str]:
    """Yield the ways to write a value, the plainest first."""
    if _PLAIN.fullmatch(value):
        yield value
    if not set(value) & set("\"\\'"):
        yield f'"{value}"'
        yield f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    yield f'"{escaped}"'


def _set(content: str, found: _Statement, said: str) -> str:
    """Change the value of one statement; a comment after it moves to a line of its own."""
    lines = content[found.start : found.end]
    head = _SET.match(lines)
    if head is None or head["name"].strip("'\"") != found.name:
        raise CannotFix(
            "{name} shares its line with something else. Change it by hand.", name=found.name
        )
    ending = _ENDING.search(lines)
    assert ending is not None
    rest = lines[head.end() : ending.start()]
    comment = _COMMENT.search(rest)
    if comment and rest[0] in "'\"" and rest.count(rest[0], 0, comment.start()) < 2:
        comment = None  # it is inside quotes
    above = comment[1] + (ending[0] or "\n") if comment else ""
    return content[: found.start] + above + head[0] + said + ending[0] + content[found.end :]


def _appended(content: str, line: str) -> str:
    first = _LINE.match(content.removeprefix(MARK))
    ending = _ENDING.search(first[0]) if first else None
    newline = (ending[0] if ending else "") or "\n"
    gap = "" if content in ("", MARK) or content.endswith(("\n", "\r")) else newline
    return content + gap + line + newline


def _without(content: str, name: str) -> str:
    for statement in reversed([one for one in _statements(content) if one.name == name]):
        if _SET.match(content[statement.start : statement.end]) is None:
            raise CannotFix(
                "{name} shares its line with something else. Change it by hand.", name=name
            )
        content = content[: statement.start] + content[statement.end :]
    return content


def _mended(content: str, edit: ReplaceLine) -> str:
    start = len(content) - len(content.removeprefix(MARK))
    for number, match in enumerate(_LINE.finditer(content, start), 1):
        if number != edit.line:
            continue
        ending = _ENDING.search(match[0])
        assert ending is not None
        if match[0][: ending.start()] != edit.old:
            break
        new = edit.new.replace("\n", ending[0] or "\n")
        return content[: match.start()] + new + ending[0] + content[match.end() :]
    raise CannotFix("Line {line} of .env has changed. Run the check again.", line=edit.line)
