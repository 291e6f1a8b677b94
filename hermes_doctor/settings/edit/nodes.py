"""The nodes of a YAML text: where each really begins and ends."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from hermes_doctor.model import CannotFix
from hermes_doctor.settings import config_file
from hermes_doctor.settings.edit.edits import Path

MARK = "\ufeff"


class Nodes:
    """One text, taken apart. Positions are those of the text, a byte order mark counted."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._mark = len(text) - len(text.removeprefix(MARK))
        loader = config_file.loader_for(text)(text[self._mark :])
        try:
            self.root: yaml.Node | None = loader.get_single_node()
        except yaml.YAMLError as error:
            raise CannotFix("config.yaml does not parse") from error
        finally:
            loader.dispose()
        self._used = self._uses()

    def find(self, path: Path) -> yaml.Node | None:
        """The node that counts for a path; of a key that stands twice, the last one."""
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
        """Every pair of a mapping that has this key."""
        return [
            (key, value)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode) and key.value == name
        ]

    def start(self, node: yaml.Node) -> int:
        """Where a node begins, its anchor and tag counted."""
        return int(node.start_mark.index) + self._mark

    def end(self, node: yaml.Node) -> int:
        """Where what is written of a node ends; the parser counts what follows it, too."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            ends = [self.end(one) for one in (last if isinstance(last, tuple) else (last,))]
            return max(ends)
        end = int(node.end_mark.index) + self._mark
        if is_block_text(node):
            return self.start(node) + len(self.text[self.start(node) : end].rstrip(" \t\r\n"))
        return end

    def column(self, node: yaml.Node) -> int:
        """How far a node is indented."""
        return int(node.start_mark.column)

    def line_start(self, position: int) -> int:
        """Where the line of a position begins."""
        found = max(self.text.rfind(mark, 0, position) for mark in "\r\n") + 1
        return max(found, self._mark)

    def line_end(self, position: int) -> int:
        """Where the line of a position ends, its ending not counted."""
        ends = [self.text.find(mark, position) for mark in "\r\n"]
        return min((end for end in ends if end >= 0), default=len(self.text))

    def after_line(self, position: int) -> int:
        """Where the next line begins."""
        end = self.line_end(position)
        return end + len(ending_at(self.text, end))

    def newline(self) -> str:
        """How the lines of this file end."""
        return ending_at(self.text, self.line_end(0)) or "\n"

    def _uses(self) -> dict[int, int]:
        """How often each node is used: more than once is an anchor with its aliases."""
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
                f"{path[0] if path else 'config.yaml'} is written once and used in several places "
                "(an anchor): change it by hand"
            )


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def is_block_text(node: yaml.Node) -> bool:
    """Whether a text is written over several lines after `|` or `>`."""
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def is_empty(node: yaml.Node) -> bool:
    """Whether nothing at all is written for a value."""
    same = node.start_mark.index == node.end_mark.index
    return isinstance(node, yaml.ScalarNode) and not node.style and same


def ending_at(text: str, position: int) -> str:
    """The line ending that stands there."""
    return "\r\n" if text.startswith("\r\n", position) else text[position : position + 1]
