"""Retention rule: keep the newest backup of each of the last days, weeks and months."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from hermes_doctor.lazy import NamedTuple


class Retention(NamedTuple):
    """How many daily, weekly and monthly backups to keep; all zero means no rule."""

    daily: int = 0
    weekly: int = 0
    monthly: int = 0

    def __bool__(self) -> bool:
        return any(self)

    def ids_to_keep(self, known: Sequence[tuple[str, datetime]]) -> set[str]:
        """The ids to keep, of backups given with their times."""
        spans: tuple[tuple[int, Callable[[datetime], object]], ...] = (
            (self.daily, lambda at: at.date()),
            (self.weekly, lambda at: at.isocalendar()[:2]),
            (self.monthly, lambda at: (at.year, at.month)),
        )
        found: set[str] = set()
        for most, span in spans:
            newest: dict[object, str] = {}
            for id, at in sorted(known, key=lambda one: (one[1], one[0]), reverse=True):
                newest.setdefault(span(at.astimezone()), id)
            found |= set(list(newest.values())[:most])
        return found

    @property
    def options(self) -> list[str]:
        """The command-line options for this rule."""
        named = zip(("--daily", "--weekly", "--monthly"), self, strict=True)
        return [word for name, number in named if number for word in (name, str(number))]
