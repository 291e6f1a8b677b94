"""Read `explanations.yaml`: which finding explains which others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.diagnosis.plugins.log_rules.rule import Explanation
from hermes_doctor.diagnosis.plugins.tables.yaml_lists import (
    CODE,
    RuleError,
    RuleMistake,
    allow,
    flag,
    mappings,
    span,
    text,
    texts,
)

NAME = "explanations.yaml"
_FIELDS = frozenset({"cause", "explains", "because", "first", "slack", "same_platform", "database"})


def read(folder: Path, faults: list[RuleMistake]) -> list[Explanation]:
    """Read the explanations of a folder; mistakes are added to `faults`."""
    path = folder / NAME
    if not path.is_file():
        return []
    explanations: list[Explanation] = []
    for number, raw in mappings(path, "explanations", faults):
        try:
            explanations.append(_explanation(raw))
        except RuleError as wrong:
            faults.append(RuleMistake(path, number, str(wrong)))
    if circle := _circle(explanations):
        faults.append(RuleMistake(path, 1, f"goes in a circle: {' → '.join(circle)}"))
        return []
    return explanations


def _explanation(raw: Mapping[str, Any]) -> Explanation:
    allow(raw, _FIELDS)
    codes = (text(raw, "cause"), *texts(raw, "explains"))
    for code in codes:
        if not CODE.fullmatch(code):
            raise RuleError(f"{code!r} is not a code: capitals, digits and hyphens")
    if len(codes) < 2:
        raise RuleError("`explains` is missing")
    return Explanation(
        codes[0],
        codes[1:],
        text(raw, "because"),
        flag(raw, "first"),
        span(raw, "slack", "10m"),
        flag(raw, "same_platform"),
        text(raw, "database", ""),
    )


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
