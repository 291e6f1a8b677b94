"""Decide whether a log rule applies to a Hermes release."""

from __future__ import annotations

import operator
import re

_PART = re.compile(r"([<>]=?|==|!=)([\d.]+)")
_TELLS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def applies_to(spec: str, release: tuple[int, ...] | None) -> bool:
    """Tell whether the rule applies to a release; every rule applies to an unknown one."""
    if not spec or release is None:
        return True
    return all(_TELLS[how](_padded(release), _parsed(other)) for how, other in _PART.findall(spec))


def _parsed(text: str) -> tuple[int, ...]:
    return _padded(tuple(int(part) for part in text.split(".")))


def _padded(release: tuple[int, ...]) -> tuple[int, ...]:
    return (*release, 0, 0, 0)[:3]
