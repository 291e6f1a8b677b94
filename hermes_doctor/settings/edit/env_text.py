"""Edit .env line by line, so that both of Hermes' parsers read the intended values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hermes_doctor import redaction
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CannotFix
from hermes_doctor.settings.edit.edits import Assign, EnvEdit, ReplaceLine, Unset

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
    text = data.decode("utf-8", "surrogateescape")
    if "\0" in text:
        raise CannotFix(".env holds NUL bytes; mend its encoding first")
    for edit in edits:
        if isinstance(edit, ReplaceLine):
            text = _mended(text, edit)
        elif isinstance(edit, Unset):
            text = _without(text, edit.name)
        else:
            text = _assigned(text, edit, read)
    made = text.encode("utf-8", "surrogateescape")
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
            for text in (edit.old, edit.new):
                named |= {n for one in read(text.encode("utf-8", "surrogateescape")) for n in one}
        else:
            named.add(edit.name)
    for old, new in zip(read(before), read(after), strict=True):
        every = {*old} if mends else {*old, *new}
        moved = {name for name in every - named if old.get(name) != new.get(name)}
        if moved:
            raise CannotFix(f".env: {sorted(moved)[0]} depends on it; change both by hand")


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the variables as python-dotenv finds them; a value may span several lines."""
    from io import StringIO

    from dotenv.parser import parse_stream

    at = len(text) - len(text.removeprefix(MARK))
    for binding in parse_stream(StringIO(text[at:], newline="")):
        said = binding.original.string
        blank = len(said) - len(said.lstrip())
        start = at + max(said.rfind(end, 0, blank) for end in "\r\n") + 1
        if binding.key is not None and binding.value is not None:
            yield _Statement(binding.key, start, at + len(said), binding.value)
        at += len(said)


def _assigned(text: str, edit: Assign, read: Reader) -> str:
    if not _NAME.fullmatch(edit.name):
        raise CannotFix(
            f"{redaction.redact_unless_variable(edit.name)} cannot be the name of a variable"
        )
    if not edit.value.isprintable() or not edit.value.isascii() or "${" in edit.value:
        raise CannotFix(f"the value for {edit.name} holds what .env cannot take as it is")
    found = [one for one in _statements(text) if one.name == edit.name]
    if found and _value(read, text, edit.name) == {edit.value}:
        return text
    for said in _forms(edit.value):
        made = _set(text, found[-1], said) if found else _appended(text, f"{edit.name}={said}")
        if _value(read, made, edit.name) == {edit.value}:
            return made
    raise CannotFix(f"{edit.name} is written in a way that only a person should change")


def _value(read: Reader, text: str, name: str) -> set[str | None]:
    """Return what the parsers read; one element if they agree."""
    return {one.get(name) for one in read(text.encode("utf-8", "surrogateescape"))}


def _forms(value: str) -> Iterator[str]:
    """Yield the ways to write a value, the plainest first."""
    if _PLAIN.fullmatch(value):
        yield value
    if not set(value) & set("\"\\'"):
        yield f'"{value}"'
        yield f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    yield f'"{escaped}"'


def _set(text: str, found: _Statement, said: str) -> str:
    """Change the value of one statement; a comment after it moves to a line of its own."""
    lines = text[found.start : found.end]
    head = _SET.match(lines)
    if head is None or head["name"].strip("'\"") != found.name:
        raise CannotFix(f"{found.name} shares its line with something else")
    ending = _ENDING.search(lines)
    assert ending is not None
    rest = lines[head.end() : ending.start()]
    comment = _COMMENT.search(rest)
    if comment and rest[0] in "'\"" and rest.count(rest[0], 0, comment.start()) < 2:
        comment = None  # it is inside quotes
    above = comment[1] + (ending[0] or "\n") if comment else ""
    return text[: found.start] + above + head[0] + said + ending[0] + text[found.end :]


def _appended(text: str, line: str) -> str:
    first = _LINE.match(text.removeprefix(MARK))
    ending = _ENDING.search(first[0]) if first else None
    newline = (ending[0] if ending else "") or "\n"
    gap = "" if text in ("", MARK) or text.endswith(("\n", "\r")) else newline
    return text + gap + line + newline


def _without(text: str, name: str) -> str:
    for one in reversed([one for one in _statements(text) if one.name == name]):
        if _SET.match(text[one.start : one.end]) is None:
            raise CannotFix(f"{name} shares its line with something else")
        text = text[: one.start] + text[one.end :]
    return text


def _mended(text: str, edit: ReplaceLine) -> str:
    start = len(text) - len(text.removeprefix(MARK))
    for number, match in enumerate(_LINE.finditer(text, start), 1):
        if number != edit.line:
            continue
        ending = _ENDING.search(match[0])
        assert ending is not None
        if match[0][: ending.start()] != edit.old:
            break
        new = edit.new.replace("\n", ending[0] or "\n")
        return text[: match.start()] + new + ending[0] + text[match.end() :]
    raise CannotFix(f"line {edit.line} of .env is no longer what it was")
