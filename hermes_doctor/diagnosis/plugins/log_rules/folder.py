"""Read the log rules of a folder: the built-in ones from computed files, others from YAML."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.diagnosis.plugins.built_in import computed
from hermes_doctor.diagnosis.plugins.log_causes import tables as log_tables

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.log_causes.reading import Reader
    from hermes_doctor.diagnosis.plugins.log_rules.rule import Explanation, Rule
    from hermes_doctor.diagnosis.plugins.tables.yaml_lists import RuleMistake

SYMPTOMS = "symptoms.txt"
CODES, RULES, TABLES = "codes.txt", "rules.json", "causes.jsonl"
"""The computed files (see `built_in`).

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
    """A folder of log rules; what is in it is loaded when a log is read.

    Only the built-in folder has computed files. One of an operator is read from YAML each time.
    """

    def __init__(self, path: Path, *, ours: bool = False) -> None:
        self.path = path
        self.ours = ours
        codes = self._computed(CODES)
        self.codes = tuple(self._codes() if codes is None else codes.decode().split())
        self.faults = () if codes is not None else (*self.rule_set.faults, *self.tables.faults)
        """Mistakes in the rules and tables that were left out."""

    def _computed(self, name: str) -> bytes | None:
        return computed(name, self.compute) if self.ours else None

    def compute(self) -> dict[str, str] | None:
        """Return the texts of all computed files; None if there are mistakes to show."""
        rules, known = read_source(self.path), log_tables.read_source(self.path)
        if rules.faults or known.faults:
            return None
        codes = sorted({*rules.codes, *log_tables.codes(known)})
        return {
            CODES: "\n".join(codes) + "\n",
            RULES: compile_rules(rules),
            TABLES: log_tables.compile_tables(known),
        }

    def _codes(self) -> list[str]:
        return sorted({*self.rule_set.codes, *log_tables.codes(self.tables)})

    @cached_property
    def symptoms(self) -> frozenset[str]:
        """The codes that say what fails, not why: see `symptoms.txt`."""
        return read_symptoms(self.path)

    @cached_property
    def rule_set(self) -> RuleSet:
        """The rules and explanations."""
        compiled = self._computed(RULES)
        return read_source(self.path) if compiled is None else read_compiled(compiled)

    @cached_property
    def tables(self) -> log_tables.Tables:
        """The causes, places, operations, outcomes and successes."""
        compiled = self._computed(TABLES)
        if compiled is None:
            return log_tables.read_source(self.path)
        return log_tables.read_compiled(compiled)

    @cached_property
    def reader(self) -> Reader | None:
        """Reads the causes of entries; None if the folder has no table of causes."""
        if not self.tables.causes:
            return None
        from hermes_doctor.diagnosis.plugins.log_causes.reading import Reader

        return Reader(self.tables)


def read_symptoms(folder: Path) -> frozenset[str]:
    """Read the codes that blame nothing; text after `#` is a comment."""
    path = folder / SYMPTOMS
    lines = path.read_text("utf-8").splitlines() if path.is_file() else ()
    return frozenset(word for line in lines for word in line.partition("#")[0].split())


def read_source(folder: Path) -> RuleSet:
    """Read the rules from the YAML files."""
    from hermes_doctor.diagnosis.plugins.log_rules import explanations, source

    rule_source = source.read(folder)
    faults = list(rule_source.faults)
    return RuleSet(rule_source.rules, tuple(explanations.read(folder, faults)), tuple(faults))


def read_compiled(data: bytes) -> RuleSet:
    """Read the rules from their compiled form."""
    import json

    from hermes_doctor.diagnosis.plugins.log_rules import rule

    found = json.loads(data)
    lines = [rule.LinePattern(*one) for one in found["lines"]]
    rules = tuple(rule.unpack(one, lines) for one in found["rules"])
    return RuleSet(rules, tuple(rule.Explanation(*one) for one in found["explanations"]))


def compile_rules(rule_set: RuleSet) -> str:
    """Compile the rules to JSON that is quick to read, one rule per line."""
    import json

    from hermes_doctor.diagnosis.plugins.log_rules import rule
    from hermes_doctor.diagnosis.plugins.log_rules.rare_literals import with_rare_literals

    lines: dict[str, int] = {}
    parts = {
        "rules": [json.dumps(rule.pack(one, lines)) for one in with_rare_literals(rule_set.rules)],
        "explanations": [rule.json_of(explanation) for explanation in rule_set.explanations],
    }
    parts["lines"] = [*lines]
    listed = (f"{json.dumps(name)}: [\n" + ",\n".join(part) + "\n]" for name, part in parts.items())
    return "{" + ",\n".join(listed) + "}\n"
