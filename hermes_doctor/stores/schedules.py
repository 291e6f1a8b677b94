"""Find job schedules from which Hermes cannot determine a next run; only certain ones count.

The grammar of cron expressions is that of the library which Hermes uses.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hermes_doctor.lazy import pattern

_HIGHEST = (59, 23, 31, 12, 7)
"""The maximum of minutes, hours, days, months and days of the week."""
_ANYWHERE = frozenset("hrlw")
_MONTHS = frozenset(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
)
_DAYS = frozenset(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])
_WORDS = (_ANYWHERE, _ANYWHERE, _ANYWHERE, _ANYWHERE | _MONTHS, _ANYWHERE | _DAYS, *[_ANYWHERE] * 2)
_SHORT = frozenset(
    ["@midnight", "@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"]
)
_PART = pattern(r"[\da-z*/,#?()-]+")
_WORD = pattern(r"[a-z]+")
_NUMBERS = pattern(r"(?<![/#(\d-])(\d{1,9})(?:-(\d{1,9}))?")


def has_no_next_run(schedule: dict[str, Any]) -> bool:
    """Tell whether Hermes fails to determine the next run of a schedule."""
    kind = schedule.get("kind")
    if kind == "interval":
        return not _lasts(schedule.get("minutes"))
    return kind == "cron" and not _may_be_read(schedule.get("expr"))


def _lasts(minutes: Any) -> bool:
    try:
        return bool(datetime.now(UTC) + timedelta(minutes=minutes))
    except (TypeError, ValueError, OverflowError):
        return False


def _may_be_read(expression: object) -> bool:
    if not isinstance(expression, str):
        return False
    parts = expression.lower().split()
    if len(parts) == 1 and parts[0] in _SHORT:
        return True
    return 5 <= len(parts) <= 7 and all(
        _PART.fullmatch(part)
        and _WORDS[number].issuperset(_WORD.findall(part))
        and (number >= len(_HIGHEST) or _fits(part, _HIGHEST[number]))
        for number, part in enumerate(parts)
    )


def _fits(part: str, highest: int) -> bool:
    found = (number for pair in _NUMBERS.findall(part) for number in pair if number)
    return all(int(number) <= highest for number in found)
