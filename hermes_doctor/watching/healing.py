"""`--heal`: what is due is repaired by the same engine as `fix --apply`, within bounds.

Never while an answer is being written, up to a limit; never beyond the budget; and what did not
help is not tried again soon, nor for ever.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.examination import crash
from hermes_doctor.home import Home
from hermes_doctor.interrupts import Interrupted
from hermes_doctor.model import CouldNotLook, Finding, Report, Severity, Trouble
from hermes_doctor.plugins import Plugins
from hermes_doctor.probes import Probes
from hermes_doctor.watching import consent
from hermes_doctor.watching.answering import answering
from hermes_doctor.watching.clocks import Clock, span
from hermes_doctor.watching.events import Event, Key, Kind
from hermes_doctor.watching.ledger import TRIES, Ledger
from hermes_doctor.watching.memory import Memory, Store
from hermes_doctor.watching.signals import Signals

if TYPE_CHECKING:
    from hermes_doctor.journal import Journal
    from hermes_doctor.plan import Planned

ALL, OTHER = ("", "all"), ("", "watch")
"""What is held, where it is not one finding."""
PAUSE = 120.0
"""Seconds until a plan is made again for what could not be done."""


@dataclass
class Healer:
    """Repairs one home."""

    home: Home
    plugins: Plugins
    store: Store
    ledger: Ledger
    clock: Clock
    signals: Signals
    after: int
    patience: float
    agreed: frozenset[str] = frozenset()
    """Codes and fixes that the operator has agreed to although they ask."""
    vault: Path | None = None
    options: str = ""
    """What a hint must repeat so that it works when pasted."""
    busy: Callable[[Probes], bool] = answering
    _busy_since: float | None = None
    _later: dict[Key, float] = field(default_factory=dict)
    """By finding: when a plan is made again for what could not be done."""
    _said: dict[Key, str] = field(default_factory=dict)
    """By what is held: why, as it was last told."""

    def attempt(self, report: Report, memory: Memory, at: datetime) -> tuple[list[Event], bool]:
        """Repair what is due; what was done or why not, and whether a new look is due."""
        now = self.clock.lasting()
        why = self._other_watch()
        if why:
            return self._held(OTHER, why, at), False
        self._said.pop(OTHER, None)
        self.ledger.forget(memory.standing, now)
        due = [
            one
            for one in report.findings
            if consent.due(one, report, memory.standing.get(one.key), self.after, self.agreed)
        ]
        keys = {one.key for one in due}
        self._later = {key: at for key, at in self._later.items() if key in keys}
        self._said = {key: text for key, text in self._said.items() if key in {*keys, ALL}}
        tried = [
            one
            for one in due
            if self.ledger.may(one.key, now) and now >= self._later.get(one.key, 0.0)
        ]
        if not tried:
            self._busy_since = None
            return [], False
        why = self._hindrance(now)
        if why:
            return self._held(ALL, why, at), False
        try:
            events, changed = self._repair(tried, memory, at)
        finally:
            memory.repairs, memory.failures = self.ledger.repairs, self.ledger.failures
        return events, changed

    def _other_watch(self) -> str | None:
        """One watch heals a home; another one goes on looking until that one has ended."""
        try:
            if self.store.take():
                return None
        except OSError as error:
            return f"the watch cannot be locked ({os.strerror(error.errno or 0).lower()})"
        who = self.store.holder()
        return f"another watch{f' (process {who})' if who else ''} heals this home; this one looks"

    def _hindrance(self, now: float) -> str | None:
        """Why nothing is repaired now, however much is due."""
        free = self.ledger.free_at(now)
        if free is not None:
            budget = self.ledger.budget
            return (
                f"the budget of {budget.most} in {span(budget.period)} is spent; the next repair "
                f"may be at {self._clock(free - now)}"
            )
        if self.busy(Probes(self.home)):
            self._busy_since = self._busy_since if self._busy_since is not None else now
            waited = now - self._busy_since
            if waited < self.patience:
                return f"an answer is being written; it waits for at most {span(self.patience)}"
        else:
            self._busy_since = None
        return None

    def _clock(self, seconds: float) -> str:
        from datetime import timedelta

        return f"{(self.clock.now() + timedelta(seconds=seconds)).astimezone():%H:%M}"

    def _held(
        self, key: Key, why: str, at: datetime, finding: Finding | None = None
    ) -> list[Event]:
        """Say why something is not done, once for each reason."""
        plain = why.partition(";")[0]
        if self._said.get(key) == plain:
            return []
        self._said[key] = plain
        spent = "budget" in plain
        return [
            Event(
                Kind.HELD,
                at,
                f"not repaired now: {why}",
                severity=Severity.ERROR if spent else None,
                code=finding.code if finding else "",
                subject=finding.subject if finding else "",
            )
        ]

    # -- the repair ------------------------------------------------------------------------

    def _repair(
        self, due: Sequence[Finding], memory: Memory, at: datetime
    ) -> tuple[list[Event], bool]:
        from hermes_doctor import recovery
        from hermes_doctor.lock import locked
        from hermes_doctor.plan import verifier

        verify = verifier(lambda: Probes(self.home), self.plugins)
        events: list[Event] = []
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(locked(self.home))
            except (Trouble, OSError) as busy:
                why = str(busy) if isinstance(busy, Trouble) else "the home cannot be locked"
                return self._held(ALL, why.partition(". ")[0], at), False
            try:
                cut_off = recovery.recover(self.home, verify)
                events += [Event(Kind.NOTE, at, ended.text) for ended in cut_off]
                planned = self._planned(due)
                for one, refusal in planned:
                    if refusal is not None:
                        key = one.finding.key
                        self._later[key] = self.clock.lasting() + PAUSE
                        events += self._held(key, refusal, at, one.finding)
                chosen = [one for one, refusal in planned if refusal is None]
                if not chosen or self.signals.ending:
                    return events, False
                self._said.pop(ALL, None)
                self._busy_since = None
                self.ledger.spend(self.clock.lasting())
                memory.repairs = self.ledger.repairs
                with contextlib.suppress(OSError, Trouble):
                    self.store.save(memory)  # killed in the middle, it still counts
                events += self._outcomes(chosen, self._run(chosen, verify), at)
                return events, True
            except Interrupted:
                self.signals.ending = True
                text = "a repair was interrupted, and taken back"
                return [*events, Event(Kind.FAILED, at, text)], False
            except (Trouble, CouldNotLook) as trouble:
                return [*events, *self._failed(due, str(trouble), at)], False
            except Exception as error:  # noqa: BLE001 (the watch goes on)
                return [*events, *self._failed(due, crash(error), at)], False

    def _planned(self, due: Sequence[Finding]) -> list[tuple[Planned, str | None]]:
        """A fresh look at what is due, a plan for each, and why it is not carried out."""
        from hermes_doctor.examination import examine
        from hermes_doctor.plan import plan

        probes = Probes(self.home)
        wanted = {finding.check for finding in due}
        keys = {finding.key for finding in due}
        _, findings = examine(probes, [c for c in self.plugins.checks if c.id in wanted])
        planned = plan(probes, self.plugins, [one for one in findings if one.key in keys])
        probes.close()  # or a run would find its own readers holding the databases
        return [(one, consent.refusal(one, self.agreed)) for one in planned]

    def _run(self, chosen: Sequence[Planned], verify: object) -> Journal:
        from hermes_doctor.repair import Run
        from hermes_doctor.vault import Vault

        codes = ", ".join(sorted({one.finding.code for one in chosen}))
        run = Run(
            self.home,
            Vault(self.home, self.vault),
            kind="fix",
            reason=f"before the watch's fix of {codes}",
        )
        return run.apply([one.item() for one in chosen], verify)  # type: ignore[arg-type]

    def _outcomes(self, chosen: Sequence[Planned], run: Journal, at: datetime) -> list[Event]:
        findings = {one.finding.key: one.finding for one in chosen}
        events = []
        for item in run.items:
            finding = findings[item.code, item.subject]
            if item.outcome == "verified":
                self.ledger.failures.pop(finding.key, None)
                text = f"{finding.title} ({item.fix})"
                undo = f"hermes-doctor undo {run.id}{self.options}" if run.undoable else ""
                events.append(_event(Kind.HEALED, self.clock.now(), finding, text, undo))
            elif item.outcome != "left":
                reason = item.reason or run.note or item.outcome
                events += self._failed([finding], f"{item.fix}: {reason}", at)
        return events

    def _failed(self, findings: Sequence[Finding], why: str, at: datetime) -> list[Event]:
        now = self.clock.lasting()
        events = []
        for finding in findings:
            failure = self.ledger.fail(finding.key, now)
            if failure.times >= TRIES:
                then = f"it was tried {failure.times} times and is left to a person"
            else:
                then = f"it is not tried again before {self._clock(failure.until - now)}"
            text = f"not healed: {why.rstrip('.')}; {then}"
            page = f"hermes-doctor explain {finding.code}"
            events.append(_event(Kind.FAILED, at, finding, text, page))
        return events


def _event(kind: Kind, at: datetime, finding: Finding, text: str, command: str) -> Event:
    return Event(
        kind,
        at,
        text,
        severity=finding.severity,
        code=finding.code,
        subject=finding.subject,
        command=command,
    )
