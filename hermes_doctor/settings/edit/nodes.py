"""Find the exact start and end of the nodes in a YAML text."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.settings import config_file
from hermes_doctor.settings.edit.edits import Path
from hermes_doctor.settings.fast_yaml import yaml

MARK = "\ufeff"


class Nodes:
    """The YAML nodes of one text, with positions that include a byte order mark."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._mark = len(text) - len(text.removeprefix(MARK))
        loader = config_file.loader_for(text)(text[self._mark :])
        try:
            self.root: yaml.Node | None = loader.get_single_node()
        except yaml.YAMLError as error:
            raise CannotFix("config.yaml does not parse. Repair that first.") from error
        finally:
            loader.dispose()
        self._used = self._uses()

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

    def _uses(self) -> dict[int, int]:
        """Count how often each node is used; more than once means an anchor with aliases."""
        found: dict[int, int] = {}
        left = [self.root] if self.root else []
        while left:
            node = left.pop()
            found[id(node)] = found.get(id(node), 0) + 1
            if found[id(node)] == 1:
                left += list(_children(node))
        return found

    def _refuse_shared(self, node: yaml.Node | None, path: Path) -> None:
        if node is not None and self._used.get(id(node), 0) > 1:
            raise CannotFix(
                text(
                    "{name} is written once and used in several places (an anchor). Change it by "
                    "hand.",
                    name=path[0] if path else "config.yaml",
                )
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
