"""Repairs what is due for `--heal`, with the same engine as `fix --apply`.

It waits, up to a limit, while an answer is being written, and stays within the budget. A repair
that did not help is tried again only after a pause, and only a few times.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.records.journal import NOT_CONNECTED
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook, Finding, Report, Severity, Trouble
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.signals import Interrupted
from hermes_doctor.diagnosis.examination.check_threads import describe_crash
from hermes_doctor.diagnosis.examination.liveness import is_answering
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.watch import consent, repair_runs
from hermes_doctor.operations.watch.clocks import MachineClock
from hermes_doctor.operations.watch.consent import MAX_TRIES, Lease, RepairBudget
from hermes_doctor.operations.watch.events import EventKind, Key, WatchEvent
from hermes_doctor.operations.watch.signals import Signals
from hermes_doctor.operations.watch.state import WatchState
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.schedule.jobs import format_duration

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.repair.transaction.plan import PlannedItem
    from hermes_doctor.repair.transaction.targets import Verify

ALL, OTHER = ("", "all"), ("", "watch")
"""Keys for reasons that concern the whole watch instead of one finding."""
Outcome = tuple[list[WatchEvent], bool]
"""The events of a repair, and whether to examine again at once."""
Work = Callable[[], Outcome]
SOON, PAUSE = 15.0, 120.0
"""Seconds until a refused repair is planned again: its obstacle may be temporary."""


@dataclass
class Healer:
    """Repairs one home."""

    home: Home
    plugins: Plugins
    store: WatchStateFiles
    ledger: RepairBudget
    clock: MachineClock
    signals: Signals
    min_rounds: int
    timeout: float
    confirmed: frozenset[str] = frozenset()
    """Codes and fixes that the operator agreed to although they ask."""
    vault: Path | None = None
    options: str = ""
    """Options that a hint must repeat so that it works when pasted."""
    busy: Callable[[Probes], bool] = is_answering
    memory: WatchState = field(default_factory=WatchState)
    later: dict[Key, float] = field(default_factory=dict)
    """By finding: when to plan a refused repair again."""
    repair: Callable[[Work, Sequence[Finding]], Outcome] = lambda work, _: work()
    """Does the work; a watch that keeps running lets another process do it."""
    apart: Callable[[Callable[[], Outcome]], Outcome] = lambda work: work()
    """Does all that touches the home; as root in the home of another user, as that user."""

    def __post_init__(self) -> None:
        self.lease = Lease(self.home, self.clock, self.store.file)
        self.ledger.since(self.clock.boot_clock())

    def is_exhausted(self) -> bool:
        """Whether the budget allows no repair for now."""
        return self.ledger.free_at(self.clock.boot_clock()) is not None

    def attempt(self, report: Report, memory: WatchState, at: datetime) -> Outcome:
        """Repair what is due; return the events and whether to examine again at once."""
        self.memory = memory
        why = self._other_watch(self._take)
        if why:
            return self.held(OTHER, why, at), False
        return self.apart(lambda: self._attempt(report, at))

    def _attempt(self, report: Report, at: datetime) -> Outcome:
        """Do the same, when no other watch of this user repairs the home."""
        now, memory = self.clock.boot_clock(), self.memory
        why = self._other_watch(self.lease.refusal)
        if why:
            return self.held(OTHER, why, at), False
        memory.said.pop(OTHER, None)
        self.ledger.forget(memory.standing, now)
        memory.failures = self.ledger.failures
        due = [
            finding
            for finding in report.findings
            if consent.is_due(
                finding, report, memory.standing.get(finding.key), self.min_rounds, self.confirmed
            )
        ]
        named = {one.subject: one for one in report.findings}
        cut_off = {
            named[id].key if id in named else ("", id): named.get(id)
            for id in repair_runs.unfinished_runs(self.home)
        }
        keys = {*(one.key for one in due), *cut_off}
        self.later = {key: at for key, at in self.later.items() if key in keys}
        memory.said = {key: text for key, text in memory.said.items() if key in {*keys, ALL}}
        ends = {key: one for key, one in cut_off.items() if now >= self.later.get(key, 0.0)}
        tried = [
            one
            for one in due
            if self.ledger.may_try(one.key, now) and now >= self.later.get(one.key, 0.0)
        ]
        if not tried and not ends:
            memory.busy_since = None
            return [], False
        why = self._spent(now) if not ends else None
        if why:
            return self.held(ALL, why, at), False
        return self.repair(lambda: self._unless_answering(ends, tried, at), tried)

    def _unless_answering(
        self, cut_off: Mapping[Key, Finding | None], due: Sequence[Finding], at: datetime
    ) -> Outcome:
        """Repair unless an answer is being written."""
        memory = self.memory
        why = self._answering(self.clock.boot_clock())
        if why:
            return self.held(ALL, why, at), False
        try:
            from hermes_doctor.backup.records.home_lock import lock_home

            with contextlib.ExitStack() as held:
                try:
                    held.enter_context(lock_home(self.home))
                except (Trouble, OSError) as busy:
                    why = str(busy) if isinstance(busy, Trouble) else "could not lock the home"
                    return self.held(ALL, why.partition(". ")[0], at), False
                told, ended = self._end(cut_off, at)
                if ended is None or ended or cut_off or self.signals.ending:
                    return told, bool(ended)
                return self._repair(due, at)
        finally:
            memory.repairs, memory.failures = self.ledger.repairs, self.ledger.failures

    def lock_descriptors(self) -> list[int]:
        """The descriptors that hold the locks of this healer."""
        return [fd for fd in (self.store.lock_descriptor, self.lease.descriptor) if fd is not None]

    def _other_watch(self, lock: Callable[[], str | None]) -> str | None:
        """Why this watch may not heal because another one does; it then only examines."""
        try:
            return lock()
        except OSError as error:
            return f"could not lock the watch ({os.strerror(error.errno or 0).lower()})"
        except Trouble as trouble:
            return f"could not lock the watch: {trouble}".partition(". ")[0]

    def _take(self) -> str | None:
        """Take the lock of this user's watch; return why that was not possible."""
        if self.store.take():
            return None
        who = self.store.holder()
        named = f" (process {who})" if who else ""
        return f"another watch{named} repairs this home; this one only checks"

    def _spent(self, now: float) -> str | None:
        """Why the budget allows no repair now; None if it does."""
        free = self.ledger.free_at(now)
        if free is None:
            return None
        budget = self.ledger.budget
        return (
            f"the budget of {budget.limit} in {format_duration(budget.period)} is used up; "
            f"the next repair is possible at {self._clock(free - now)}"
        )

    def _answering(self, now: float) -> str | None:
        """Why a repair must wait for an answer that is being written; None if it need not."""
        memory = self.memory
        if not self.busy(Probes(self.home)):
            memory.busy_since = None
            return None
        if memory.busy_since is None or memory.busy_since > now:
            memory.busy_since = now
        if now - memory.busy_since >= self.timeout:
            return None
        return (
            f"an answer is being written; the repair waits at most {format_duration(self.timeout)}"
        )

    def _clock(self, seconds: float) -> str:
        return f"{(self.clock.now() + timedelta(seconds=seconds)).astimezone():%H:%M}"

    def held(
        self, key: Key, why: str, at: datetime, finding: Finding | None = None
    ) -> list[WatchEvent]:
        """Report why something is not repaired, once for each reason."""
        plain = why.partition(";")[0]
        if self.memory.said.get(key) == plain:
            return []
        self.memory.said[key] = plain
        spent = "budget" in plain
        return [
            WatchEvent(
                EventKind.HELD,
                at,
                f"not repaired now: {why}",
                severity=Severity.ERROR if spent else None,
                code=finding.code if finding else "",
                subject=finding.subject if finding else "",
            )
        ]

    def _end(
        self, cut_off: Mapping[Key, Finding | None], at: datetime
    ) -> tuple[list[WatchEvent], bool | None]:
        """Finish cut-off runs; return whether there were any, or None if that failed."""
        for key in cut_off:
            self.later[key] = self.clock.boot_clock() + PAUSE
        try:
            ended, why = repair_runs.finish_runs(self.home, self._verify())
        except Interrupted:
            self.signals.ending = True
            return [], None
        if why:
            key, finding = next(iter(cut_off.items()), (ALL, None))
            return self.held(key, why, at, finding), None
        return [WatchEvent(EventKind.NOTE, at, text) for text in ended], bool(ended)

    def _repair(self, due: Sequence[Finding], at: datetime) -> Outcome:
        events: list[WatchEvent] = []
        try:
            chosen = []
            for item in repair_runs.plan_repairs(self.home, self.plugins, due):
                if consent.is_too_early(
                    item, self.memory.standing.get(item.finding.key), self.min_rounds
                ):
                    continue
                refusal = consent.refusal(item, self.confirmed)
                if refusal is None:
                    chosen.append(item)
                    continue
                key = item.finding.key
                pause = PAUSE if key in self.memory.said else SOON
                self.later[key] = self.clock.boot_clock() + pause
                events += self.held(key, refusal, at, item.finding)
            if not chosen or self.signals.ending:
                return events, False
            why = self.lease.refusal(create=True)
            if why:
                return [*events, *self.held(OTHER, why, at)], False
            # Count the repair before it starts, so that it counts even if this process is killed.
            memory = self.memory
            memory.said.pop(ALL, None)
            memory.busy_since = None
            self.lease.prolong(self.ledger.budget.period)
            if root_parent.is_separate():  # the memory of the watch is root's
                root_parent.ask_root("count_repair")
            self.count()
            run = repair_runs.apply_plans(self.home, self.vault, chosen, self._verify())
            return [*events, *self._outcomes(chosen, run, at)], True
        except Interrupted:
            self.signals.ending = True
            text = "a repair was interrupted and rolled back"
            return [*events, WatchEvent(EventKind.FAILED, at, text)], False
        except (Trouble, CouldNotLook) as trouble:
            return [*events, *self.failed(due, str(trouble), at)], False
        except Exception as error:  # noqa: BLE001 (the watch goes on)
            return [*events, *self.failed(due, describe_crash(error), at)], False

    def count(self) -> None:
        """Count a repair and save that."""
        memory = self.memory
        self.ledger.spend(self.clock.boot_clock())
        memory.repairs = self.ledger.repairs
        memory.repaired += 1
        with contextlib.suppress(OSError, Trouble):
            self.store.save(memory)

    def _verify(self) -> Verify:
        return repair_runs.make_verifier(self.home, self.plugins)

    def _outcomes(
        self, chosen: Sequence[PlannedItem], run: Journal, at: datetime
    ) -> list[WatchEvent]:
        findings = {planned.finding.key: planned.finding for planned in chosen}
        events = []
        for item in run.items:
            finding = findings[item.code, item.subject]
            if item.outcome == "verified":
                self.ledger.failures.pop(finding.key, None)
                text = f"{finding.title} ({item.fix})"
                text += f". {run.note}" if run.leaves_files else ""
                undo = f"hermes-doctor undo {run.id}{self.options}" if run.undoable else ""
                events.append(_event(EventKind.HEALED, self.clock.now(), finding, text, undo))
            elif item.outcome != "left":
                reason = item.reason or run.note or item.outcome
                if item.outcome == NOT_CONNECTED:
                    reason = f"{item.done}, not connected yet ({reason})"
                events += self.failed([finding], f"{item.fix}: {reason}", at)
        return events

    def failed(self, findings: Sequence[Finding], why: str, at: datetime) -> list[WatchEvent]:
        now = self.clock.boot_clock()
        events = []
        for finding in findings:
            failure = self.ledger.fail(finding.key, now)
            if failure.times >= MAX_TRIES:
                then = f"tried {failure.times} times, so you have to repair it"
            else:
                then = f"next try at {self._clock(failure.until - now)}"
            text = f"not repaired: {why.rstrip('.')}; {then}"
            page = f"hermes-doctor explain {finding.code}"
            events.append(_event(EventKind.FAILED, at, finding, text, page))
        return events


def _event(kind: EventKind, at: datetime, finding: Finding, text: str, command: str) -> WatchEvent:
    return WatchEvent(
        kind,
        at,
        text,
        severity=finding.severity,
        code=finding.code,
        subject=finding.subject,
        command=command,
    )
