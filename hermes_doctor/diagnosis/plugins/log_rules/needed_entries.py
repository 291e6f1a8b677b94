"""Which entries of the logs the rules need, so that the others are not read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from hermes_doctor.diagnosis.plugins.log_rules.entry_causes import EntryCauses
from hermes_doctor.diagnosis.plugins.log_rules.failures import WINDOW
from hermes_doctor.diagnosis.plugins.log_rules.incident import DAY, is_adapter
from hermes_doctor.diagnosis.plugins.log_rules.matcher import Matcher
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule
from hermes_doctor.hermes.logs.entry import WantedSince

LOGS = ("log", "stderr", "journal")
"""The sources that go on all the time; the others are small records."""
START = ("gateway.run", "Starting Hermes Gateway")
"""Logger and first words of the line with which the gateway starts."""


class NeededEntries:
    """Tells since when entries are needed, and of which levels and loggers."""

    def __init__(
        self,
        rules: Sequence[Rule],
        now: float,
        matcher: Callable[[], Matcher],
        causes: EntryCauses | None,
        *,
        adapters: bool,
    ) -> None:
        """`matcher` is called for the first line; `adapters`: whether a rule needs their lines."""
        self._rules, self._now, self._matcher = rules, now, matcher
        self._causes, self._adapters = causes, adapters
        # Each session has heads of its own in a log, so the same question comes hundreds of times.
        self.wanted = cache(self._wanted)
        self.may_begin = cache(self._may_begin)

    @property
    def windows(self) -> set[float]:
        """The ages from which on entries are not needed any more."""
        return {self._now - at for at in (self.since(), self.since(*LOGS), self.since_days())}

    def since(self, *kinds: str) -> float:
        """Return the earliest time that any rule about these sources needs."""
        windows = [
            min(rule.window, DAY) if rule.days else rule.window
            for rule in self._rules
            if not kinds or not set(rule.kinds).isdisjoint(kinds)
        ]
        return self._now - max(windows, default=0.0)

    def since_days(self) -> float:
        """Return the earliest time of a warning that is needed, such as by rules about days."""
        windows = [rule.window for rule in self._rules if rule.days]
        return self._now - max((*windows, WINDOW if self._causes else 0.0))

    def _wanted(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger matter; only log files name a logger."""
        return (
            self._matcher().wanted(level, logger)
            or self._is_needed(level, logger)
            or self._is_read(level, logger, ends=True)
        )

    def _may_begin(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger can be more than the end of an incident."""
        return (
            self._matcher().may_begin(level, logger)
            or self._is_needed(level, logger)
            or self._is_read(level, logger, ends=False)
        )

    def wanted_since(self, ends: float) -> WantedSince:
        """Return what tells since when entries matter: since `ends` if they can only end one."""
        return lambda level, logger: -math.inf if self.may_begin(level, logger) else ends

    def _is_needed(self, level: str, logger: str) -> bool:
        if not logger or logger == START[0]:
            return True
        return self._adapters and is_adapter(level, logger)

    def _is_read(self, level: str, logger: str, *, ends: bool) -> bool:
        return self._causes is not None and self._causes.is_read(level, logger, ends=ends)
