"""Write values as YAML, and compare values with their types."""

from __future__ import annotations

import re
from typing import Any

from hermes_doctor.settings.fast_yaml import yaml

_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*")
_WIDE = 1 << 20


class _Indented(yaml.SafeDumper):
    """Indents list items by two spaces below their key, as most people do."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def scalar(value: Any, style: str | None = None) -> str:
    """Write a plain value on one line; a text keeps the previous quoting style."""
    if not isinstance(value, str):
        return _dumped(value, flow=True)
    if style == "'" and "'" not in value and value.isprintable():
        return f"'{value}'"
    if style != '"' and _PLAIN.fullmatch(value) and _is_text(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if value.isprintable() else _quoted(value)


def flow(value: Any) -> str:
    """Write any value on one line."""
    return scalar(value) if not isinstance(value, dict | list) else _dumped(value, flow=True)


def block(value: Any) -> list[str]:
    """Write a mapping or a list as lines."""
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
    """Tell whether YAML reads it as text, not as a number, a boolean or a date."""
    return isinstance(yaml.safe_load(value), str)


def is_same(first: Any, second: Any) -> bool:
    """Tell whether two values are equal including their types: 1, 1.0 and true differ."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(map(repr, first)) == list(map(repr, second)) and all(
            is_same(first[key], second[key]) for key in first
        )
    if isinstance(first, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    return bool(first == second or (first != first and second != second))  # not a number
