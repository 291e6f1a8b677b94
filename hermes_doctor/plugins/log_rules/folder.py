"""Read the log rules of a folder: the built-in ones precompiled, others from YAML."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.plugins.log_causes.tables import codes, load_tables

if TYPE_CHECKING:
    from hermes_doctor.plugins.log_causes.reading import Reader
    from hermes_doctor.plugins.log_rules.rule import Explanation, Rule
    from hermes_doctor.plugins.tables.yaml_lists import RuleMistake

COMPILED, CODES, SYMPTOMS = "compiled.json", "codes.txt", "symptoms.txt"
"""Made by tools/compile_signatures.py.

Reading the YAML and checking the patterns instead costs `check` 0.8 s more CPU, on a used home
beside a running gateway (`benchmarks/trees.py`).
"""


class RuleSet(NamedTuple):
    """The rules and explanations of a folder."""

    rules: tuple[Rule, ...]
    explanations: tuple[Explanation, ...]
    faults: tuple[RuleMistake, ...] = ()
    """Mistakes in the rules that were left out."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The finding codes that the rules report."""
        return tuple(sorted({rule.code for rule in self.rules}))


class Folder:
    """A folder of log rules; precompiled rules are loaded when a log is read."""

    def __init__(self, path: Path, *, ours: bool = False) -> None:
        self.path = path
        self.ours = ours
        """Only built-in rules are used in compiled form; others were never checked."""
        compiled = ours and (path / CODES).is_file()
        self.faults = () if compiled else self.rule_set.faults
        self.codes = (
            tuple((path / CODES).read_bytes().decode().split()) if compiled else self._codes()
        )

    def _codes(self) -> tuple[str, ...]:
        return tuple(sorted({*self.rule_set.codes, *codes(load_tables(self.path))}))

    @cached_property
    def symptoms(self) -> frozenset[str]:
        """The codes that say what fails, not why: see `symptoms.txt`."""
        return read_symptoms(self.path)

    @cached_property
    def reader(self) -> Reader | None:
        """Reads the causes of entries; None if the folder has no table of causes."""
        tables = load_tables(self.path, ours=self.ours)
        if not tables.causes:
            return None
        from hermes_doctor.plugins.log_causes.reading import Reader

        return Reader(tables)

    @cached_property
    def rule_set(self) -> RuleSet:
        """The rules and explanations, loaded on first use."""
        path = self.path / COMPILED
        return (
            read_compiled(path.read_bytes())
            if self.ours and path.is_file()
            else read_source(self.path)
        )


def read_symptoms(folder: Path) -> frozenset[str]:
    """Read the codes that blame nothing; text after `#` is a comment."""
    path = folder / SYMPTOMS
    lines = path.read_text("utf-8").splitlines() if path.is_file() else ()
    return frozenset(word for line in lines for word in line.partition("#")[0].split())


def read_source(folder: Path) -> RuleSet:
    """Read the rules from the YAML files."""
    from hermes_doctor.plugins.log_rules import explanations, source

    found = source.read(folder)
    faults = list(found.faults)
    return RuleSet(found.rules, tuple(explanations.read(folder, faults)), tuple(faults))


def read_compiled(data: bytes) -> RuleSet:
    """Read the rules from their compiled form."""
    import json

    from hermes_doctor.plugins.log_rules import rule

    found = json.loads(data)
    explanations = (rule.Explanation(*one) for one in found["explanations"])
    return RuleSet(tuple(map(rule.unpack, found["rules"])), tuple(explanations))


def compile_rules(rule_set: RuleSet) -> str:
    """Compile the rules to JSON that is quick to read, one rule per line."""
    import json

    from hermes_doctor.plugins.log_rules import rule

    def items(found: list[list[Any]]) -> str:
        return "[\n" + ",\n".join(map(json.dumps, found)) + "\n]"

    rules = items([rule.pack(one) for one in rule_set.rules])
    explanations = items([rule.pack(one) for one in rule_set.explanations])
    return f'{{"rules": {rules},\n"explanations": {explanations}}}\n'
