"""What healing has cost so far: repairs within the budget, and what failed and must wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.schedule.durations import Budget
from hermes_doctor.watch.events import Key

TRIES = 3
"""How often one problem is repaired in vain; after that a person has to look."""


class Failure(NamedTuple):
    """How often a repair failed, and until when it is not tried again."""

    times: int
    until: float


@dataclass
class Ledger:
    """Times are seconds on the clock that lasts as long as the machine runs."""

    budget: Budget
    repairs: list[float] = field(default_factory=list)
    failures: dict[Key, Failure] = field(default_factory=dict)

    def since(self, now: float) -> None:
        """Bring what was read from a file within what this budget could have brought about."""
        for key, (times, until) in self.failures.items():
            tried = min(max(times, 1), TRIES)
            self.failures[key] = Failure(tried, min(until, now + self._wait(tried)))

    def free_at(self, now: float) -> float | None:
        """When the budget allows the next repair; None when it does now."""
        self.repairs = [at for at in self.repairs if now - self.budget.period < at <= now]
        if len(self.repairs) < self.budget.most:
            return None
        return self.repairs[-self.budget.most] + self.budget.period

    def spend(self, now: float) -> None:
        """Count one repair."""
        self.repairs.append(now)

    def fail(self, key: Key, now: float) -> Failure:
        """It did not help: wait for the budget's period, and longer each time."""
        times = self.failures[key].times + 1 if key in self.failures else 1
        failure = Failure(times, now + self._wait(times))
        self.failures[key] = failure
        return failure

    def _wait(self, times: int) -> float:
        return float(self.budget.period * 2 ** (times - 1))

    def may(self, key: Key, now: float) -> bool:
        """Whether one more try is due."""
        failure = self.failures.get(key)
        return failure is None or (failure.times < TRIES and now >= failure.until)

    def forget(self, standing: Mapping[Key, object], now: float) -> None:
        """What is gone for as long as its wait lasted may be tried afresh when it comes again."""
        self.failures = {
            key: failure
            for key, failure in self.failures.items()
            if key in standing or now < failure.until
        }
