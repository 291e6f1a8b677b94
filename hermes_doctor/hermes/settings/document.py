"""Parse config.yaml as the gateway does, with the position of every key and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.settings.config_yaml import ConfigFile, ParseError
from hermes_doctor.hermes.settings.sourced_text import CONFIG, Source, Text

Path = tuple[str | int, ...]
_MOST_NODES = 200_000
_STRING = "tag:yaml.org,2002:str"


class Place(NamedTuple):
    """The position of a key or a value: line and column from 1, and its characters in the text."""

    line: int
    column: int
    start: int
    end: int


class Duplicate(NamedTuple):
    """A key that occurs more than once in a mapping; the last one is used."""

    path: Path
    lines: tuple[int, ...]
    same: bool
    """Whether its value is the same each time."""


class Document:
    """A parsed YAML file. `values` is empty if there is a `fault`, as for Hermes."""

    def __init__(
        self, data: bytes, file: str = config_yaml.NAME, parsed: ConfigFile | None = None
    ) -> None:
        self.data = data
        self.file = file
        self.values: Mapping[Any, Any] = {}
        self.duplicates: list[Duplicate] = []
        self.places: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self.fault = parsed.fault if parsed else config_yaml.parse(data)[1]
        if self.fault is None:
            self._read(parsed.root if parsed else None)

    def source(self, *path: str | int) -> Source:
        """Return the position of a value as a source; if it is not set, that of its parent."""
        here = path
        while here and here not in self.places:
            here = here[:-1]
        at = self.keys.get(here) or self.places.get(here)
        return Source(CONFIG, dotted_path(path), self.file, at.line if at else None)

    def text(self, name: str) -> tuple[Path, str | None]:
        """Return the path of a setting named in an answer, and its text."""
        path = next((path for path in self.places if dotted_path(path) == name), ())
        value = self.value(path)
        if value is None:
            return (), None
        return path, value if isinstance(value, str) else None

    def value(self, path: Path) -> Any:
        """Return the value at a path; None if there is none, as below a key that is not text."""
        here: Any = self.values
        try:
            for part in path:
                here = here[part]
        except (KeyError, IndexError, TypeError):
            return None
        return here

    def _read(self, root: yaml.Node | None) -> None:
        text = self.data.decode("utf-8")
        self._mark = len(text) - len(text.removeprefix("\ufeff"))
        self._text = text
        try:
            root = root or config_yaml.compose(text)
            if root is None:
                return
            names: dict[int, Path] = {}
            self._walk(root, names)
            self.values = _Values(names, self).of(root)
        except RecursionError:
            self.fault = ParseError("refers to itself")
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (PyYAML raises nearly anything)
            self.fault = ParseError(
                f"contains a value that YAML cannot build ({type(error).__name__})"
            )

    def _walk(self, root: yaml.Node, names: dict[int, Path]) -> None:
        """Record the position of every node; an alias keeps the position of its anchor."""
        left: list[tuple[yaml.Node, Path]] = [(root, ())]
        while left and len(names) < _MOST_NODES:
            node, path = left.pop()
            self.places[path] = self._place(node)
            if id(node) in names:
                continue
            names[id(node)] = path
            if isinstance(node, yaml.SequenceNode):
                left += [(one, (*path, number)) for number, one in enumerate(node.value)]
            elif isinstance(node, yaml.MappingNode):
                left += self._pairs(node, path)

    def _pairs(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[yaml.Node, Path]]:
        seen: dict[str, list[tuple[yaml.Node, yaml.Node]]] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                seen.setdefault(str(key.value), []).append((key, value))
        for name, pairs in seen.items():
            key, value = pairs[-1]
            self.keys[(*path, name)] = self._place(key)
            yield value, (*path, name)
            if len(pairs) > 1 and name != "<<":
                lines = tuple(key.start_mark.line + 1 for key, _ in pairs)
                same = all(_alike(pairs[-1][1], value) for _, value in pairs[:-1])
                self.duplicates.append(Duplicate((*path, name), lines, same))

    def _place(self, node: yaml.Node) -> Place:
        start, end = node.start_mark, node.end_mark
        first, last = start.index + self._mark, end.index + self._mark
        return Place(start.line + 1, start.column + 1, first, last)

    def span(self, place: Place) -> tuple[int, int]:
        """Return the byte range of a position, for an edit that changes nothing else."""
        return len(self._text[: place.start].encode()), len(self._text[: place.end].encode())


class _Values(yaml.constructor.SafeConstructor):
    """Builds the values as PyYAML does, but every text remembers its position."""

    def __init__(self, names: dict[int, Path], document: Document) -> None:
        super().__init__()
        self.names = names
        self.document = document

    def of(self, root: yaml.Node) -> Mapping[Any, Any]:
        built: Any = self.construct_document(root)
        return built if isinstance(built, dict) else {}

    def text(self, node: yaml.ScalarNode) -> str:
        value: str = self.construct_scalar(node)
        path = self.names.get(id(node))
        if path is None:  # a key
            return value
        line = node.start_mark.line + 1
        return Text(value, Source(CONFIG, dotted_path(path), self.document.file, line))


_Values.add_constructor(_STRING, _Values.text)  # type: ignore[type-var]


def _alike(one: Any, other: Any) -> bool:
    """Tell whether two nodes are equal, comparing a limited number of nodes."""
    left: list[tuple[Any, Any]] = [(one, other)]
    while left and len(left) < _MOST_NODES:
        a, b = left.pop()
        if type(a) is not type(b):
            return False
        if a is b:
            continue
        if isinstance(a, yaml.Node):
            left += [(a.tag, b.tag), (a.value, b.value)]
        elif isinstance(a, list | tuple):
            if len(a) != len(b):
                return False
            left += zip(a, b, strict=True)
        elif a != b:
            return False
    return not left


def display_path(path: Path) -> str:
    """Return a path for display; parts that look like a key or token are redacted."""
    from hermes_doctor.core import redaction

    return redaction.redact_words(dotted_path(path))


def dotted_path(path: Path) -> str:
    """Return a path in the usual dotted notation."""
    said = ""
    for part in path:
        said += f"[{part}]" if isinstance(part, int) else f".{part}" if said else part
    return said
