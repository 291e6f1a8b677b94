"""Read log rules and explanations from YAML and report every mistake with its line.

A line is looked up by the literals that the fewest lines of rules have: the longest literal of
`^Tool browser_\\w+ returned error` is in every line about a failed tool; by that, the patterns
about all tools would be compiled and tried for each of them. They are chosen when the built-in
rules are compiled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Severity
from hermes_doctor.diagnosis.plugins.log_causes import table_source
from hermes_doctor.diagnosis.plugins.log_rules.rule import (
    FIELDS,
    KINDS,
    LEVELS,
    PRINTED,
    Explanation,
    LinePattern,
    Rule,
)
from hermes_doctor.diagnosis.plugins.tables import patterns
from hermes_doctor.diagnosis.plugins.tables.yaml_lists import (
    CODE,
    ID,
    RuleError,
    RuleMistake,
    allow,
    choice,
    count,
    flag,
    mappings,
    span,
    text,
    texts,
)

_VERSIONS = re.compile(
    r"(?:(?:[<>]=?|==|!=)\d+(?:\.\d+){0,3})(?:,(?:[<>]=?|==|!=)\d+(?:\.\d+){0,3})*"
)
_PLACE = re.compile(r"\{(\w+)\}")
_LINE_FIELDS = frozenset(
    {"pattern", "anywhere", "logger", "level", "traceback", "exception", "examples", "near"}
)
_RULE_FIELDS = _LINE_FIELDS | {
    "id", "code", "severity", "title", "detail", "next", "source", "platform", "versions", "window",
    "threshold", "within", "followed_by", "cleared_by", "settle", "per_session", "outlives_start",
    "unless_ok", "fix", "yields_to", "only_set_up", "days", "adapter",
    "otherwise", "spread", "ages_out", "database", "given_up_by", "answered_by",
    "incident_by", "counts_lives", "unknown",
}  # fmt: skip

_OTHERS = (
    r"(?:\[[^\]]{0,60}\] )?(?:(?:Unauthorized|Rejected|Dropping|Dropped|Ignoring|Ignored|Denied)\b"
    r"|File too large|Daily upload limit|Unsupported document|Document too large|Failed to cache"
    r"|Failed to parse JSON|API FAIL|Send failed HTTP|response_url POST)"
    r"|inbound message|response ready|Auto voice reply|Unrecognized slash command|Job '"
    r"|Job \w{1,40} |Tool [\w.-]{1,80} |MM API|MM file upload|SimpleX: command"
    r"|Reasoning-only response|Non-retryable client error|\W{0,4}API call failed"
)
"""The starts of lines that contain words of strangers, tools or models."""
_ANYWHERE = rf"^(?!{_OTHERS})(?=.{{0,400}}?(?:%s))\W{{0,8}}[\w. -]{{1,40}}"
"""Shows only the first words of the line, which are Hermes' own; later ones may not be."""


NOT_RULES = table_source.NAMES | {"explanations.yaml"}
"""Files of a folder that hold something else."""


class Sample(NamedTuple):
    """Example lines of a rule, which its tests match."""

    rule: Rule
    line: LinePattern
    examples: tuple[str, ...]
    near: tuple[str, ...]


class RuleSource(NamedTuple):
    """The rules, samples and mistakes of a folder."""

    rules: tuple[Rule, ...]
    samples: tuple[Sample, ...]
    faults: tuple[RuleMistake, ...]


def read(folder: Path) -> RuleSource:
    """Read all rules of a folder, in the order of the files."""
    rules: dict[str, Rule] = {}
    samples: list[Sample] = []
    faults: list[RuleMistake] = []
    for path in sorted(folder.glob("*.yaml")):
        if path.name in NOT_RULES:
            continue
        for number, raw in mappings(path, "rules", faults):
            made: list[Sample] = []
            try:
                rule = _rule(raw, made)
                if rule.id in rules:
                    raise RuleError(f"there is another rule {rule.id!r}")
            except RuleError as wrong:
                name = raw.get("id")
                about = f"rule {name}: " if isinstance(name, str) else ""
                faults.append(RuleMistake(path, number, f"{about}{wrong}"))
                continue
            rules[rule.id] = rule
            samples += made
    return RuleSource(tuple(rules.values()), tuple(samples), tuple(faults))


def _rule(raw: Mapping[str, Any], samples: list[Sample]) -> Rule:
    allow(raw, _RULE_FIELDS)
    line = _line(raw)
    follow = _follower(raw["followed_by"], line) if "followed_by" in raw else None
    code, fix = text(raw, "code"), raw.get("fix")
    if not CODE.fullmatch(code):
        raise RuleError(f"`code` {code!r} is made of capitals, digits and hyphens")
    if not ID.fullmatch(text(raw, "id")):
        raise RuleError("`id` is made of small letters, digits and hyphens")
    if fix is not None and not (isinstance(fix, str) and ID.fullmatch(fix)):
        raise RuleError("`fix` is the id of a fix")
    platform = text(raw, "platform", "")
    title = text(raw, "title")
    taken = _taken(raw, line)
    rule = Rule(
        id=text(raw, "id"),
        code=code,
        severity=choice(
            raw, "severity", [severity.value for severity in Severity], Severity.WARNING.value
        ),
        title=title,
        line=line,
        detail=" ".join(text(raw, "detail", "").split()),
        platform=platform,
        source=choice(raw, "source", [*KINDS, PRINTED], "log"),
        versions=_versions(raw),
        window=span(raw, "window", "2h"),
        threshold=count(raw, "threshold", 1),
        within=span(raw, "within", "0s"),
        followed_by=follow[0] if follow else None,
        follows_within=follow[1] if follow else 0.0,
        cleared_by=_lines(raw, "cleared_by", line),
        given_up_by=_lines(raw, "given_up_by", line),
        answered_by=_lines(raw, "answered_by", line),
        incident_by=texts(raw, "incident_by"),
        settle=span(raw, "settle", "0s"),
        per_session=flag(raw, "per_session"),
        outlives_start=flag(raw, "outlives_start"),
        unless_ok=texts(raw, "unless_ok"),
        fix=fix,
        next=" ".join(text(raw, "next", "").split()),
        yields_to=texts(raw, "yields_to"),
        only_set_up=flag(raw, "only_set_up"),
        otherwise=flag(raw, "otherwise"),
        adapter=flag(raw, "adapter"),
        spread=span(raw, "spread", "0s"),
        days=count(raw, "days", 1) if "days" in raw else 0,
        database=text(raw, "database", ""),
        counts_lives=flag(raw, "counts_lives"),
        unknown=flag(raw, "unknown"),
    )
    _insist(rule, raw, taken)
    samples.append(Sample(rule, line, texts(raw, "examples"), texts(raw, "near")))
    if not samples[0].examples or not samples[0].near:
        raise RuleError("needs `examples` that match and `near` misses that do not")
    if rule.followed_by:
        samples.append(_sample(rule, rule.followed_by, raw["followed_by"]))
    for name in ("cleared_by", "given_up_by", "answered_by"):
        for other, written in zip(getattr(rule, name), raw.get(name, ()), strict=True):
            samples.append(_sample(rule, other, written))
    return rule


def _taken(raw: Mapping[str, Any], line: LinePattern) -> set[str]:
    """Return the fields that a rule takes from its lines, after its texts name no others."""
    taken = set(re.compile(line.pattern).groupindex)
    if text(raw, "platform", ""):
        taken.add("platform")
    if flag(raw, "unknown"):
        taken.add("name")  # of the place
    for field in ("title", "detail", "next"):
        shown = text(raw, field, "")
        if not set(_PLACE.sub("", shown)).isdisjoint("{}"):
            raise RuleError(f"`{field}` may use braces only for {{name}}")
        for name in _PLACE.findall(shown):
            if name not in taken and (field, name) != ("next", "key"):  # settings give the key
                raise RuleError(f"`{field}` names {{{name}}}, which the pattern does not take")
    return taken


def _insist(rule: Rule, raw: Mapping[str, Any], taken: set[str]) -> None:
    """Refuse fields that make no sense together."""
    if rule.days and rule.line.level in ("DEBUG", "INFO"):
        raise RuleError("`days` needs a `level` from warning on")
    if rule.spread and rule.threshold == 1:
        raise RuleError("`spread` needs a `threshold`")
    if rule.within and rule.threshold == 1:
        raise RuleError("`within` needs a `threshold`")
    if rule.settle and not rule.cleared_by:
        raise RuleError("`settle` needs `cleared_by`")
    if rule.database and not rule.unless_ok:
        raise RuleError("`database` needs `unless_ok`")
    for name in set(rule.incident_by) - taken:
        raise RuleError(f"`incident_by` names {name!r}, which the pattern does not take")
    if rule.unknown and "reason" not in taken:
        raise RuleError("`unknown` needs the group `reason` for the first words of a line")
    if rule.given_up_by and not rule.settle:
        raise RuleError("`given_up_by` needs `settle`")
    if text(raw, "ages_out", "") and rule.cleared_by:
        raise RuleError("`ages_out` is for a rule without `cleared_by`")


def _sample(rule: Rule, line: LinePattern, raw: Mapping[str, Any]) -> Sample:
    return Sample(rule, line, texts(raw, "examples"), texts(raw, "near"))


def _line(
    raw: Mapping[str, Any], level: str = "warning", loggers: Sequence[str] = ()
) -> LinePattern:
    pattern = text(raw, "pattern")
    for fault in patterns.faults(pattern, FIELDS):
        raise RuleError(f"`pattern` {fault}")
    names = [name.lower() for name in LEVELS]
    return LinePattern(
        pattern=_ANYWHERE % pattern if flag(raw, "anywhere") else pattern,
        literals=patterns.literals(pattern),
        level=choice(raw, "level", names, level).upper(),
        loggers=texts(raw, "logger") if "logger" in raw else loggers,
        traceback=flag(raw, "traceback"),
        exception=flag(raw, "exception"),
    )


def _follower(raw: Any, line: LinePattern) -> tuple[LinePattern, float]:
    if not isinstance(raw, dict):
        raise RuleError("`followed_by` is a mapping")
    allow(raw, _LINE_FIELDS | {"within"})
    if not texts(raw, "examples"):
        raise RuleError("`followed_by` needs `examples`")
    return _line(raw, loggers=line.loggers), span(raw, "within", "5m")


def _lines(raw: Mapping[str, Any], name: str, line: LinePattern) -> tuple[LinePattern, ...]:
    """Read the lines that end a problem; they have the loggers of the rule if they name none."""
    failure = raw.get(name, [])
    if not isinstance(failure, list) or not all(isinstance(one, dict) for one in failure):
        raise RuleError(f"`{name}` is a list of mappings")
    for one in failure:
        allow(one, _LINE_FIELDS)
        if not texts(one, "examples"):
            raise RuleError(f"`{name}` needs `examples`")
    return tuple(_line(one, "info", line.loggers) for one in failure)


def _versions(raw: Mapping[str, Any]) -> str:
    value = text(raw, "versions", "").replace(" ", "")
    if value and not _VERSIONS.fullmatch(value):
        raise RuleError("`versions` must be like '>=0.15,<0.19'")
    return value


EXPLANATIONS = "explanations.yaml"
_EXPLANATION_FIELDS = frozenset(
    {"cause", "explains", "because", "first", "slack", "same_platform", "database"}
)


def read_explanations(folder: Path, faults: list[RuleMistake]) -> list[Explanation]:
    """Read the explanations of a folder; mistakes are added to `faults`."""
    path = folder / EXPLANATIONS
    if not path.is_file():
        return []
    explanations: list[Explanation] = []
    for number, raw in mappings(path, "explanations", faults):
        try:
            explanations += _explanations(raw)
        except RuleError as wrong:
            faults.append(RuleMistake(path, number, str(wrong)))
    if circle := _circle(explanations):
        faults.append(RuleMistake(path, 1, f"goes in a circle: {' → '.join(circle)}"))
        return []
    return explanations


def _explanations(raw: Mapping[str, Any]) -> list[Explanation]:
    """Read one entry; `because` may have the sentences of several causes."""
    allow(raw, _EXPLANATION_FIELDS)
    because, explains = raw.get("because"), texts(raw, "explains")
    sentences: Mapping[str, Any] = (
        because
        if isinstance(because, dict) and "cause" not in raw
        else {text(raw, "cause"): text(raw, "because")}
    )
    for code in (*sentences, *explains):
        if not (isinstance(code, str) and CODE.fullmatch(code)):
            raise RuleError(f"{code!r} is not a code: capitals, digits and hyphens")
    if not explains or not sentences:
        raise RuleError(f"`{'because' if explains else 'explains'}` is missing")
    return [
        Explanation(
            cause,
            explains,
            text(sentences, cause),
            flag(raw, "first"),
            span(raw, "slack", "10m"),
            flag(raw, "same_platform"),
            text(raw, "database", ""),
        )
        for cause in sentences
    ]


def _circle(explanations: Iterable[Explanation]) -> list[str]:
    """Return a chain of codes in which a code explains itself; empty if there is none."""
    follows: dict[str, set[str]] = {}
    for explanation in explanations:
        follows.setdefault(explanation.code, set()).update(explanation.explains)
    done: set[str] = set()
    for start in sorted(follows):
        way: list[tuple[str, Iterator[str]]] = []
        code: str | None = start
        while code is not None or way:
            if code is not None and code in (walked := [one for one, _ in way]):
                return [*walked[walked.index(code) :], code]
            if code is not None and code not in done:
                way.append((code, iter(sorted(follows.get(code, ())))))
            if not way:
                break
            code = next(way[-1][1], None)
            if code is None:
                done.add(way.pop()[0])
    return []


SHORTEST = 5
"""Shorter literals are in many lines, even if no other pattern has them."""


def with_rare_literals(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules with the literals that the fewest of them have."""
    rules = list(rules)
    sets = {line.pattern: _sets(line) for rule in rules for line in rule.lines}
    count = Counter(one for found in sets.values() for one in {*_flat(found)})
    chosen = {pattern: _rarest(found, count) for pattern, found in sets.items()}

    def better(line: LinePattern) -> LinePattern:
        return line._replace(literals=chosen[line.pattern] or line.literals)

    return [rule.with_lines(better) for rule in rules]


def _sets(line: LinePattern) -> list[tuple[str, ...]]:
    """Return sets of literals of which one is in every line; the one that was chosen is first."""
    if line.exception or not line.literals:
        return [tuple(line.literals)]  # the exception is searched in a text that is made of lines
    literal_sets = [
        literal_set
        for literal_set in patterns.literal_sets(line.pattern)
        if len(min(literal_set, key=len)) >= SHORTEST
    ]
    return [tuple(line.literals), *literal_sets]


def _flat(sets: Iterable[Sequence[str]]) -> Iterable[str]:
    return (literal for one in sets for literal in one)


def _rarest(sets: Sequence[tuple[str, ...]], count: Mapping[str, int]) -> tuple[str, ...]:
    return min(sets, key=lambda one: sum(count[literal] for literal in one))
