"""Counts the repairs of a watch against its budget, and delays repeats of failed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hermes_doctor.operations.watch.events import Key
from hermes_doctor.operations.watch.state import FailedRepair
from hermes_doctor.repair.schedule.durations import Budget

MAX_TRIES = 3
"""Failed repairs of one problem before the watch leaves it to a person."""


@dataclass
class RepairBudget:
    """The repairs and failures so far.

    Times are seconds on the clock that runs as long as the machine is up.
    """

    budget: Budget
    repairs: list[float] = field(default_factory=list)
    failures: dict[Key, FailedRepair] = field(default_factory=dict)

    def since(self, now: float) -> None:
        """Limit failures read from a file to what this budget could have caused."""
        for key, (times, until) in self.failures.items():
            tried = min(max(times, 1), MAX_TRIES)
            self.failures[key] = FailedRepair(tried, min(until, now + self._wait(tried)))

    def free_at(self, now: float) -> float | None:
        """When the budget allows the next repair; None if it does now."""
        self.repairs = [at for at in self.repairs if now - self.budget.period < at <= now]
        if len(self.repairs) < self.budget.limit:
            return None
        return self.repairs[-self.budget.limit] + self.budget.period

    def spend(self, now: float) -> None:
        """Count one repair."""
        self.repairs.append(now)

    def fail(self, key: Key, now: float) -> FailedRepair:
        """Record a failure: wait for the budget's period, twice as long each time."""
        times = self.failures[key].times + 1 if key in self.failures else 1
        failure = FailedRepair(times, now + self._wait(times))
        self.failures[key] = failure
        return failure

    def _wait(self, times: int) -> float:
        return float(self.budget.period * 2 ** (times - 1))

    def may_try(self, key: Key, now: float) -> bool:
        """Whether another attempt is allowed."""
        failure = self.failures.get(key)
        return failure is None or (failure.times < MAX_TRIES and now >= failure.until)

    def forget(self, current: Mapping[Key, object], now: float) -> None:
        """Drop the failures of findings that are gone and whose wait is over."""
        self.failures = {
            key: failure
            for key, failure in self.failures.items()
            if key in current or now < failure.until
        }
