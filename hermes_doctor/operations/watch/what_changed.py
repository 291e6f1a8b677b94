"""Tells what has changed in a home since it was examined, at a fraction of the cost of that.

Nothing has changed if all of this is true:

- each file and folder at which the examination looked is as it was, also each missing one
  (`core/system/looked_at.py`);
- the questions about processes, connections and the like have the same answers (`live_facts`);
- the supervisor has kept no new line of the gateway's output;
- no line of a log has become so old that it counts in another way;
- the examination was less than `FULL_EVERY` seconds ago, because some things show no other sign.
"""

from __future__ import annotations

import time

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import cached_calls, looked_at
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.watch import live_facts

_WHAT = "changes of the home"
LIMIT = 10.0
"""Seconds for the whole question, as on an idle machine."""
FULL_EVERY = 300.0
"""Seconds after which the home is examined although nothing seems to have changed."""


class Examined(NamedTuple):
    """What an examination depended on."""

    began: float
    """When it began, by the wall clock."""
    monotonic: float
    """The same by the monotonic clock."""
    until: float
    """The moment from which on the same files may mean something else."""
    paths: dict[str, looked_at.State]
    facts: dict[str, str]


class Look:
    """A look at a home in the process of a round; it may become an examination."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._began, self._monotonic = time.time(), time.monotonic()
        self._facts: dict[str, str] = {}
        self._recorder: looked_at.Recorder | None = None

    def change_since(self, last: Examined | None) -> str | None:
        """Return what has changed since an examination; None if nothing has."""
        try:
            self._facts, change = cached_calls.limited(
                _WHAT, LIMIT, lambda: self._facts_and_change(last)
            )
        except CouldNotLook as why:  # the examination finds out where the disk does not answer
            return str(why)
        return change

    def _facts_and_change(self, last: Examined | None) -> tuple[dict[str, str], str | None]:
        cached_calls.enter(cached_calls.WatchedThread())  # no probe needs a thread of its own
        probes = Probes(self._home, paid_requests=False)
        facts = live_facts.ask(probes)
        return facts, self._change_since(last, probes, facts)

    def _change_since(
        self, last: Examined | None, probes: Probes, facts: dict[str, str]
    ) -> str | None:
        if last is None or self._monotonic - last.monotonic >= FULL_EVERY:
            return "time for a full examination"
        if not last.began <= self._began < last.until:
            return "age of the log lines"
        for name, answer in facts.items():
            if last.facts.get(name) != answer:
                return name
        if path := looked_at.find_change(last.paths):
            return path
        return "output of the gateway" if live_facts.has_new_output(probes, last.began) else None

    def record(self) -> None:
        """Record what the examination looks at that begins now."""
        self._recorder = looked_at.record()

    def examined(self) -> Examined | None:
        """Return what the examination depended on; None if that is not known.

        What changed while it went on may have been examined before or after its change.
        """
        recorder = self._recorder
        if recorder is None or not recorder.is_complete() or not self._facts:
            return None
        try:
            now, _ = cached_calls.limited(_WHAT, LIMIT, lambda: self._facts_and_change(None))
        except CouldNotLook:
            return None
        if now != self._facts:
            return None
        return Examined(self._began, self._monotonic, recorder.until, recorder.states, self._facts)
