"""Decides when an observation is written, and survives a history that cannot be.

A change is written at once. As long as nothing changes, one record in five minutes is enough, which
spares the disk. A damaged file is set aside, and a new one is started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Report, Trouble
from hermes_doctor.diagnosis.examination.check_threads import describe_crash
from hermes_doctor.operations.history import database, observation, place
from hermes_doctor.operations.history.layout import (
    EVERY,
    EVERY_SINGLE,
    SINGLE,
    NewerHistory,
    longest_gap,
)
from hermes_doctor.operations.history.observation import EndedRun, Observation, observe
from hermes_doctor.operations.history.place import boot_id, identity_of
from hermes_doctor.operations.history.write_observation import Continuity, record

ReadRuns = Callable[[Home, Sequence[EndedRun]], list[EndedRun]]


class SingleRounds(NamedTuple):
    """What the single rounds of a watch, each a process of its own, have seen."""

    digest: str
    """Fingerprint of the last written observation; all rounds since then were equal to it."""
    written: int
    """When it was written."""
    seen: int
    """When it was last seen."""


class Written(NamedTuple):
    """What another process did that wrote an observation."""

    notes: tuple[str, ...]
    kept: bool
    """Whether it was written."""
    off: bool
    gap: bool
    verified: bool
    runs: tuple[EndedRun, ...]


class Recorder:
    """Records the rounds of one watch, or one `check --record`."""

    def __init__(
        self,
        home: Home,
        interval: float,
        *,
        codes: frozenset[str] | None = None,
        boot: str = "",
        file: Path | None = None,
        single: bool = False,
        read_runs: ReadRuns = observation.ended_runs,
    ) -> None:
        self.home, self.codes, self.boot = home, codes, boot
        self.file = file or place.own_file()
        self.interval, self.single = interval, single
        self.read_runs = read_runs
        self._written: Observation | None = None
        """The last observation in the file, if this process has watched without a gap since."""
        self._waiting: Observation | None = None
        """A later one that only says that nothing has changed."""
        self.rounds: SingleRounds | None = None
        """Kept with the state of the watch, so that the next single round can continue."""
        self._runs: list[EndedRun] = []
        """The runs that were read from receipts."""
        self._since: int | None = None
        self._gap = False
        self._verified = False
        self._off = False
        self.apart: Callable[[Callable[[], Written]], Written | str] | None = None
        """Lets another process write, so that this one stays small; returns why that failed."""

    def note_gap(self) -> None:
        """The machine slept, its clock was set, or the home could not be examined."""
        self.flush()
        self._written, self.rounds, self._gap = None, None, True

    def attempt(self, report: Report | None, at: datetime) -> list[str]:
        """Record a round, None for one without a report; an error is only reported."""
        return self._guarded(lambda: self._attempt(report, at))

    def _attempt(self, report: Report | None, at: datetime) -> list[str]:
        if report is not None:
            return self.record(report, at)
        self.note_gap()
        return []

    def _guarded(self, work: Callable[[], list[str]]) -> list[str]:
        """Do some work; return what to report, errors included."""
        try:
            return work()
        except Trouble as trouble:
            return [str(trouble)]
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            return [f"could not write the history ({why}): {self.file}"]
        except Exception as error:  # noqa: BLE001 (the history must never stop a watch)
            self._off = True
            return [f"the history is switched off: {describe_crash(error)}"]

    def record(self, report: Report, at: datetime) -> list[str]:
        """Record a round; return what to report. Raises Trouble or OSError if that fails."""
        if self._off:
            return []
        seen = observe(report, at, self.codes)._replace(identity=identity_of(self.home.path))
        if self.single and self._is_repeated(seen):
            return []
        last = self._written
        if last is not None and not seen.differs(last) and 0 <= seen.at - last.at < EVERY:
            self._waiting = seen
            return []
        return self._write(seen)

    def _is_repeated(self, seen: Observation) -> bool:
        """Whether a single round only repeats those before it, whose record is recent enough."""
        before, digest = self.rounds, seen.digest()
        self.rounds = SingleRounds(digest, seen.at, seen.at)
        if before is None or not before.seen <= seen.at <= before.seen + self._longest():
            return False
        self._since = before.written
        if before.digest != digest or seen.at - before.written >= EVERY_SINGLE:
            return False
        self.rounds = before._replace(seen=seen.at)
        return True

    def _longest(self) -> int:
        """Seconds between two rounds that still count as watched."""
        usual = max(self.interval, SINGLE) if self.single else self.interval
        return longest_gap(usual)

    def flush(self) -> None:
        """Write what waits, before the watch ends; failing that, a few minutes stay unknown."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not self._off:
            try:
                self._write(waiting)
            except Exception:  # noqa: BLE001 (the history must never stop a watch)
                self._written = None

    def _write(self, seen: Observation) -> list[str]:
        if self.apart is None:
            return self._write_here(seen)
        done = self.apart(lambda: self._write_in_copy(seen))
        if isinstance(done, str):
            self._written = self._waiting = self.rounds = None
            return [f"could not write the history: {done}"]
        self._written = seen if done.kept else None
        self._waiting, self._runs, self._verified = None, [*done.runs], done.verified
        self._off, self._gap = done.off, done.gap
        return [*done.notes]

    def _write_in_copy(self, seen: Observation) -> Written:
        """Write in a copy of the process; return what the original has to know."""
        notes = self._guarded(lambda: self._write_here(seen))
        return Written(
            tuple(notes),
            kept=self._written is seen,
            off=self._off,
            gap=self._gap,
            verified=self._verified,
            runs=tuple(self._runs),
        )

    def _write_here(self, seen: Observation) -> list[str]:
        try:
            return self._transaction(seen)
        except NewerHistory:
            self._off = True
            raise
        except database.Damaged as why:
            return self._start_again(seen, why)
        except (OSError, Trouble):
            self._written = self._waiting = self.rounds = None
            raise

    def _start_again(self, seen: Observation, why: database.Damaged) -> list[str]:
        """Set a damaged history aside and start a new one."""
        self._written, self._waiting, self._verified = None, None, False
        aside = database.set_aside(self.file, why.inode)
        try:
            notes = self._transaction(seen)
        except database.Damaged as again:
            self._off = True
            raise Trouble(
                "The history is switched off, because it is damaged: {why}", why=again
            ) from None
        if aside is None:  # another process was faster
            return notes
        return [*notes, f"the history was damaged ({why}); kept as {aside.name}, a new one started"]

    def _transaction(self, seen: Observation) -> list[str]:
        place.refuse_inside(self.file, self.home)
        since = self._written.at if self._written else self._since
        rare = EVERY_SINGLE if self.single else EVERY
        known = Continuity(
            longest=self._longest(),
            since=since,
            single=self.single,
            gap=self._gap,
            due=0 if self.single and since is None else rare + self._longest(),
        )
        self._runs = self.read_runs(self.home, self._runs)
        with database.transaction(self.file, verify=not self._verified) as db:
            notes = record(db, self.home, seen, known, self.boot, self._runs)
        self._written, self._waiting, self._gap, self._verified = seen, None, False, True
        return notes


def record_once(
    home: Home,
    report: Report,
    codes: frozenset[str] | None,
    read_runs: ReadRuns = observation.ended_runs,
) -> list[str]:
    """Record one report for `check --record`; return what to report, such as a failure.

    `read_runs` reads the receipts of the home.
    """
    recorder = Recorder(home, SINGLE, codes=codes, boot=boot_id(), single=True, read_runs=read_runs)
    return recorder.attempt(report, datetime.now(UTC))  # a deep check may have begun long ago
