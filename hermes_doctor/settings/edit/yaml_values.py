"""How a value is written in YAML, and whether it is read back as the same."""

from __future__ import annotations

import re
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*")
_WIDE = 1 << 20


class _Indented(yaml.SafeDumper):
    """Items of a list stand two further in than its key, as most people write it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def scalar(value: Any, style: str | None = None) -> str:
    """A plain value on one line, quoted as the one before it where it is text."""
    if not isinstance(value, str):
        return _dumped(value, flow=True)
    if style == "'" and "'" not in value and value.isprintable():
        return f"'{value}'"
    if style != '"' and _PLAIN.fullmatch(value) and _is_text(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if value.isprintable() else _quoted(value)


def flow(value: Any) -> str:
    """Any value on one line."""
    return scalar(value) if not isinstance(value, dict | list) else _dumped(value, flow=True)


def block(value: Any) -> list[str]:
    """A mapping or a list as lines."""
    return _dumped(value, flow=False).split("\n")


def _dumped(value: Any, *, flow: bool) -> str:
    said: str = yaml.dump(
        value,
        Dumper=_Indented,
        default_flow_style=flow,
        allow_unicode=True,
        width=_WIDE,
        sort_keys=False,
    )
    return said.removesuffix("...\n").rstrip("\n")


def _quoted(value: str) -> str:
    said: str = yaml.dump(value, Dumper=yaml.SafeDumper, default_style='"', width=_WIDE)
    return said.rstrip("\n")


def _is_text(value: str) -> bool:
    """Whether YAML takes it for text and not for a number, a switch or a date."""
    return isinstance(yaml.safe_load(value), str)


def same(one: Any, two: Any) -> bool:
    """Whether two readings are the same to the last type: 1, 1.0 and true are three things."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return list(map(repr, one)) == list(map(repr, two)) and all(
            same(one[key], two[key]) for key in one
        )
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two or (one != one and two != two))  # not a number
