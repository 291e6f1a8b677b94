"""Decides whether a problem flaps, that is, keeps coming and going, by the method of Naemon.

The last 21 states are compared pairwise. Each of the 20 possible changes counts between 0.75 (the
oldest) and 1.25 (the newest). From 20 % on, the problem flaps; it has settled at 5 % or less. These
are the thresholds of Naemon's example configuration. The distance between them keeps the answer
itself from flapping.
"""

from __future__ import annotations

from hermes_doctor.core.lazy import NamedTuple

STATES = 21
STARTS, SETTLES = 20.0, 5.0
"""Percent."""
OLDEST, NEWEST = 0.75, 1.25
"""How much a change counts."""


class Flapping(NamedTuple):
    """The last states of one problem, one character each, oldest first."""

    states: str
    flaps: bool = False
    title: str = ""
    """How the problem was last called, which matters when it is gone."""
    check: str = ""
    muted: bool = False
    reported: str = ""
    """The worst state that was reported since it flaps; empty if none was."""

    @property
    def changes(self) -> int:
        """How often the state changed."""
        return sum(
            state != other for state, other in zip(self.states, self.states[1:], strict=False)
        )

    @property
    def is_steady(self) -> bool:
        """Whether there is nothing to remember: it does not flap and never changed."""
        return not self.flaps and not self.changes


def percent(states: str) -> float:
    """How much the states change, weighted by age, in percent."""
    recent = states[-STATES:].rjust(STATES, states[:1] or " ")
    weights = (OLDEST + (NEWEST - OLDEST) * place / (STATES - 2) for place in range(STATES - 1))
    pairs = zip(recent, recent[1:], weights, strict=False)
    return 100 * sum(weight for state, other, weight in pairs if state != other) / (STATES - 1)


def after(known: Flapping | None, before: str, now: str) -> Flapping:
    """Add a state; without known states, the problem was in the state `before` all the time."""
    states = known.states if known else before * STATES
    recent = (states + now)[-STATES:]
    share = percent(recent)
    was = known.flaps if known else False
    flaps = share > SETTLES if was else share >= STARTS
    return (known or Flapping(""))._replace(states=recent, flaps=flaps)
