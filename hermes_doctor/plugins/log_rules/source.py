"""Read log rules from YAML and report every mistake with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook, Severity
from hermes_doctor.plugins.log_rules import patterns
from hermes_doctor.plugins.log_rules.rule import FIELDS, KINDS, LEVELS, LinePattern, Rule
from hermes_doctor.system.files import read_head

MOST = 1 << 20
OTHER_TABLES = ("explanations.yaml", "places.yaml", "operations.yaml", "successes.yaml")
"""Files of a folder that hold no rules."""
MOST_NODES, DEEPEST = 50_000, 50
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
CODE = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*")
_SPAN = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
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
    "incident_by", "counts_lives",
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


class RuleMistake(NamedTuple):
    """A mistake in a file of rules, and where it is."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}: {self.what}"


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


class RuleError(Exception):
    """A mistake; its rule is left out and the others are read."""


def read(folder: Path) -> RuleSource:
    """Read all rules of a folder, in the order of the files."""
    rules: dict[str, Rule] = {}
    samples: list[Sample] = []
    faults: list[RuleMistake] = []
    for path in sorted(folder.glob("*.yaml")):
        if path.name in OTHER_TABLES:
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


def mappings(
    path: Path, what: str, faults: list[RuleMistake]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield each item of a file's only list, with the line on which it starts."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data, taken = read_head(path, MOST)
        if taken.size > MOST:
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
    if node is None or not isinstance(items, list) or set(content) != {what}:
        faults.append(RuleMistake(path, 1, f"must hold `{what}:`, a list, and nothing else"))
        return
    nodes = node.value[0][1].value
    for one, raw in zip(nodes, items, strict=True):
        number = one.start_mark.line + 1
        if isinstance(raw, dict) and all(isinstance(key, str) for key in raw):
            yield number, raw
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


def _rule(raw: Mapping[str, Any], made: list[Sample]) -> Rule:
    allow(raw, _RULE_FIELDS)
    line = _line(raw)
    follow = _follower(raw["followed_by"]) if "followed_by" in raw else None
    code, fix = text(raw, "code"), raw.get("fix")
    if not CODE.fullmatch(code):
        raise RuleError(f"`code` {code!r} is made of capitals, digits and hyphens")
    if not _ID.fullmatch(text(raw, "id")):
        raise RuleError("`id` is made of small letters, digits and hyphens")
    if fix is not None and not (isinstance(fix, str) and _ID.fullmatch(fix)):
        raise RuleError("`fix` is the id of a fix")
    platform = text(raw, "platform", "")
    title = text(raw, "title")
    taken = set(re.compile(line.pattern).groupindex) | ({"platform"} if platform else set())
    for field in ("title", "detail", "next"):
        shown = text(raw, field, "")
        if not set(_PLACE.sub("", shown)).isdisjoint("{}"):
            raise RuleError(f"`{field}` may use braces only for {{name}}")
        for name in _PLACE.findall(shown):
            if name not in taken and (field, name) != ("next", "key"):  # the settings give the key
                raise RuleError(f"`{field}` names {{{name}}}, which the pattern does not take")
    rule = Rule(
        id=text(raw, "id"),
        code=code,
        severity=_choice(raw, "severity", [one.value for one in Severity]),
        title=title,
        line=line,
        detail=" ".join(text(raw, "detail", "").split()),
        platform=platform,
        source=_choice(raw, "source", list(KINDS), "log"),
        versions=_versions(raw),
        window=span(raw, "window", "2h"),
        threshold=_count(raw, "threshold", 1),
        within=span(raw, "within", "0s"),
        followed_by=follow[0] if follow else None,
        follows_within=follow[1] if follow else 0.0,
        cleared_by=_lines(raw, "cleared_by"),
        given_up_by=_lines(raw, "given_up_by"),
        answered_by=_lines(raw, "answered_by"),
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
        days=_count(raw, "days", 1) if "days" in raw else 0,
        database=text(raw, "database", ""),
        counts_lives=flag(raw, "counts_lives"),
    )
    _insist(rule, raw, taken)
    made.append(Sample(rule, line, texts(raw, "examples"), texts(raw, "near")))
    if not made[0].examples or not made[0].near:
        raise RuleError("needs `examples` that match and `near` misses that do not")
    if rule.followed_by:
        made.append(_sample(rule, rule.followed_by, raw["followed_by"]))
    for name in ("cleared_by", "given_up_by", "answered_by"):
        for other, written in zip(getattr(rule, name), raw.get(name, ()), strict=True):
            made.append(_sample(rule, other, written))
    return rule


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
    if rule.given_up_by and not rule.settle:
        raise RuleError("`given_up_by` needs `settle`")
    if text(raw, "ages_out", "") and rule.cleared_by:
        raise RuleError("`ages_out` is for a rule without `cleared_by`")


def _sample(rule: Rule, line: LinePattern, raw: Mapping[str, Any]) -> Sample:
    return Sample(rule, line, texts(raw, "examples"), texts(raw, "near"))


def _line(raw: Mapping[str, Any], level: str = "warning") -> LinePattern:
    pattern = text(raw, "pattern")
    for fault in patterns.faults(pattern, FIELDS):
        raise RuleError(f"`pattern` {fault}")
    names = [name.lower() for name in LEVELS]
    return LinePattern(
        pattern=_ANYWHERE % pattern if flag(raw, "anywhere") else pattern,
        literals=patterns.literals(pattern),
        level=_choice(raw, "level", names, level).upper(),
        loggers=texts(raw, "logger"),
        traceback=flag(raw, "traceback"),
        exception=flag(raw, "exception"),
    )


def _follower(raw: Any) -> tuple[LinePattern, float]:
    if not isinstance(raw, dict):
        raise RuleError("`followed_by` is a mapping")
    allow(raw, _LINE_FIELDS | {"within"})
    if not texts(raw, "examples"):
        raise RuleError("`followed_by` needs `examples`")
    return _line(raw), span(raw, "within", "5m")


def _lines(raw: Mapping[str, Any], name: str) -> tuple[LinePattern, ...]:
    found = raw.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise RuleError(f"`{name}` is a list of mappings")
    for one in found:
        allow(one, _LINE_FIELDS)
        if not texts(one, "examples"):
            raise RuleError(f"`{name}` needs `examples`")
    return tuple(_line(one, "info") for one in found)


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


def _count(raw: Mapping[str, Any], name: str, default: int) -> int:
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


def _choice(raw: Mapping[str, Any], name: str, known: list[str], default: str = "") -> str:
    value = raw.get(name, default)
    if value not in known:
        raise RuleError(f"`{name}` must be one of {', '.join(known)}")
    return str(value)


def _versions(raw: Mapping[str, Any]) -> str:
    value = text(raw, "versions", "").replace(" ", "")
    if value and not _VERSIONS.fullmatch(value):
        raise RuleError("`versions` must be like '>=0.15,<0.19'")
    return value
