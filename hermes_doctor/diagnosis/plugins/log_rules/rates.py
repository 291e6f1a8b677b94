"""Follow how the answer about a log changes with time, and how often a line is written.

Only the ages of lines change while nothing is written. A line that has no effect now has none
later, because lines only drop out, the oldest first. So the answer can change only when one that
counts reaches an age with which it is compared.

A threshold fits a storm. A line that a rule counts, that was rare for days and now comes back every
few hours, never reaches it; that is a rise. Only warnings are kept for days, and only rules with a
small threshold count, because a large one is for lines that are ordinary in small numbers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.diagnosis.plugins.log_rules.matcher import Match
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule
from hermes_doctor.hermes.logs.entry import LogEntry


class NextChange:
    """The next moment at which the answer may be another one."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.at = math.inf
        self.ages: Iterable[float] = ()
        """The ages with which all lines are compared."""

    def note_line(self, at: float) -> None:
        """Note a line that counts, or anything else that the answer depends on."""
        self.note_moments(at + age for age in self.ages)

    def note_moments(self, moments: Iterable[float]) -> None:
        """Note moments from which on something may be judged in another way."""
        self.at = min((self.at, *(at for at in moments if at >= self.now)))


DAY, HOUR = 86_400.0, 3600.0
_SMALL = 5
"""The largest threshold of a rule that is compared."""
_FEWEST, _HOURS = 3, 3
"""The fewest lines of the last day, and the fewest different hours in which they were written."""
_TIMES = 4
"""How many times as often as before they must be."""
_HISTORY, _FRESH = 2 * DAY, 6 * HOUR
_MOST, _KEYS = 200, 500
AGES = (_FRESH, DAY, _HISTORY)
"""The ages with which the lines of a rule are compared."""
_SERIOUS = ("WARNING", "ERROR", "CRITICAL")

Key = tuple[tuple[str, str], ...]


class Rise(NamedTuple):
    """How often a line was written in the last day, and in the days before."""

    recent: int
    older: int
    days: int


class _Seen:
    """The lines of one rule about one thing."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.older = 0
        self.recent: deque[Match] = deque(maxlen=_MOST)


class Rates:
    """Counts the lines of all rules for which history matters."""

    def __init__(self, now: float, next_change: NextChange) -> None:
        self.now = now
        self._next_change = next_change
        self.oldest: float | None = None
        """When the first warning was written that is still in the log."""
        self.started = 0.0
        """When the gateway was last started."""
        self.seen: dict[tuple[str, Key], _Seen] = {}

    def date(self, entry: LogEntry) -> None:
        """Note how far back the log of warnings goes; entries arrive in order of time."""
        if self.oldest is None and entry.level in _SERIOUS and entry.kind == "log":
            self.oldest = entry.at

    def note(self, match: Match, key: Key) -> None:
        """Count a line."""
        place = match.rule.id, key
        one = self.seen.get(place)
        if one is None:
            if len(self.seen) >= _KEYS:
                return
            one = self.seen[place] = _Seen(match.rule)
        if match.entry.at < self.now - DAY:
            one.older += 1
        else:
            one.recent.append(match)

    def risen(self) -> Iterator[tuple[Rule, Key, list[Match], Rise]]:
        """Yield the lines that are written much more often than in the days before."""
        oldest = self.now if self.oldest is None else self.oldest
        if oldest > self.now - _HISTORY:
            return  # there is nothing to compare with
        days = (self.now - oldest) / DAY - 1
        for (_, key), one in self.seen.items():
            number = len(one.recent)
            hours = {int(match.entry.at // HOUR) for match in one.recent}
            if not (len(one.recent) >= max(one.rule.threshold, _FEWEST) and len(hours) >= _HOURS):
                continue
            self._next_change.note_moments([self.now])  # the number of days changes all the time
            last = one.recent[-1].entry.at
            over = last <= self.started and not one.rule.outlives_start
            if over or last < self.now - _FRESH or number < _TIMES * one.older / days:
                continue
            yield one.rule, key, list(one.recent), Rise(number, one.older, round(days))


def is_compared(rule: Rule) -> bool:
    """Whether the lines of a rule are compared with their history."""
    return (
        1 < rule.threshold <= _SMALL
        and rule.source == "log"
        and rule.line.level in _SERIOUS
        and (rule.within or rule.window) < DAY
        and not (rule.days or rule.cleared_by or rule.followed_by or rule.per_session)
    )
