"""Parse the options of a full-text table's declaration, such as content and tokenizer."""

from __future__ import annotations

import re

from hermes_doctor.lazy import pattern

_STRING = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]"
_ARGUMENT = pattern(rf"(?P<name>\w+)\s*=\s*(?P<value>{_STRING}|\w+)|{_STRING}")
_START = pattern(r"\bUSING\s+fts5\b", re.IGNORECASE)
_BUILT_IN = frozenset({"unicode61", "ascii", "porter", "trigram"})
"""The tokenizers that every SQLite with FTS5 has."""


def options(sql: str) -> dict[str, str]:
    """The options of a CREATE VIRTUAL TABLE … USING fts5 statement, unquoted."""
    start = _START.search(sql)
    found: dict[str, str] = {}
    for argument in _ARGUMENT.finditer(sql, start.end() if start else 0):
        if argument["name"]:
            found.setdefault(argument["name"].lower(), _bare(argument["value"]))
    return found


def foreign_tokenizer(sql: str) -> str | None:
    """The tokenizer of a full-text table if an extension has to provide it."""
    words = [word.strip("'\"").lower() for word in options(sql).get("tokenize", "").split()]
    if words[:1] == ["porter"]:  # it wraps another tokenizer
        words = words[1:]
    return words[0] if words and words[0] not in _BUILT_IN else None


def _bare(value: str) -> str:
    quote = value[:1]
    if quote in ("'", '"', "`") and len(value) > 1:
        return value[1:-1].replace(quote * 2, quote)
    return value[1:-1] if quote == "[" else value
