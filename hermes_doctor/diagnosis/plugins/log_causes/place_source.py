"""Read the tables of places, operations, outcomes and successes, and report every mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hermes_doctor.core.lazy import NamedTuple
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
    RuleError,
    RuleMistake,
    allow,
    choice,
    flag,
    mappings,
    text,
    texts,
)

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


def read(folder: Path) -> PlaceSource:
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
    row = PlaceRow(
        part=choice(raw, "part", list(PARTS)),
        name=text(raw, "name"),
        label=text(raw, "label"),
        loggers=texts(raw, "loggers"),
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
