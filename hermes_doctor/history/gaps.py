"""The rules for gaps: how long the next record may take so that the time until then is known."""

from __future__ import annotations

from hermes_doctor.history.moments import HOUR

EVERY = 300
"""Seconds after which a round without a change is written."""
EVERY_SINGLE = 3600
"""The same for single rounds, which would have to load sqlite-utils each time (0.1 s)."""
SINGLE = 300.0
"""The usual seconds between single checks, those of cron."""
LONGEST_SPACING = 2 * HOUR
"""Single checks further apart than this leave the time between them unknown."""


def longest_gap(interval: float) -> int:
    """Seconds between two rounds that still count as watched: three intervals and a minute."""
    return int(3 * interval + 60)


def longest_single_gap(longest: int, spacing: int) -> int:
    """The same for single checks, which may be up to twice as far apart as the two before."""
    return max(longest, min(2 * spacing, LONGEST_SPACING))
