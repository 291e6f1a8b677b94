"""Parse config.yaml as the gateway does; values remember where they were read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.redaction import redact_unless_variable
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.hermes.settings.config_yaml import ConfigFile, ParseError

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
            self.values = _Values(names, self).of(root)
        except RecursionError:
            self.fault = ParseError("refers to itself")
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (PyYAML raises nearly anything)
            self.fault = ParseError(
                f"contains a value that YAML cannot build ({type(error).__name__})"
            )

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


CONFIG, ENV, PROCESS, POOL, LOGIN, DEFAULT = (
    "config",
    "env",
    "process",
    "pool",
    "login",
    "default",
)


class Source(NamedTuple):
    """Where a value comes from."""

    kind: str
    """`config`, `env`, `process`, `pool`, `login` or `default`."""
    name: str
    """A path in config.yaml, a variable, an entry's label, or what the default belongs to."""
    file: str | None = None
    line: int | None = None
    via: Source | None = None
    """The source that the value refers to: the variable in `${NAME}` or `key_env`."""

    @property
    def place(self) -> str:
        """The file and line, or a description."""
        if self.file:
            return f"{self.file}:{self.line}" if self.line else self.file
        return "the gateway's environment" if self.kind == PROCESS else "built in"

    def __str__(self) -> str:
        where = f"{self.name} in {self.place}" if self.kind != DEFAULT else self.name
        return f"{where}, from {self.via}" if self.via else where


BUILT_IN = Source(DEFAULT, "built in")


class Text(str):
    """A text, possibly a secret, that remembers its source."""

    __slots__ = ("source",)
    source: Source

    def __new__(cls, value: str, source: Source = BUILT_IN) -> Text:
        sourced = super().__new__(cls, value)
        sourced.source = source
        return sourced

    def like(self, value: str) -> Text:
        """Return another text with the same source."""
        return Text(value, self.source)

    def without_slash(self) -> Text:
        """Return an address without slashes at its end."""
        return self.like(self.rstrip("/"))


def text(value: Any, source: Source = BUILT_IN) -> Text:
    """Convert a value to text as Hermes' `str(value or "")` does."""
    if isinstance(value, Text):
        return value
    return Text(str(value) if value else "", source)


def stripped_text(value: Any) -> Text:
    """Convert a value to text without surrounding spaces."""
    sourced = text(value)
    return sourced.like(sourced.strip())


class ResolvedValue(NamedTuple):
    """The value that is used, its source, and the values that it overrides."""

    value: str | None
    source: Source
    shadows: tuple[ResolvedValue, ...] = ()


class Key(NamedTuple):
    """A key or a token, described without its value."""

    name: str
    """Its variable, path or label."""
    source: Source
    state: str
    """`usable`, `placeholder`, `masked`, `unresolved`, `not needed` or `missing`."""
    fingerprint: str | None = None
    """Tells whether two keys are equal without revealing them."""
    shadows: tuple[Key, ...] = ()
    faults: tuple[str, ...] = ()
    """What is sent along with it but is not part of it: `comment`, `quotes`, `bearer`, …"""
    vendor: str | None = None
    """The issuer's domain, if its prefix shows it."""
    length: int = 0
    """How many characters it has."""


NO_KEY = Text("no-key-required", Source(DEFAULT, "no key"))


def missing_key(variable: str) -> Text:
    """Return what Hermes sends to a provider whose `key_env` names a variable that is not set."""
    source = NO_KEY.source._replace(via=Source(DEFAULT, redact_unless_variable(variable)))
    return Text(NO_KEY, source)


class Unresolved(Exception):
    """No provider can be used for this request."""

    def __init__(self, kind: str, why: str, *, falls_back: bool = True) -> None:
        super().__init__(why)
        self.kind = kind
        """`unknown`, `none`, `key`, `login`, `disabled`, `address` or `malformed`."""
        self.falls_back = falls_back
        """Whether Hermes tries the fallback chain instead."""


class RequestSettings(NamedTuple):
    """The provider, address, protocol and secret key of a request."""

    provider: str
    base_url: Text
    api_mode: str
    key: Text
    urls: Sequence[Text] = ()
    """Addresses that are set but not used."""
    keys: Sequence[Text] = ()
    """Keys that are set but not used."""
