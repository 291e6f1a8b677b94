"""Read and parse config.yaml as Hermes does, and gateway.json, its older form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, read as read_file, read_if_there

NAME = "config.yaml"
LIMIT = 4 * MEGABYTE
DEEPEST, MOST_UNFOLDED, MOST_VALUES = 100, 100_000, 50_000
"""No real file comes near these limits.

libyaml's bindings overflow the C stack on hostile nesting, and aliases can exhaust the memory.
"""

FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
WORTHWHILE = 1024
"""Characters; for a shorter file it does not pay to compile the pattern of plain lines (3 ms)."""
SMALL, MIDDLING = 16 * 1024, 48 * 1024
"""PyYAML's own parser reads some 50 KB per second, so libyaml parses longer files."""
_DISPUTED = pattern(r"[\t?]|\\[uUx]")
"""Text that libyaml and PyYAML's own parser, which the gateway uses, treat differently."""


class ParseError(NamedTuple):
    """Why the file is not a valid configuration."""

    what: str
    line: int | None = None
    column: int | None = None


TOO_DEEP = ParseError(f"nested more than {DEEPEST} levels deep")
TOO_LONG = ParseError(f"too many values to read (more than {MOST_VALUES:,})")
UNFOLDS = ParseError(f"its aliases unfold to more than {MOST_UNFOLDED:,} values")


class ConfigFile(NamedTuple):
    """config.yaml: its bytes, and either its values or what is wrong with them."""

    path: Path
    data: bytes
    snapshot: Snapshot
    values: dict[Any, Any] | None
    fault: ParseError | None
    root: yaml.Node | None = None
    """The YAML nodes of the values; None if building the values changed them."""


def read(home: Home) -> ConfigFile | None:
    """config.yaml of this home, or None when there is none; CouldNotLook if it is too long."""
    if_there = read_if_there(home / NAME, LIMIT)
    if if_there is None:
        return None
    data, snapshot = if_there
    parsed = _parsed(data)
    if parsed[1] is TOO_LONG:
        raise CouldNotLook("{file}: {reason}", file=NAME, reason=TOO_LONG.what)
    return ConfigFile(home / NAME, data, snapshot, *parsed)


def parse(data: bytes) -> tuple[dict[Any, Any] | None, ParseError | None]:
    """Parse as Hermes does: return the settings, or the fault that makes Hermes ignore them."""
    values, fault, _ = _parsed(data)
    return values, fault


NO_MAPPING = "not a mapping"
"""The end of the fault of a file that is valid YAML but contains no settings."""


def _parsed(data: bytes) -> tuple[dict[Any, Any] | None, ParseError | None, yaml.Node | None]:
    """Parse, and also return the YAML nodes of the settings."""
    values, fault, root = _built(data)
    if values is None and fault is None:
        return {}, None, root
    if fault is None and not isinstance(values, dict):
        kind = type(values).__name__
        return None, ParseError(f"is a {kind} at the top, {NO_MAPPING}", 1), None
    return values, fault, root


def _built(data: bytes) -> tuple[Any, ParseError | None, yaml.Node | None]:
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, ParseError(f"byte 0x{data[error.start]:02x} is not UTF-8", line), None
    try:
        if fault := why_not_built(content):
            return None, fault, None
        values, root = _fast_load(content) or _load(content, loader_for(content))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        return None, ParseError(_mask(error.problem or "cannot be parsed"), *place), None
    except yaml.YAMLError as error:
        position = _position(error)
        at = content.count("\n", 0, position) + 1 if position else None
        return None, ParseError("contains a character that YAML does not allow", at), None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (PyYAML raises nearly anything)
        kind = type(error).__name__
        return None, ParseError(f"contains a value that YAML cannot build ({kind})"), None
    changed = "<<" in content or content.startswith("\ufeff")  # merges are expanded in the nodes
    return values, None, None if changed else root


def _load(text: str, kind: Any) -> tuple[Any, yaml.Node | None]:
    """Return the values and the YAML nodes."""
    loader = kind(text)
    try:
        root = loader.get_single_node()
        return loader.construct_document(root) if root is not None else None, root
    finally:
        loader.dispose()


def compose(text: str) -> yaml.Node | None:
    """Return the YAML nodes of a text as the gateway's own parser finds them."""
    loader = loader_for(text)(text.removeprefix("\ufeff"))
    try:
        root: yaml.Node | None = loader.get_single_node()
        return root
    finally:
        loader.dispose()


def _fast_load(text: str) -> tuple[Any, yaml.Node | None] | None:
    """Load a plain file with libyaml; None if it is not plain, or invalid, or short, or very long.

    A very long one is read by libyaml in any case (see `loader_for`).
    """
    if not WORTHWHILE <= len(text) <= MIDDLING:
        return None
    from hermes_doctor.hermes.settings.plain_yaml import is_plain_yaml

    if not is_plain_yaml(text):
        return None
    try:
        return _load(text, FAST)
    except Exception:  # noqa: BLE001 (the gateway's own parser says what is wrong)
        return None


def loader_for(text: str) -> Any:
    """Return the gateway's own parser wherever the two parsers may differ, else the fast one."""
    disputed = len(text) <= SMALL or (len(text) <= MIDDLING and _DISPUTED.search(text))
    return yaml.SafeLoader if disputed else FAST


def why_not_built(content: str) -> ParseError | None:
    """Return why the file takes too much time, memory or stack to build its values."""
    depth = values = 0
    try:
        for event in yaml.parse(content, FAST):
            values += isinstance(event, yaml.NodeEvent)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return TOO_DEEP
            if values > MOST_VALUES:
                return TOO_LONG
        return _unfolded(yaml.compose(content, FAST)) if "*" in content else None
    except yaml.YAMLError:  # the other parser decides
        return None


def _unfolded(root: yaml.Node | None) -> ParseError | None:
    """Return why the values are too many or too deep once every alias is replaced."""
    measured: dict[int, tuple[int, int]] = {}

    def measure(node: yaml.Node) -> tuple[int, int]:
        """Return the number of values in a node, and their levels."""
        if id(node) in measured:
            return measured[id(node)]
        measured[id(node)] = (0, 0)  # a node that contains itself
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            inner = node.value
        elif isinstance(node, yaml.MappingNode):
            inner = [one for pair in node.value for one in pair]
        sizes = [measure(one) for one in inner]
        count = 1 + sum(count for count, _ in sizes)
        depth = 1 + max((depth for _, depth in sizes), default=0)
        measured[id(node)] = min(count, MOST_UNFOLDED + 1), depth
        return measured[id(node)]

    count, depth = measure(root) if root is not None else (0, 0)
    if count > MOST_UNFOLDED:
        return UNFOLDS
    return TOO_DEEP if depth > DEEPEST + 1 else None


def _position(error: yaml.YAMLError) -> int:
    return getattr(error, "position", 0) or 0


def _mask(problem: str) -> str:
    """Remove the file's own words from the parser's message: quoted names may be secrets."""
    said = re.sub(r"""(['"])(\\?.)\1""", r"‘\2’", problem.split("\n")[0])
    before, quote, _ = re.match(r"""([^'"]*)(['"]?)(.*)""", said, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{before.rstrip()} …" if quote else before


GATEWAY_JSON = "gateway.json"
_LIMIT = 4 * MEGABYTE


class OldSettings(NamedTuple):
    """The contents of gateway.json, including secrets."""

    snapshot: Snapshot
    values: Mapping[str, Any] | None
    """None if it is not valid JSON."""
    mapping: bool = True
    """Whether its top level is a mapping."""


def read_gateway_json(home: Home) -> OldSettings | None:
    """Read the file; None if there is none."""
    import json

    try:
        data, snapshot = read_file(home / GATEWAY_JSON, _LIMIT)
    except FileNotFoundError:
        return None
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return OldSettings(snapshot, None)
    if found and not isinstance(found, dict):
        return OldSettings(snapshot, None, False)
    return OldSettings(snapshot, found or {})
