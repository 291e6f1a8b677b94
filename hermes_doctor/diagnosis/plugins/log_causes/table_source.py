"""Read the tables of causes, places, operations and successes from YAML; report every mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Severity
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import (
    FAMILIES,
    FIELDS,
    LONGEST_TITLE,
    Cause,
    Signs,
)
from hermes_doctor.diagnosis.plugins.log_causes.errno_table import ERRORS
from hermes_doctor.diagnosis.plugins.log_causes.place import (
    OPERATIONS,
    OUTCOMES,
    PARTS,
    WORK,
    Phrases,
    PlaceRow,
    PlaceTables,
    SuccessRow,
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
    text,
    texts,
)

FOLDER = "causes"
LONGEST_TEXT = 160
_CAUSE_FIELDS = frozenset({
    "name", "rank", "code", "codes", "by_part", "by_platform", "title", "detail", "advice",
    "transient", "errors", "exceptions", "texts", "examples", "near", "severity", "lines",
    "unless_ok", "fix",
})  # fmt: skip
_CLASS = re.compile(r"[A-Za-z_]\w{2,60}")
_SLOT = re.compile(r"\{(\w+)\}")


class CauseSample(NamedTuple):
    """Texts that name a cause, and similar ones that do not."""

    cause: Cause
    examples: tuple[str, ...]
    near: tuple[str, ...]


class CauseSource(NamedTuple):
    """The causes of a folder, how they are recognised, and the mistakes."""

    causes: tuple[tuple[Cause, Signs], ...]
    samples: tuple[CauseSample, ...]
    faults: tuple[RuleMistake, ...]


def read_causes(folder: Path) -> CauseSource:
    """Read the causes of a folder of log rules; each file is a family."""
    causes: dict[str, tuple[Cause, Signs]] = {}
    samples: list[CauseSample] = []
    faults: list[RuleMistake] = []
    owners: dict[str, str] = {}
    for path in sorted((folder / FOLDER).glob("*.yaml")):
        if path.stem not in FAMILIES:
            faults.append(RuleMistake(path, 1, f"is not one of {', '.join(FAMILIES)}"))
            continue
        for number, raw in mappings(path, "causes", faults):
            try:
                cause, signs = _cause(raw, path.stem)
                if cause.name in causes:
                    raise RuleError(f"there is another cause {cause.name!r}")
                for sign in (*signs.errors, *signs.exceptions):
                    if owners.setdefault(sign, cause.name) != cause.name:
                        raise RuleError(f"{sign} belongs to {owners[sign]!r}")
                samples.append(_sample(cause, raw))
            except RuleError as wrong:
                name = raw.get("name")
                about = f"cause {name}: " if isinstance(name, str) else ""
                faults.append(RuleMistake(path, number, f"{about}{wrong}"))
                continue
            causes[cause.name] = cause, signs
    return CauseSource(tuple(causes.values()), tuple(samples), tuple(faults))


def _cause(raw: Mapping[str, Any], family: str) -> tuple[Cause, Signs]:
    allow(raw, _CAUSE_FIELDS)
    if not ID.fullmatch(text(raw, "name")):
        raise RuleError("`name` is made of small letters, digits and hyphens")
    rank = raw.get("rank")
    if isinstance(rank, bool) or not isinstance(rank, int) or not 1 <= rank <= 99:
        raise RuleError("`rank` must be a number from 1 to 99")
    cause = Cause(
        text(raw, "name"),
        family,
        rank,
        text(raw, "code"),
        texts(raw, "codes"),
        _codes(raw, "by_part", PARTS),
        text(raw, "title"),
        " ".join(text(raw, "detail", "").split()),
        " ".join(text(raw, "advice").split()),
        flag(raw, "transient"),
        choice(raw, "severity", ["", *(severity.value for severity in Severity)], ""),
        count(raw, "lines", 1),
        texts(raw, "unless_ok"),
        text(raw, "fix", ""),
        _codes(raw, "by_platform"),
    )
    for code in sorted(cause.all_codes):
        if not CODE.fullmatch(code):
            raise RuleError(f"{code!r} is not a code: capitals, digits and hyphens")
    _insist(cause)
    signs = _signs(raw)
    if not any(signs):
        raise RuleError("needs `errors`, `exceptions` or `texts`")
    return cause, signs


def _codes(raw: Mapping[str, Any], name: str, known: Sequence[str] = ()) -> Mapping[str, str]:
    """Return the codes by the part or the platform that they are for."""
    failure = raw.get(name, {})
    if not isinstance(failure, dict) or not all(isinstance(one, str) for one in failure.values()):
        raise RuleError(f"`{name}` must be a mapping to codes")
    for key in failure:
        if not isinstance(key, str) or (known and key not in known):
            raise RuleError(f"`{name}` names {key!r}, which is not one of {', '.join(known)}")
    return dict(failure)


def _insist(cause: Cause) -> None:
    """Refuse texts that are too long or have unknown fields."""
    full, _, plain = cause.title.partition(" | ")
    if max(len(_SLOT.sub("", full)), len(plain)) > LONGEST_TITLE:
        raise RuleError(f"`title` is longer than {LONGEST_TITLE} characters")
    if "{" in full and not plain:
        raise RuleError("`title` needs a form without fields after ` | `")
    if "{" in plain:
        raise RuleError("`title` has a field after ` | `")
    if not cause.severity and (cause.lines > 1 or cause.unless_ok or cause.fix):
        raise RuleError("`lines`, `unless_ok` and `fix` need `severity`")
    for name in ("title", "detail", "advice"):
        said = getattr(cause, name)
        if name != "title" and len(said) > LONGEST_TEXT:
            raise RuleError(f"`{name}` is longer than {LONGEST_TEXT} characters")
        if not set(_SLOT.sub("", said)).isdisjoint("{}"):
            raise RuleError(f"`{name}` may use braces only for {{name}}")
        for field in _SLOT.findall(said):
            if name != "title" or field not in FIELDS:
                raise RuleError(f"`{name}` may not name {{{field}}}")


def _signs(raw: Mapping[str, Any]) -> Signs:
    for name in texts(raw, "errors"):
        if name not in ERRORS:
            raise RuleError(f"`errors` names {name!r}, which is not known")
    for name in texts(raw, "exceptions"):
        if not _CLASS.fullmatch(name):
            raise RuleError(f"`exceptions` names {name!r}, which is not the name of a class")
    found = []
    for pattern in texts(raw, "texts"):
        for fault in patterns.faults(pattern, FIELDS):
            raise RuleError(f"`texts`: {pattern!r} {fault}")
        literals = patterns.needed_literals(pattern)
        if not literals:
            raise RuleError(f"`texts`: {pattern!r} has no three letters that are in every match")
        found.append((pattern, literals))
    return Signs(texts(raw, "errors"), texts(raw, "exceptions"), tuple(found))


def _sample(cause: Cause, raw: Mapping[str, Any]) -> CauseSample:
    sample = CauseSample(cause, texts(raw, "examples"), texts(raw, "near"))
    if len(sample.examples) < 2 or not sample.near:
        raise RuleError("needs two `examples` that name it and a `near` miss that does not")
    return sample


PLACES, PHRASES, SUCCESSES = "places", ("operations", "outcomes"), "successes"
NAMES = frozenset(f"{name}.yaml" for name in (PLACES, *PHRASES, SUCCESSES))
"""The files of a folder of log rules that are read here."""
_PLACE_FIELDS = frozenset(PlaceRow._fields)
_PHRASE_FIELDS = frozenset({"name", "phrases"})
_SUCCESS_FIELDS = frozenset(
    {"operations", "loggers", "place", "level", "pattern", "examples", "near"}
)
_LEVELS = ["debug", "info", "warning", "error"]
Row = TypeVar("Row", PlaceRow, Phrases, SuccessRow)


class SuccessSample(NamedTuple):
    """Example lines of a success, which its tests match."""

    row: SuccessRow
    examples: Sequence[str]
    near: Sequence[str]


class PlaceSource(NamedTuple):
    """The tables of a folder, the samples of successes, and the mistakes that were left out."""

    tables: PlaceTables
    samples: Sequence[SuccessSample]
    faults: Sequence[RuleMistake]


def read_places(folder: Path) -> PlaceSource:
    """Read the tables of a folder; a file that is missing is an empty table."""
    faults: list[RuleMistake] = []
    places = _table(folder, PLACES, _place, faults, lambda row: (row.name, *row.loggers))
    operations = _table(folder, PHRASES[0], _operation, faults, lambda row: (row.name,))
    outcomes = _table(folder, PHRASES[1], _outcome, faults, lambda row: (row.name,))
    samples: list[SuccessSample] = []

    def success(raw: Mapping[str, Any]) -> SuccessRow:
        row, sample = _success(raw, {row.name for row in places})
        samples.append(sample)
        return row

    successes = _table(folder, SUCCESSES, success, faults, lambda _: ())
    return PlaceSource(PlaceTables(places, operations, outcomes, successes), samples, faults)


def _table(
    folder: Path,
    name: str,
    make: Callable[[Mapping[str, Any]], Row],
    faults: list[RuleMistake],
    keys: Callable[[Row], Sequence[str]],
) -> list[Row]:
    """Read the rows of a file; names that must be unique are the keys of a row."""
    path = folder / f"{name}.yaml"
    rows: list[Row] = []
    if not path.is_file():
        return rows
    known: set[str] = set()
    for line, raw in mappings(path, name, faults):
        try:
            row = make(raw)
            if again := known.intersection(keys(row)):
                raise RuleError(f"names {min(again)!r}, which another one has")
        except RuleError as wrong:
            about = f"{raw['name']}: " if isinstance(raw.get("name"), str) else ""
            faults.append(RuleMistake(path, line, f"{about}{wrong}"))
            continue
        known.update(keys(row))
        rows.append(row)
    return rows


def _place(raw: Mapping[str, Any]) -> PlaceRow:
    allow(raw, _PLACE_FIELDS)
    name, part = text(raw, "name"), choice(raw, "part", list(PARTS))
    of_platform = (
        f"gateway.platforms.{name}",
        f"hermes_plugins.{name}_platform",
        f"plugins.platforms.{name}",
    )
    row = PlaceRow(
        part=part,
        name=name,
        label=text(raw, "label", name),
        loggers=(*(of_platform if part == "platform" else ()), *texts(raw, "loggers")),
        words=texts(raw, "words"),
        common=flag(raw, "common"),
        shared=flag(raw, "shared"),
        operation=choice(raw, "operation", list(OPERATIONS), WORK),
    )
    if not row.loggers and not row.words:
        raise RuleError("needs `loggers` or `words`")
    if any(len(word.strip()) < 2 for word in row.words):
        raise RuleError("`words` have at least two characters")
    if row.common and not row.words:
        raise RuleError("`common` is about `words`, and there are none")
    return row


def _operation(raw: Mapping[str, Any]) -> Phrases:
    return _phrases(raw, OPERATIONS)


def _outcome(raw: Mapping[str, Any]) -> Phrases:
    return _phrases(raw, OUTCOMES)


def _phrases(raw: Mapping[str, Any], names: Sequence[str]) -> Phrases:
    allow(raw, _PHRASE_FIELDS)
    phrases = texts(raw, "phrases")
    if not phrases:
        raise RuleError("needs `phrases`")
    for phrase in phrases:
        for fault in patterns.faults(phrase, ()):
            raise RuleError(f"phrase {phrase!r} {fault}")
    found = tuple((phrase, patterns.small_literals(phrase)) for phrase in phrases)
    return Phrases(choice(raw, "name", list(names)), found)


def _success(raw: Mapping[str, Any], places: set[str]) -> tuple[SuccessRow, SuccessSample]:
    allow(raw, _SUCCESS_FIELDS)
    written = text(raw, "pattern")
    for fault in patterns.faults(written, ("platform",)):
        raise RuleError(f"`pattern` {fault}")
    place = text(raw, "place", "")
    if place and place not in places:
        raise RuleError(f"`place` {place!r} is not in {PLACES}.yaml")
    operations = texts(raw, "operations")
    for name in operations:
        if name not in OPERATIONS:
            raise RuleError(f"`operations` must be of {', '.join(OPERATIONS)}")
    row = SuccessRow(
        pattern=written,
        operations=operations,
        loggers=texts(raw, "loggers"),
        place=place,
        level=choice(raw, "level", _LEVELS, "info").upper(),
        literals=patterns.literals(written),
    )
    sample = SuccessSample(row, texts(raw, "examples"), texts(raw, "near"))
    if not sample.examples or not sample.near:
        raise RuleError("needs `examples` that match and `near` misses that do not")
    return row, sample
