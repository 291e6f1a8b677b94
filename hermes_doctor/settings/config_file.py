"""Read and parse config.yaml as Hermes does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.settings.fast_yaml import yaml
from hermes_doctor.system.files import MEGABYTE, Snapshot, read_if_there

NAME = "config.yaml"
LIMIT = 4 * MEGABYTE
DEEPEST, MOST_MERGED = 100, 100_000
"""No real file comes near these limits.

libyaml's bindings overflow the C stack on hostile nesting, and merges can exhaust the memory.
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
    """config.yaml of this home, or None when there is none."""
    found = read_if_there(home / NAME, LIMIT)
    if found is None:
        return None
    data, taken = found
    return ConfigFile(home / NAME, data, taken, *_parsed(data))


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
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, ParseError(f"byte 0x{data[error.start]:02x} is not UTF-8", line), None
    try:
        if is_too_deep(text):
            return None, ParseError(f"nested more than {DEEPEST} levels deep"), None
        if expands_too_far(text):
            return None, ParseError(f"its merges unfold to more than {MOST_MERGED} settings"), None
        values, root = _fast_load(text) or _load(text, loader_for(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        return None, ParseError(_mask(error.problem or "cannot be parsed"), *place), None
    except yaml.YAMLError as error:
        position = _position(error)
        at = text.count("\n", 0, position) + 1 if position else None
        return None, ParseError("contains a character that YAML does not allow", at), None
    except Exception as error:  # noqa: BLE001 (PyYAML raises nearly anything)
        kind = type(error).__name__
        return None, ParseError(f"contains a value that YAML cannot build ({kind})"), None
    changed = "<<" in text or text.startswith("\ufeff")  # merges are expanded in the nodes
    return values, None, None if changed else root


def _load(text: str, kind: Any) -> tuple[Any, yaml.Node | None]:
    """Return the values and the YAML nodes."""
    loader = kind(text)
    try:
        root = loader.get_single_node()
        return loader.construct_document(root) if root is not None else None, root
    finally:
        loader.dispose()


def _fast_load(text: str) -> tuple[Any, yaml.Node | None] | None:
    """Load a plain file with libyaml; None if it is not plain, or invalid, or short, or very long.

    A very long one is read by libyaml in any case (see `loader_for`).
    """
    if not WORTHWHILE <= len(text) <= MIDDLING:
        return None
    from hermes_doctor.settings.plain_yaml import is_plain_yaml

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


def is_too_deep(text: str) -> bool:
    """Tell whether building the values would overflow the stack."""
    depth = 0
    try:
        for event in yaml.parse(text, FAST):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return True
    except yaml.YAMLError:  # the other parser decides
        pass
    return False


def expands_too_far(text: str) -> bool:
    """Tell whether merges (`<<: [*a, *a]`) expand to more settings than can be built."""
    if "<<" not in text or "*" not in text:
        return False
    counted: dict[int, int] = {}

    def settings(node: yaml.Node) -> int:
        if id(node) in counted:
            return counted[id(node)]
        counted[id(node)] = 0  # a node that merges itself
        if isinstance(node, yaml.SequenceNode):
            found = sum(settings(one) for one in node.value)
        elif isinstance(node, yaml.MappingNode):
            merged = [value for key, value in node.value if key.value == "<<"]
            found = len(node.value) + sum(settings(value) for value in merged)
            for _, value in node.value:
                settings(value)
        else:
            found = 0
        counted[id(node)] = found
        return found

    try:
        node = yaml.compose(text, FAST)
    except yaml.YAMLError:  # the other parser decides
        return False
    if node is not None:
        settings(node)
    return max(counted.values(), default=0) > MOST_MERGED


def _position(error: yaml.YAMLError) -> int:
    return getattr(error, "position", 0) or 0


def _mask(problem: str) -> str:
    """Remove the file's own words from the parser's message: quoted names may be secrets."""
    said = re.sub(r"""(['"])(\\?.)\1""", r"‘\2’", problem.split("\n")[0])
    before, quote, _ = re.match(r"""([^'"]*)(['"]?)(.*)""", said, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{before.rstrip()} …" if quote else before
