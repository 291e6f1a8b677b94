"""Read lists of mappings from YAML and report every mistake with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import read_head

MOST = 1 << 20
MOST_NODES, DEEPEST = 50_000, 50
ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
CODE = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*")
_SPAN = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class RuleMistake(NamedTuple):
    """A mistake in a file of rules, and where it is."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}: {self.what}"


class RuleError(Exception):
    """A mistake; its rule is left out and the others are read."""


def mappings(
    path: Path, what: str, faults: list[RuleMistake]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield each item of a file's only list, with the line on which it starts.

    A mapping `defaults` beside the list has the fields of all items that do not say otherwise.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data, snapshot = read_head(path, MOST)
        if snapshot.size > MOST:
            raise RuleError("is larger than 1 MB")
        whole = data.decode()
        _bounded(yaml.parse(whole, loader))
        node = yaml.compose(whole, loader)
        _weight(node, {})
        content = yaml.load(whole, loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        faults.append(
            RuleMistake(path, mark.line + 1 if mark else 1, f"is not YAML: {error.problem}")
        )
        return
    except (
        RuleError,
        CouldNotLook,
        OSError,
        UnicodeError,
        yaml.YAMLError,
        RecursionError,
    ) as error:
        faults.append(RuleMistake(path, 1, f"cannot be read: {error}"))
        return
    items = content.get(what) if isinstance(content, dict) else None
    if node is None or not isinstance(items, list) or not set(content) <= {what, "defaults"}:
        problem = f"must hold `{what}:`, a list, perhaps `defaults:`, and nothing else"
        faults.append(RuleMistake(path, 1, problem))
        return
    defaults = content.get("defaults", {})
    nodes = {key.value: value.value for key, value in node.value}
    for one, raw in zip(nodes.get(what, ()), items, strict=False):
        number = one.start_mark.line + 1
        item = {**defaults, **raw} if isinstance(raw, dict) and isinstance(defaults, dict) else {}
        if item and all(isinstance(key, str) for key in item):
            yield number, item
        else:
            faults.append(RuleMistake(path, number, "must be a mapping of names to values"))


def _bounded(events: Iterable[Any]) -> None:
    """Refuse YAML that is nested so deeply that parsing it could crash the program."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > DEEPEST:
            raise RuleError("is nested too deeply")


def _weight(node: Any, known: dict[int, int]) -> int:
    """Return the number of nodes after all aliases are expanded."""
    if id(node) not in known:
        known[id(node)] = MOST_NODES + 1  # a node that contains itself is endless
        children = node.value if isinstance(getattr(node, "value", None), list) else ()
        flat = [one for child in children for one in (child if type(child) is tuple else (child,))]
        known[id(node)] = 1 + sum(_weight(one, known) for one in flat)
    if known[id(node)] > MOST_NODES:
        raise RuleError(f"contains more than {MOST_NODES} values, aliases counted")
    return known[id(node)]


def allow(raw: Mapping[str, Any], names: frozenset[str]) -> None:
    """Refuse unknown fields, with a suggestion."""
    for name in raw:
        if name not in names:
            from difflib import get_close_matches

            near = get_close_matches(name, names, 1)
            raise RuleError(f"has no field {name!r}" + (f"; is {near[0]!r} meant?" if near else ""))


def text(raw: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return a text; it may be empty only if the default is."""
    value = raw.get(name, default)
    if not isinstance(value, str) or (not value and default is None):
        raise RuleError(f"`{name}` must be a text" + ("" if name in raw else ", and is missing"))
    return value


def texts(raw: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    value = raw.get(name, ())
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, (list, tuple)) or not all(isinstance(one, str) for one in found):
        raise RuleError(f"`{name}` must be a text or a list of texts")
    return tuple(found)


def flag(raw: Mapping[str, Any], name: str) -> bool:
    """Return a boolean that is false by default."""
    value = raw.get(name, False)
    if not isinstance(value, bool):
        raise RuleError(f"`{name}` must be true or false")
    return value


def count(raw: Mapping[str, Any], name: str, default: int) -> int:
    """Return a number from 1 to 10000."""
    value = raw.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000:
        raise RuleError(f"`{name}` must be a number from 1 to 10000")
    return value


def span(raw: Mapping[str, Any], name: str, default: str) -> float:
    """Return a duration in seconds."""
    value = raw.get(name, default)
    match = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise RuleError(f"`{name}` must be a time like 90s, 10m, 2h or 1d")
    return float(int(match[1]) * _UNITS[match[2]])


def choice(raw: Mapping[str, Any], name: str, known: list[str], default: str = "") -> str:
    """Return one of the known values."""
    value = raw.get(name, default)
    if value not in known:
        raise RuleError(f"`{name}` must be one of {', '.join(known)}")
    return str(value)
