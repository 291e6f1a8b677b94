"""Reads one `config.toml`. A mistake is reported in one line, with the file and the line number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import Message, text
from hermes_doctor.core.model import Severity, Status, Trouble
from hermes_doctor.core.preferences import places

OFF = "off"
"""The severity of a code that is not reported."""
LANGUAGES = ("en",)
MUTES = ("root", "all")
"""Who may mute problems; only the file for all users may say it."""
Keys = tuple[str, ...]


class WrongValue(Exception):
    """A value is wrong; the text says what it must be."""


class ConfigFile(NamedTuple):
    """The contents of one file."""

    path: Path
    text: str
    values: Mapping[Keys, Any]
    """By the keys that lead to a value, such as ("watch", "interval")."""
    spelled: Mapping[Keys, Keys]
    """The same keys as the file has them: codes may be in small letters."""

    def origin(self, keys: Keys) -> str:
        """The file and line of a value."""
        return f"{self.path}:{_line_of(self.text, self.spelled[keys])}"


def load(path: Path) -> ConfigFile | None:
    """Read a file; None if there is none. Raise Trouble if anything in it is wrong."""
    data = places.read_trusted(path)
    if data is None:
        return None
    import tomllib

    try:
        content = data.decode()
        parsed = tomllib.loads(content)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Trouble("{path}:{line}: this is not UTF-8.", path=path, line=line) from None
    except (ValueError, RecursionError) as error:
        raise Trouble("{path}: not valid TOML: {error}.", path=path, error=error) from None
    values: dict[Keys, Any] = {}
    spelled: dict[Keys, Keys] = {}
    try:
        for keys, value in _read_table(parsed, _TOP, ()):
            if keys == ("mutes",) and path.parent != places.SYSTEM:
                only = text("mutes may only be set in {path}.", path=places.SYSTEM / places.CONFIG)
                raise _Mistake(keys, only)
            own = (*keys[:-1], keys[-1].upper()) if keys[-2:-1] == (_CODES,) else keys
            if own in values:
                raise _Mistake(keys, text("{key} is set twice.", key=shown(own)))
            values[own], spelled[own] = value, keys
    except _Mistake as mistake:
        line = _line_of(content, mistake.keys)
        raise Trouble("{path}:{line}: {what}", path=path, line=line, what=mistake.what) from None
    return ConfigFile(path, content, values, spelled)


# -- what a file may contain ----------------------------------------------------------------


def parse_fail_on(given: str) -> frozenset[str]:
    """Parse the words of `fail_on`: at most one severity, and `unknown` or `crashed`."""
    words = [word.strip().lower() for word in given.split(",") if word.strip()]
    known = [*Severity, Status.UNKNOWN, Status.CRASHED]
    severities = [word for word in words if word in [*Severity]]
    if not words or any(word not in known for word in words) or len(set(severities)) > 1:
        raise WrongValue(f"use one of {', '.join(Severity)}, and add unknown or crashed")
    return frozenset(words)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise WrongValue("needs a text in quotes")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise WrongValue('needs a list, such as ["first", "second"]')
    return [_text(one) for one in value]


def absolute_path(value: Any) -> Path:
    """A path that does not depend on the folder in which a command is run."""
    path = Path(_text(value))
    try:
        path = path.expanduser()
    except (RuntimeError, ValueError):
        raise WrongValue(f"could not find the home folder in {value}") from None
    if not path.is_absolute() or "\0" in str(path):
        raise WrongValue("needs an absolute path: one that starts with / or ~")
    return path


def _paths(value: Any) -> list[Path]:
    return [absolute_path(one) for one in _texts(value)]


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongValue("needs true or false")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1000:
        raise WrongValue("needs a number from 1 to 1000")
    return value


def _fail_on(value: Any) -> str:
    parse_fail_on(_text(value))
    return str(value)


def _who_may_mute(value: Any) -> str:
    if value not in MUTES:
        raise WrongValue('use "root" or "all"')
    return str(value)


def language(value: Any) -> str:
    """The language of the texts; so far there is one."""
    if value not in LANGUAGES:
        raise WrongValue(f"use {', '.join(LANGUAGES)}: there are no other languages yet")
    return str(value)


def _severity(value: Any) -> Severity | None:
    """The severity to report a code with; None if it is not reported."""
    if value == OFF:
        return None
    try:
        return Severity(value)
    except ValueError:
        raise WrongValue(f"use {', '.join(Severity)} or {OFF}") from None


Table = Mapping[str, Any]
_WATCH: Table = {
    **dict.fromkeys(("interval", "budget", "patience", "notify_on"), _text),
    **dict.fromkeys(("notify_command", "notify_webhook", "notify_hermes"), _text),
    **dict.fromkeys(("heartbeat", "heartbeat_fail"), _text),
    **dict.fromkeys(("also", "only", "skip"), _texts),
    **dict.fromkeys(("heal", "network"), _switch),
    "after": _number,
    "metrics": absolute_path,
}
_CODES = "severity"
_ANY = "*"
"""Stands for every key of a table."""
_SEVERITY: Table = {_ANY: _severity}
_HOME: Table = {
    "fail_on": _fail_on,
    "vault": absolute_path,
    _CODES: _SEVERITY,
    "watch": _WATCH,
}
_TOP: Table = {
    "home": absolute_path,
    "language": language,
    "plugins": _paths,
    "mutes": _who_may_mute,
    **_HOME,
    "homes": {_ANY: _HOME},
}
WATCH_KEYS = tuple(_WATCH)
SECRETS = frozenset({"notify_command", "notify_webhook", "heartbeat", "heartbeat_fail"})
"""Options of the watch whose value is not shown."""


# -- reading ---------------------------------------------------------------------------------


class _Mistake(Exception):
    def __init__(self, keys: Keys, what: Message) -> None:
        self.keys, self.what = keys, what
        super().__init__(what)


def _read_table(found: Mapping[str, Any], known: Table, above: Keys) -> Iterator[tuple[Keys, Any]]:
    """Yield the values of a table and of the tables in it, with their keys."""
    for name, value in found.items():
        keys = (*above, name)
        rule = known.get(name, known.get(_ANY))
        if rule is None:
            raise _Mistake(keys, _unknown(keys, known))
        if isinstance(rule, Mapping):
            if not isinstance(value, dict):
                raise _Mistake(keys, text("{key} needs a table: [{key}].", key=shown(keys)))
            if keys == ("homes",):
                _check_homes(value)
            yield from _read_table(value, rule, keys)
            continue
        read: Callable[[Any], Any] = rule
        try:
            yield keys, read(value)
        except WrongValue as wrong:
            raise _Mistake(keys, text("{key}: {reason}.", key=shown(keys), reason=wrong)) from None


def _check_homes(found: Mapping[str, Any]) -> None:
    """Raise _Mistake for a home without a whole path, or one that is there twice."""
    seen: set[Path] = set()
    for name in found:
        keys = ("homes", name)
        try:
            path = Path(os.path.realpath(absolute_path(name)))
        except WrongValue as wrong:
            raise _Mistake(keys, text("{key}: {reason}.", key=shown(keys), reason=wrong)) from None
        if path in seen:
            raise _Mistake(keys, text("{key}: this home is listed twice.", key=shown(keys)))
        seen.add(path)


def _unknown(keys: Keys, known: Sequence[str] | Table) -> Message:
    choices = did_you_mean(keys[-1], known) or f"Known here: {', '.join(known)}."
    return text("unknown key {key}. {choices}", key=shown(keys), choices=choices)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with the most similar known word; empty if none is similar."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return text("Did you mean {word}?", word=close[0]) if close else ""


def shown(keys: Keys) -> str:
    """The keys as TOML writes them."""
    return ".".join(
        key if key and key.replace("-", "").replace("_", "").isalnum() else f'"{key}"'
        for key in keys
    )


def _line_of(content: str, keys: Keys) -> int:
    """The line at which a value is complete: the lines up to it contain the key."""
    import tomllib

    lines = content.split("\n")
    named = [number for number, line in enumerate(lines) if keys[-1] in line]
    for first in named or range(len(lines)):
        for number in range(first + 1, len(lines) + 1):
            try:
                table = tomllib.loads("\n".join(lines[:number]))
            except (ValueError, RecursionError):
                continue  # in the middle of a value
            if _contains(table, keys):
                return number
            break
    return 1


def _contains(table: Any, keys: Keys) -> bool:
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            return False
        table = table[key]
    return True
