"""Read a folder of log rules, built-in ones from computed files, and make one check of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Finding, Partly, Skip, known_or
from hermes_doctor.core.system import remembered_files
from hermes_doctor.core.system.files import list_folder, reason
from hermes_doctor.diagnosis.plugins.built_in import computed
from hermes_doctor.diagnosis.plugins.declare import Check
from hermes_doctor.diagnosis.plugins.log_causes import tables as log_tables

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.log_causes.reading import Reader
    from hermes_doctor.diagnosis.plugins.log_rules.incident import Incident
    from hermes_doctor.diagnosis.plugins.log_rules.rule import Explanation, Rule
    from hermes_doctor.diagnosis.plugins.tables.yaml_lists import RuleMistake
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.settings.resolved import Route

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
        self.codes = tuple(
            sorted({*self.rule_set.codes, *log_tables.codes(self.tables)})
            if codes is None
            else codes.decode().split()
        )
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

    @cached_property
    def symptoms(self) -> frozenset[str]:
        """The codes that say what fails, not why: see `symptoms.txt`."""
        path = self.path / SYMPTOMS
        lines = path.read_text("utf-8").splitlines() if path.is_file() else ()
        # text after `#` is a comment
        return frozenset(word for line in lines for word in line.partition("#")[0].split())

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


def read_source(folder: Path) -> RuleSet:
    """Read the rules from the YAML files."""
    from hermes_doctor.diagnosis.plugins.log_rules import source

    rule_source = source.read(folder)
    faults = list(rule_source.faults)
    return RuleSet(
        rule_source.rules, tuple(source.read_explanations(folder, faults)), tuple(faults)
    )


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
    from hermes_doctor.diagnosis.plugins.log_rules.source import with_rare_literals

    lines: dict[str, int] = {}
    parts = {
        "rules": [json.dumps(rule.pack(one, lines)) for one in with_rare_literals(rule_set.rules)],
        "explanations": [rule.json_of(explanation) for explanation in rule_set.explanations],
    }
    parts["lines"] = [*lines]
    listed = (f"{json.dumps(name)}: [\n" + ",\n".join(part) + "\n]" for name, part in parts.items())
    return "{" + ",\n".join(listed) + "}\n"


ID = "log-rules"
GROUP = "logs"
STARTS = "gateway-starts.log"
"""The only record outside of logs/; a profile's s6-log output is in the root home."""
QUESTION = "Do the logs show a problem that is not over?"


def check_of(id: str, folder: Folder) -> Check:
    """Return the check that applies the rules of a folder."""
    return Check(id, GROUP, folder.codes, QUESTION, lambda probes: _look(probes, folder), 5.0)


def _look(probes: Probes, folder: Folder) -> Iterator[Finding | CouldNotLook | Partly]:
    logs = probes.home / "logs"
    try:
        kind = logs.stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and not logs.is_symlink():
            raise Skip("no log yet") from None
        raise CouldNotLook("logs: {reason}", reason=reason(error, logs)) from None
    if not S_ISDIR(kind):
        raise CouldNotLook("logs: not a folder")
    if _is_silent(probes):
        raise Skip("no log yet")
    from hermes_doctor.diagnosis.plugins.log_rules.ask_logs import ask

    asked = ask(probes, folder.rule_set.rules, folder.reader, folder.symptoms)
    remembered_files.note_moment(asked.until)
    if any(incident.cleared_at is None for incident in asked.incidents):
        from hermes_doctor.diagnosis.plugins.log_rules.findings import findings

        yield from findings(_with_names(probes, asked.incidents), asked.where)
    for source, why, partly in asked.unread:
        yield (
            Partly(f"{source}: {why}")
            if partly
            else CouldNotLook("{source}: {reason}", source=source, reason=why)
        )


def _with_names(probes: Probes, incidents: Iterable[Incident]) -> Iterator[Incident]:
    """Add what only the settings say: the operator's name of a provider, and where its key is."""
    for incident in incidents:
        if incident.cleared_at is not None:
            yield incident
            continue
        provider, route = incident.key.get("provider"), None
        if provider is not None and (resolved := known_or(None, probes.settings.resolved)):
            from hermes_doctor.diagnosis.plugins.log_rules.findings import with_route

            incident, route = with_route(incident, resolved)
            ways = [route] if route else [resolved.main, *resolved.fallback]
            names = {way.operators_name for way in ways} - {""}
            if provider == "custom" and len(names) == 1:
                incident = incident._replace(fields={**incident.fields, "provider": names.pop()})
        more = dict(incident.fields)
        if "{key}" in incident.rule.next and (place := _place_of_key(probes, provider, route)):
            more["key"] = place
        yield incident._replace(fields=more)


def _place_of_key(probes: Probes, provider: str | None, route: Route | None) -> str:
    """Where the key of a provider is set; empty if that is unknown or not one single place."""
    from hermes_doctor.hermes.settings.document import CONFIG, ENV

    resolved = known_or(None, probes.settings.resolved)
    if resolved is None:
        return ""
    sources = {
        way.key.source.via or way.key.source
        for way in ([route] if route else [resolved.main, *resolved.fallback])
        if way.key and way.provider and provider in ("", None, way.provider.value)
    }
    if len(sources) != 1:
        return ""
    source = sources.pop()
    return f"`{source.name}` in {source.place}" if source.kind in (CONFIG, ENV) else ""


def _is_silent(probes: Probes) -> bool:
    """Tell whether there is no log yet, so that the rules need not be loaded."""
    try:
        written = list_folder(probes.home / "logs") or (probes.home / STARTS).exists()
        return (
            not written and not probes.home.profile and probes.gateway.supervision().owner is None
        )
    except (CouldNotLook, OSError):
        return False
