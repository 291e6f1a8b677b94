"""Until when an answer about logs stays the same while nothing is written into them.

Only the ages of lines change then. A line that has no effect now has none later, because lines only
drop out, the oldest first. So the answer can change only when one that counts reaches an age with
which it is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


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
