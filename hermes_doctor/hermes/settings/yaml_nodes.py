"""Find the exact start and end of the nodes in a YAML text, and write values as YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.settings.edits import Path

MARK = "\ufeff"


class Nodes:
    """The YAML nodes of one text, with positions that include a byte order mark."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._mark = len(text) - len(text.removeprefix(MARK))
        try:
            self.root = config_yaml.compose(text)
        except yaml.YAMLError as error:
            raise CannotFix("config.yaml does not parse. Repair that first.") from error
        self._used: dict[int, int] = {}
        """How often each node is used; more than once means an anchor with aliases."""
        left = [self.root] if self.root else []
        while left:
            node = left.pop()
            self._used[id(node)] = self._used.get(id(node), 0) + 1
            if self._used[id(node)] == 1:
                left += list(_children(node))

    def find(self, path: Path) -> yaml.Node | None:
        """Return the node that is used for a path: the last one if a key occurs twice."""
        node = self.root
        for part in path:
            self._refuse_shared(node, path)
            if isinstance(node, yaml.MappingNode) and isinstance(part, str):
                pairs = self.pairs(node, part)
                node = pairs[-1][1] if pairs else None
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part] if 0 <= part < len(node.value) else None
            else:
                return None
        self._refuse_shared(node, path)
        return node

    def pairs(self, node: yaml.MappingNode, name: str) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """Return every pair of a mapping with this key."""
        return [
            (key, value)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode) and key.value == name
        ]

    def start(self, node: yaml.Node) -> int:
        """Return where a node starts, including its anchor and tag."""
        return int(node.start_mark.index) + self._mark

    def end(self, node: yaml.Node) -> int:
        """Return where a node's own text ends; the parser's end includes what follows."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            ends = [self.end(one) for one in (last if isinstance(last, tuple) else (last,))]
            return max(ends)
        end = int(node.end_mark.index) + self._mark
        if is_block_text(node):
            return self.start(node) + len(self.text[self.start(node) : end].rstrip(" \t\r\n"))
        return end

    def column(self, node: yaml.Node) -> int:
        """Return the indentation of a node."""
        return int(node.start_mark.column)

    def line_start(self, position: int) -> int:
        """Return where the line of a position starts."""
        found = max(self.text.rfind(mark, 0, position) for mark in "\r\n") + 1
        return max(found, self._mark)

    def line_end(self, position: int) -> int:
        """Return where the line of a position ends, without its line ending."""
        ends = [self.text.find(mark, position) for mark in "\r\n"]
        return min((end for end in ends if end >= 0), default=len(self.text))

    def after_line(self, position: int) -> int:
        """Return where the next line starts."""
        end = self.line_end(position)
        return end + len(ending_at(self.text, end))

    def newline(self) -> str:
        """Return the line ending of this file."""
        return ending_at(self.text, self.line_end(0)) or "\n"

    def _refuse_shared(self, node: yaml.Node | None, path: Path) -> None:
        if node is not None and self._used.get(id(node), 0) > 1:
            raise CannotFix(
                "{name} is written once and used in several places (an anchor). Change it by hand.",
                name=path[0] if path else "config.yaml",
            )


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def is_block_text(node: yaml.Node) -> bool:
    """Tell whether a text is written as a block after `|` or `>`."""
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def is_empty(node: yaml.Node) -> bool:
    """Tell whether a value is left empty."""
    same = node.start_mark.index == node.end_mark.index
    return isinstance(node, yaml.ScalarNode) and not node.style and same


def ending_at(text: str, position: int) -> str:
    """Return the line ending at a position."""
    return "\r\n" if text.startswith("\r\n", position) else text[position : position + 1]


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
    if style != '"' and _PLAIN.fullmatch(value) and isinstance(yaml.safe_load(value), str):
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
