"""The rules of a folder: compiled where they come with the tool, else as they are written."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple

if TYPE_CHECKING:
    from hermes_doctor.plugins.log_rules.rule import Cause, Rule
    from hermes_doctor.plugins.log_rules.source import Fault

COMPILED, CODES = "compiled.json", "codes.txt"
"""Made by tools/compile_signatures.py: to read the YAML and judge the patterns, `check` takes 0.8 s
more CPU, on a used home beside a running gateway (`benchmarks/trees.py`)."""


class Held(NamedTuple):
    """What a folder holds."""

    rules: tuple[Rule, ...]
    causes: tuple[Cause, ...]
    faults: tuple[Fault, ...] = ()
    """What is wrong with those that were left out."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The failure modes that the rules are about."""
        return tuple(sorted({rule.code for rule in self.rules}))


class Folder:
    """A folder of rules; those that are compiled are read when a log is."""

    def __init__(self, place: Path, *, ours: bool = False) -> None:
        self.place = place
        self.ours = ours
        """Only what comes with the tool is compiled: what lies there elsewhere was checked by
        nobody."""
        compiled = ours and (place / CODES).is_file()
        self.faults = () if compiled else self.held.faults
        self.codes = (
            tuple((place / CODES).read_bytes().decode().split()) if compiled else self.held.codes
        )

    @cached_property
    def held(self) -> Held:
        """All of it."""
        path = self.place / COMPILED
        return unpacked(path.read_bytes()) if self.ours and path.is_file() else written(self.place)


def written(folder: Path) -> Held:
    """The rules as people wrote them."""
    from hermes_doctor.plugins.log_rules import causes, source

    found = source.read(folder)
    faults = list(found.faults)
    return Held(found.rules, tuple(causes.read(folder, faults)), tuple(faults))


def unpacked(data: bytes) -> Held:
    """What was packed."""
    import json

    from hermes_doctor.plugins.log_rules import rule

    found = json.loads(data)
    causes = (rule.Cause(*one) for one in found["causes"])
    return Held(tuple(map(rule.unpacked, found["rules"])), tuple(causes))


def packed(held: Held) -> str:
    """All of it in the form that is quick to read, one rule a line."""
    import json

    from hermes_doctor.plugins.log_rules import rule

    def items(found: list[list[Any]]) -> str:
        return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in found) + "\n]"

    rules = items([rule.packed(one) for one in held.rules])
    return f'{{"rules": {rules},\n"causes": {items([rule.packed(one) for one in held.causes])}}}\n'
