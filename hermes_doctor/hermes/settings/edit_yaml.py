"""Edit a YAML text by replacing exact spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.settings import config_yaml, yaml_nodes
from hermes_doctor.hermes.settings.document import dotted_path
from hermes_doctor.hermes.settings.edits import (
    ConfigEdit,
    Drop,
    Path,
    Put,
    Rename,
    apply_to_values,
)
from hermes_doctor.hermes.settings.yaml_nodes import MARK, Nodes, is_empty


def apply_edits(data: bytes, edits: Sequence[ConfigEdit], name: str = config_yaml.NAME) -> bytes:
    """Return the edited file; CannotFix unless it then has exactly the intended settings."""
    values, fault = config_yaml.parse(data)
    if fault is not None:
        raise CannotFix("{file} does not parse. Repair that first.", file=name)
    wanted = apply_to_values(values, edits)
    content = data.decode("utf-8")
    for edit in edits:
        content = _done(content, edit)
    made = content.encode("utf-8")
    now, fault = config_yaml.parse(made)
    if fault is not None or not yaml_nodes.is_same(apply_to_values(now, ()), wanted):
        names = ", ".join(dotted_path(edit.path) for edit in edits)
        raise CannotFix("{names} is written in an unusual way. Change it by hand.", names=names)
    return made


def holds_comments(data: bytes, path: Path) -> bool:
    """Tell whether a block contains comments, or anything that looks like one."""
    if config_yaml.parse(data)[1] is not None:
        return False
    nodes = Nodes(data.decode("utf-8"))
    node = nodes.find(path)
    if not isinstance(node, yaml.CollectionNode):
        return False
    first = _key(nodes, path) if isinstance(path[-1], str) else node
    written = nodes.text[nodes.start(first) : nodes.line_end(nodes.end(node))]
    return re.search(r"(?m)(?:^|\s)#", written) is not None


def _done(content: str, edit: ConfigEdit) -> str:
    if isinstance(edit, Put):
        return _put(Nodes(content), edit.path, edit.value)
    if isinstance(edit, Rename):
        nodes = Nodes(content)
        above = nodes.find(edit.path[:-1])
        if nodes.find(edit.path) is None or not isinstance(above, yaml.MappingNode):
            return nodes.text
        key = _key(nodes, edit.path)
        said = yaml_nodes.scalar(edit.new, key.style)
        return nodes.text[: nodes.start(key)] + said + nodes.text[nodes.end(key) :]
    nodes = Nodes(content)
    while nodes.find(edit.path) is not None:
        content = _dropped(nodes, edit)
        if isinstance(edit.path[-1], int):
            break
        nodes = Nodes(content)  # a key may occur twice
    return content


def _put(nodes: Nodes, path: Path, value: Any) -> str:
    node = nodes.find(path)
    if node is None:
        return _added(nodes, path, value)
    if _reads_as(node, value):
        return nodes.text
    start, end = nodes.start(node), nodes.end(node)
    lines = isinstance(value, dict | list) and value and isinstance(path[-1], str)
    if lines and _is_block(nodes, path) and _is_alone(nodes, node):
        return _laid_out(nodes, path, node, value)
    style = node.style if isinstance(node, yaml.ScalarNode) and node.style in ("'", '"') else None
    said = (
        yaml_nodes.flow(value)
        if isinstance(value, dict | list)
        else yaml_nodes.scalar(value, style)
    )
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and isinstance(path[-1], str):
        colon = nodes.text.index(":", nodes.end(_key(nodes, path))) + 1
        kept = nodes.text[colon : nodes.start(node)].rstrip(" \t\r\n")
        return f"{nodes.text[:colon]} {said}{kept}{nodes.text[nodes.end(node) :]}"
    gap = " " if is_empty(node) else ""
    return nodes.text[:start] + gap + said + nodes.text[end:]


def _key(nodes: Nodes, path: Path) -> yaml.ScalarNode:
    """Return the key node of the pair that is used."""
    above = nodes.find(path[:-1])
    assert isinstance(above, yaml.MappingNode)
    key: yaml.ScalarNode = nodes.pairs(above, str(path[-1]))[-1][0]
    return key


def _reads_as(node: yaml.Node, value: Any) -> bool:
    """Tell whether the value is already set, so that not even its quotes are changed."""
    constructor = yaml.constructor.SafeConstructor()
    try:
        return yaml_nodes.is_same(constructor.construct_document(node), value)
    except (yaml.YAMLError, ValueError):
        return False


def _laid_out(nodes: Nodes, path: Path, node: yaml.Node, value: Any) -> str:
    """Write a value as lines of its own under its key."""
    start, end = nodes.start(node), nodes.end(node)
    before = nodes.text[:start].rstrip(" \t\r\n")
    indent = _column(nodes, path) + (2 if isinstance(path[-1], str) else 0)
    if not value or isinstance(path[-1], int):
        return (
            nodes.text[:start]
            + (" " if is_empty(node) else "")
            + yaml_nodes.flow(value)
            + (nodes.text[end:])
        )
    if nodes.text[len(before) : start].strip(" \t"):  # it already has lines of its own
        said = _lines(nodes, value, nodes.column(node)).lstrip(" ")
        return nodes.text[:start] + said + nodes.text[end:]
    said = nodes.newline() + _lines(nodes, value, indent)
    return before + said + nodes.text[end:]


def _lines(nodes: Nodes, value: Any, indent: int) -> str:
    margin = " " * indent
    return nodes.newline().join(margin + line if line else line for line in yaml_nodes.block(value))


def _column(nodes: Nodes, path: Path) -> int:
    """Return the indentation of a path's key."""
    above = nodes.find(path[:-1])
    if isinstance(above, yaml.MappingNode) and above.value:
        return nodes.column(above.value[0][0])
    return nodes.column(above) if above is not None else 0


def _is_block(nodes: Nodes, path: Path) -> bool:
    """Tell whether everything above a path is in block style, not in braces."""
    above = [nodes.find(path[:n]) for n in range(len(path))]
    return not any(isinstance(one, yaml.CollectionNode) and one.flow_style for one in above)


def _is_alone(nodes: Nodes, node: yaml.Node) -> bool:
    """Tell whether nothing, such as a comment, follows on the last line of a node."""
    end = nodes.end(node)
    return not nodes.text[end : nodes.line_end(end)].strip()


# -- adding ---------------------------------------------------------------------------------


def _added(nodes: Nodes, path: Path, value: Any) -> str:
    place = len(path) - 1
    while place and nodes.find(path[:place]) is None:
        place -= 1
    for part in reversed(path[place + 1 :]):
        if not isinstance(part, str):
            raise CannotFix(
                "{setting} cannot be added, because its parent is not a list. Change it by hand.",
                setting=dotted_path(path),
            )
        value = {part: value}
    above, part = nodes.find(path[:place]), path[place]
    if above is None:
        content = nodes.text
        gap = "" if content in ("", MARK) or content.endswith(("\n", "\r")) else nodes.newline()
        return content + gap + _lines(nodes, {part: value}, 0) + nodes.newline()
    if isinstance(above, yaml.ScalarNode):
        if above.value not in ("", "null", "~", "Null", "NULL") or above.style or not place:
            raise CannotFix(
                "{setting} is a plain value, not a section. Change it by hand.",
                setting=dotted_path(path[:place]),
            )
        return _put(nodes, path[:place], {part: value})
    if not isinstance(above, yaml.CollectionNode):
        raise CannotFix(
            "Nothing can be added to {setting}. Change it by hand.",
            setting=dotted_path(path[:place]),
        )
    pair = {part: value} if isinstance(above, yaml.MappingNode) else [value]
    if above.flow_style or not above.value:
        said = yaml_nodes.flow(pair)[1:-1]
        if above.value:
            last = above.value[-1]
            at = max(nodes.end(one) for one in (last if isinstance(last, tuple) else (last,)))
            return nodes.text[:at] + ", " + said + nodes.text[at:]
        at = nodes.end(above) - 1
        return nodes.text[:at] + said + nodes.text[at:]
    return _below(nodes, above, pair)


def _below(nodes: Nodes, above: yaml.CollectionNode, pair: Any) -> str:
    """Add a key or an item after the last one, with the same indentation."""
    first = above.value[0]
    indent = nodes.column(first[0]) if isinstance(first, tuple) else nodes.column(above)
    at = nodes.line_end(nodes.end(above))
    return nodes.text[:at] + nodes.newline() + _lines(nodes, pair, indent) + nodes.text[at:]


def _dropped(nodes: Nodes, edit: Drop) -> str:
    above, part = nodes.find(edit.path[:-1]), edit.path[-1]
    assert isinstance(above, yaml.CollectionNode)
    content = nodes.text
    if len(above.value) == 1 and edit.path[:-1] and not above.flow_style:
        return _put(nodes, edit.path[:-1], {} if isinstance(above, yaml.MappingNode) else [])
    spans = [_span(nodes, one) for one in above.value]
    place = part if isinstance(part, int) else _last(above, str(part))
    start, end = spans[place]
    if above.flow_style:
        if place:
            return content[: spans[place - 1][1]] + content[end:]
        if len(spans) > 1:
            return content[:start] + content[spans[1][0] :]
        return content[:start] + content[end:]
    if isinstance(above, yaml.SequenceNode):
        start = content.rfind("-", 0, start)
    line = nodes.line_start(start)
    if not content[line:start].strip():
        return content[:line] + content[nodes.after_line(end) :]
    if place + 1 >= len(spans) or content[end : spans[place + 1][0]].strip():
        raise CannotFix(
            "{setting} shares its line with something else. Change it by hand.",
            setting=dotted_path(edit.path),
        )
    return content[:start] + content[spans[place + 1][0] :]


def _span(nodes: Nodes, one: Any) -> tuple[int, int]:
    first, last = one if isinstance(one, tuple) else (one, one)
    return nodes.start(first), max(nodes.end(first), nodes.end(last))


def _last(above: yaml.CollectionNode, name: str) -> int:
    return max(n for n, (key, _) in enumerate(above.value) if key.value == name)
