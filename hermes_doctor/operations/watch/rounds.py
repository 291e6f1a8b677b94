"""The main loop of the watch: examine, compare, report, heal, wait.

A round starts only after the previous one has ended. An error in a round is reported, and the watch
continues with the next round.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import count
from hermes_doctor.core.model import CouldNotLook, Report, Severity, Trouble
from hermes_doctor.diagnosis.examination.check_threads import describe_crash
from hermes_doctor.operations.history.when_to_record import Recorder
from hermes_doctor.operations.watch import changes, clocks
from hermes_doctor.operations.watch.clocks import ClockReading, MachineClock
from hermes_doctor.operations.watch.events import EventKind, WatchEvent, state_summary
from hermes_doctor.operations.watch.heal import Healer
from hermes_doctor.operations.watch.heartbeat import HeartbeatSender
from hermes_doctor.operations.watch.home_reachable import reach_home
from hermes_doctor.operations.watch.notices import Notices
from hermes_doctor.operations.watch.signals import Signals, StopRequested
from hermes_doctor.operations.watch.state import MAX_DEEDS, WatchState
from hermes_doctor.operations.watch.store import WatchStateFiles

DAY = 86400.0
HOUR = 3600.0
"""Seconds; single rounds at most this far apart count as one schedule, whatever --interval says."""
ONE_ROUND = 120.0
"""Seconds that a single round waits for its notices, because its process then ends."""


class Watch:
    """One watch on one home."""

    def __init__(
        self,
        *,
        home: Home,
        examine: Callable[[], Report],
        print_event: Callable[[WatchEvent], None],
        store: WatchStateFiles,
        interval: float,
        min_rounds: int,
        clock: MachineClock | None = None,
        signals: Signals | None = None,
        notices: Notices | None = None,
    ) -> None:
        self.home, self.examine, self.print_event = home, examine, print_event
        self.store, self.interval, self.min_rounds = store, interval, min_rounds
        self.clock, self.signals = clock or MachineClock(), signals or Signals()
        self.notices = notices
        self.forget_last_report: Callable[[], None] = lambda: None
        """Lets the next round examine the home even if nothing has changed."""
        self.healer: Healer | None = None
        self.publish: Callable[[Report | None], None] | None = None
        """Called after each round, with None if the home could not be examined."""
        self.history: Recorder | None = None
        self.heartbeat: HeartbeatSender | None = None
        self.is_well: Callable[[Report], bool] = lambda _: True
        """Whether a round counts as good for the heartbeat."""
        self.mark_muted: Callable[[Report], tuple[Report, list[str]]] = lambda one: (one, [])
        """Marks the muted findings of a report; also returns what to tell the operator."""
        self.title = ""
        """What is watched, for the first line."""
        known = self.store.load(self.clock.boot)
        self.first_watch = known is None or not known.place
        """No watch has examined this home before."""
        self.memory = known or WatchState()
        self.rounds = 0
        self._single = False
        self._begun = False
        self._last: ClockReading | None = None
        self._place = self.memory.place if self.memory.boot == self.clock.boot else ""
        """The identity of the home's folder in the previous round."""
        self._troubles: set[str] = set()
        self._quiet = self.clock.read().monotonic

    def _resume(self) -> None:
        """Continue from the state of the last process, unless too much time has passed since."""
        memory, now, last = self.memory, self.clock.read(), self.memory.clocks
        usual = max(self.interval, memory.spacing, HOUR / 3) if self._single else self.interval
        if memory.boot != self.clock.boot or last is None or now.monotonic < last.monotonic:
            self._anew()
        else:
            memory.spacing = now.monotonic - last.monotonic
            if clocks.gap(last, now, 3 * usual + 60):
                self._anew()
        memory.boot = self.clock.boot
        memory.interval, memory.heals = self.interval, self.healer is not None

    def enable(self, healer: Healer) -> None:
        self.healer = healer
        self.memory.heals = True

    def run(self) -> None:
        """Run rounds until told to stop."""
        self.memory.pid = os.getpid()
        self.memory.began = self.clock.now().isoformat(timespec="seconds")
        with self.signals.heard():
            try:
                while not self.signals.ending:
                    begun = self.clock.read().monotonic
                    if self.signals.hurry:
                        self.signals.hurry = False
                        self.forget_last_report()
                    again = self.round(begins=not self._begun)
                    now = self.clock.read().monotonic
                    due = begun + self.interval
                    self.signals.wait(0 if again else due - now if due > now else self.interval)
            except StopRequested:
                pass
            finally:
                if self.history:
                    self.history.flush()
                self.memory.pid = 0
                self._save()
                ended = f"stopped after {count(self.rounds, 'check')}"
                self._say(WatchEvent(EventKind.END, self.clock.now(), ended))
        if self.notices:
            self.notices.close()

    def once(self, *, always_report: bool) -> Report | None:
        """Run one round and report only changes; None if the home could not be examined."""
        self._single = True
        if self.history:
            self.history.single, self.history.rounds = True, self.memory.recorded
        with self.signals.heard():
            try:
                self.round(begins=self.first_watch)
            except StopRequested:
                return None
        if (
            self.last_report is not None
            and always_report
            and not self.first_watch
            and not self._event_count
        ):
            self._say(
                WatchEvent(
                    EventKind.QUIET,
                    self.clock.now(),
                    f"no change: {state_summary(self.last_report)}",
                )
            )
        if self.notices:
            self.notices.close(ONE_ROUND)
        if self.heartbeat and (why := self.heartbeat.close()):
            self._trouble(why)
        return self.last_report

    last_report: Report | None = None
    _event_count = 0

    def round(self, *, begins: bool) -> bool:
        """Examine once and report; return whether the next round is due at once."""
        self.rounds += 1
        if self.rounds == 1:
            self._resume()
        self._mind_the_gap()
        report = self._report()
        self.last_report = report
        again = False
        if report is not None:
            at = self.clock.now()
            round_changes = changes.compare(
                self.memory.standing, self.memory.unanswered, report, at, self.min_rounds
            )
            flapping = changes.follow(self.memory.flaps, self.memory.standing, round_changes, at)
            self._begun = True
            self._begin(report, round_changes.events, at) if begins else None
            for event in (*round_changes.events, *flapping):
                if not (begins and self.first_watch):
                    self._say(event)
            self.memory.standing, self.memory.unanswered = (
                round_changes.current,
                round_changes.unanswered,
            )
            if self.healer is not None and not self.signals.ending:
                told, again = self.healer.attempt(report, self.memory, at)
                for event in told:
                    self._say(event)
                    self._note_deed(event)
            self._daily(report, at)
        if again or report is None or self._is_open(report):
            self.forget_last_report()
        if self.notices:
            if report is not None:
                self.notices.stand(_broken(report))
            for event in self.notices.flush(self.memory.notified, self.clock.boot_clock()):
                self._say(event)
        self._save()  # at once, so that nobody is told twice if the watch is killed now
        self._record(report)
        self._save()
        if not again:
            self._inform_monitors(report)
        elif self._single:  # what was found is repaired, and no other round follows
            repaired = self._report()
            self._record(repaired)
            self._inform_monitors(repaired)
        return again

    def _is_open(self, report: Report) -> bool:
        """Whether the next round must examine the home even if nothing has changed.

        That is so during an error, whose end may show nowhere else, and while a check has just
        begun to have no answer.
        """
        errors = any(
            changes.is_grave(finding.severity) for finding in report.findings if not finding.muted
        )
        return errors or any(
            rounds < changes.BLIND_AFTER for rounds in self.memory.unanswered.values()
        )

    def _record(self, report: Report | None) -> None:
        """Add the round to the history."""
        if self.history:
            for note in self.history.attempt(report, self.clock.now()):
                self._trouble(note)
            self.memory.recorded = self.history.rounds

    def _inform_monitors(self, report: Report | None) -> None:
        """Write the metrics and send the heartbeat."""
        if self.publish is not None:
            try:
                self.publish(report)
            except (OSError, Trouble) as error:
                self._trouble(str(error))
        if self.heartbeat:
            good = report is not None and self.is_well(report)
            if why := self.heartbeat.beat(good=good):
                self._trouble(why)

    def _report(self) -> Report | None:
        """Examine the home if it can be reached."""
        place, why = reach_home(self.home)
        at, known = self.clock.now(), self.memory.away
        self.memory.away = why
        if why:
            if not known or (self.rounds == 1 and not self._single):
                self._say(WatchEvent(EventKind.AWAY, at, why, severity=Severity.ERROR))
            self._anew()
            return None
        if known:
            back = WatchEvent(EventKind.BACK, at, "the home is back", was=Severity.ERROR)
            self._say(back)
        if self._place and self._place != place:
            self._anew()
            self.memory.failures.clear()
            self.memory.flaps.clear()
            text = "the folder of the home was replaced; counting starts again"
            self._say(WatchEvent(EventKind.GAP, self.clock.now(), text))
        self._place = self.memory.place = place
        try:
            with self.signals.stoppable():
                report = self.examine()
            report, notes = self.mark_muted(report)
            for note in notes:
                self._say(WatchEvent(EventKind.NOTE, at, note, severity=Severity.WARNING))
            return report
        except CouldNotLook as doubt:
            self._trouble(f"could not check: {doubt}")
        except Exception as error:  # noqa: BLE001 (one bad round must not end the watch)
            self._trouble(f"the check crashed: {describe_crash(error)}")
        return None

    def _mind_the_gap(self) -> None:
        now = self.clock.read()
        if self._last is not None:
            why = clocks.gap(self._last, now, 3 * self.interval + 60)
            if why:
                self._anew()
                if self.history:
                    self.history.note_gap()
                self._say(
                    WatchEvent(EventKind.GAP, self.clock.now(), f"{why}; counting starts again")
                )
        self._last = now

    def _anew(self) -> None:
        """Reset the counts of rounds in a row."""
        memory = self.memory
        self.forget_last_report()
        memory.busy_since = None
        memory.standing = {
            key: one._replace(rounds=0, error_rounds=0) for key, one in memory.standing.items()
        }

    def _begin(self, report: Report, told: Sequence[WatchEvent], at: datetime) -> None:
        """Report the state at the start, with the findings that were there before."""
        counts = {severity.value: count for severity, count in report.counts.items()}
        more = {"status": report.status.value, "counts": counts, "interval": self.interval}
        self._say(
            WatchEvent(EventKind.START, at, f"{self.title}: {state_summary(report)}", extra=more)
        )
        known = {event.key for event in told} if not self.first_watch else set()
        for finding in report.findings:
            if finding.key not in known:
                self._say(changes.finding_event(report, finding, EventKind.FOUND, at))

    def _say(self, event: WatchEvent) -> None:
        self._event_count += 1
        self._quiet = self.clock.read().monotonic
        try:
            self.print_event(event)
        except BrokenPipeError:  # the reader has closed the pipe
            self.signals.ending = True
        if self.notices and not changes.is_quiet(self.memory.flaps, event):
            self.notices.observe(event, self.memory.notified)

    def _trouble(self, text: str) -> None:
        """Report a problem of the watch itself, once."""
        if text not in self._troubles and len(self._troubles) < 100:
            self._troubles.add(text)
            self._say(WatchEvent(EventKind.NOTE, self.clock.now(), text, severity=Severity.WARNING))

    def _daily(self, report: Report, at: datetime) -> None:
        if self.clock.read().monotonic - self._quiet >= DAY:
            self._say(WatchEvent(EventKind.QUIET, at, f"still watching: {state_summary(report)}"))

    def _note_deed(self, event: WatchEvent) -> None:
        if event.kind in (EventKind.HEALED, EventKind.FAILED):
            deed = {"at": event.at.isoformat(timespec="seconds"), "what": event.sentence()}
            self.memory.deeds = [*self.memory.deeds, deed][-MAX_DEEDS:]

    def _save(self) -> None:
        self.memory.round_at = self.clock.now().isoformat(timespec="seconds")
        self.memory.clocks = self.clock.read()
        try:
            self.store.save(self.memory)
        except (OSError, Trouble) as error:
            why = error.strerror if isinstance(error, OSError) else str(error).partition(". ")[0]
            self._trouble(f"could not save the state of the watch ({why})")


def _broken(report: Report) -> frozenset[str]:
    """The subjects of all problems in lower case, platform names among them."""
    bad = [finding for finding in report.findings if finding.severity is not Severity.INFO]
    return frozenset(name for one in bad for name in one.subject.lower().split(", "))
