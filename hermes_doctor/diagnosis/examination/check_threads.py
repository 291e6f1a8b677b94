"""Run checks in watched threads, each isolated and with a time limit."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from pathlib import Path

from hermes_doctor.core.model import (
    CheckResult,
    CouldNotLook,
    Finding,
    Partly,
    Severity,
    Skip,
    Status,
    Trouble,
    known_or,
)
from hermes_doctor.core.system import cached_calls, limits
from hermes_doctor.core.system.cached_calls import DEEP, WatchedThread
from hermes_doctor.core.system.files import reason
from hermes_doctor.diagnosis.plugins.declare import Check, is_option, why_absent
from hermes_doctor.diagnosis.probes.probes import Probes

AT_ONCE = 8
"""How many checks run at once while they only wait."""
FEW = 1
"""How many checks run at once while they compute: more would only compete for the GIL."""
STALL_SECONDS = 0.05
"""Seconds between two looks at the running checks; if they mostly waited, one more is started.

Starting one while another computes would cost a `check` on a used home 6 ms more CPU. Waking up
every 10 ms to see whether they wait would cost 17 ms more.
"""
CUT_OFF = "the time for all checks was used up while it ran"
NOT_STARTED = "the time for all checks was used up before it ran"
MAX_FINDINGS = 1000
"""How many findings one check may have."""


class Undeclared(Exception):
    """Raised if a check yields something that it may not, such as a code it does not declare."""


class RunningCheck:
    """The results of one check so far; its thread writes them, the examination reads them."""

    def __init__(self, check: Check, late: str | None = None) -> None:
        self.check = check
        self.late = late
        self.started = time.monotonic()
        self.findings: list[Finding] = []
        self.doubts: list[str] = []
        self.partly: list[str] = []
        self.skipped: str | None = None
        self.unjudged = ""
        self.crashed: str | None = None
        self.seconds = 0.0

    def ask(self, probes: Probes) -> None:
        """Run the check; an exception becomes part of the answer."""
        try:
            unjudged = self.unjudged = self._unjudged(probes)
            if unjudged and set(self.check.by_release) == set(self.check.codes):
                raise Skip(unjudged)
            if absent := why_absent(probes, self.check.needs):
                if is_option(self.check.needs):
                    self.unjudged = absent
                raise Skip(absent)
            for said in self.check.look(probes):
                self._add(said, unjudged)
        except (CouldNotLook, Trouble) as doubt:
            self.doubts.append(str(doubt))
        except PermissionError as error:
            self.doubts.append(reason(error, Path(error.filename or "a file")))
        except Skip as skip:
            self.skipped = str(skip)
        except MemoryError:
            self.doubts.append(limits.reason("this check"))
        except BaseException as error:
            if limited := limits.cause(error):
                self.doubts.append(limited)
            else:
                self.crashed = describe_crash(error)
        finally:
            self.seconds = time.monotonic() - self.started

    def _add(self, said: Finding | CouldNotLook | Partly, unjudged: str) -> None:
        if isinstance(said, CouldNotLook):
            self.doubts.append(str(said))
        elif isinstance(said, Partly) and isinstance(said.what, str):
            self.partly.append(said.what)
        elif not isinstance(said, Finding) or not said.sound:
            raise Undeclared("yields something that is not a finding")
        elif len(self.findings) >= MAX_FINDINGS:
            raise Undeclared(f"finds more than {MAX_FINDINGS} things")
        elif said.code not in self.check.codes:
            raise Undeclared(f"reports {said.code}, which it does not declare")
        elif unjudged and said.code in self.check.by_release:
            self.skipped = unjudged
        else:
            self.findings.append(said._replace(check=self.check.id, muted=False))

    def _unjudged(self, probes: Probes) -> str:
        """Why the release-dependent part of the check is skipped: Hermes is too new; or ""."""
        if not self.check.by_release:
            return ""
        newer = known_or(None, probes.newer)
        return f"not judged: {newer}" if newer else ""

    def result(self) -> CheckResult:
        """How the check ended."""
        reason: str | None
        if self.crashed:
            status, reason = Status.CRASHED, self.crashed
        elif self.late:
            status, reason = Status.UNKNOWN, self.late
        elif any(f.severity is not Severity.INFO for f in self.findings):
            status, reason = Status.PROBLEM, "; ".join(self.doubts) or None
        elif self.doubts:
            status, reason = Status.UNKNOWN, "; ".join(self.doubts)
        elif self.skipped is not None and not self.findings:
            status, reason = Status.SKIPPED, self.skipped
        else:
            status, reason = Status.OK, "; ".join(self.partly) or None
        check = self.check
        return CheckResult(check.id, check.group, status, self.seconds, reason, self.unjudged)


def describe_crash(error: BaseException) -> str:
    """Describe a crash by error type and code location, without the data in it."""
    where = ""
    trace = error.__traceback__
    while trace is not None:
        where = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    said = f" ({error})" if isinstance(error, Undeclared) else ""
    return f"{type(error).__name__}{where}{said}"


class _Worker(WatchedThread):
    """A thread that runs one check after the other."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self.answer: RunningCheck | None = None
        self.thread: threading.Thread | None = None

    def work(self) -> None:
        cached_calls.enter(self)
        try:
            while self._run.take_next(self):
                assert self.answer
                try:
                    Context().run(self.answer.ask, self._run.probes)
                except BaseException as error:  # such as an exception whose text cannot be made
                    self.answer.crashed = type(error).__name__
                self._run.take_answer(self)
        finally:
            cached_calls.enter(None)


class Run:
    """All checks of one examination: workers run them, and the main thread watches the workers."""

    def __init__(self, probes: Probes, checks: Sequence[Check], limit: float) -> None:
        self.probes = probes
        self._checks = checks
        self._stretch = DEEP if probes.deep else 1
        self._clock, self._end = limits.Stopwatch(), limit * self._stretch
        self._waiting = [*reversed(checks)]
        self._workers: list[_Worker] = []
        self._room = FEW
        self._due: dict[str, float] = {}
        self._answers: dict[str, RunningCheck] = {}
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._earlier: dict[str, RunningCheck] = {}
        """Checks that were started again because a probe hung, with their findings until then."""
        self._finished: deque[str] = deque()
        """Checks that have ended, for the progress."""

    # -- called by the workers -------------------------------------------------------------

    def take_next(self, worker: _Worker) -> bool:
        """Give a worker its next check; return False if it shall end."""
        with self._lock:
            if worker.abandoned:
                return False
            if self._waiting and len(self._workers) <= self._room and not self._is_over():
                worker.answer = RunningCheck(self._waiting.pop())
                if earlier := self._earlier.get(worker.answer.check.id):
                    worker.answer.started = earlier.started
                due = self._clock.read() + worker.answer.check.limit * self._stretch
                self._due.setdefault(worker.answer.check.id, min(self._end, due))
                return True
            self._workers.remove(worker)
            if not self._workers:
                self._idle.set()
            return False

    def take_answer(self, worker: _Worker) -> None:
        """Keep the answer of a worker's check."""
        with self._lock:
            if worker.answer and not worker.abandoned:
                self._keep(worker.answer)
                worker.answer = None

    # -- called by the main thread ---------------------------------------------------------

    def goes_on(self) -> bool:
        """Whether a check runs; starts a worker if checks are waiting and no worker is left."""
        with self._lock:
            if not self._workers and self._waiting and not self._is_over():
                self._start_worker()
            return bool(self._workers)

    def watch(self) -> None:
        """Wait a moment; then give up what takes too long, and start a worker if all wait."""
        pause = STALL_SECONDS if self._room < AT_ONCE else limits.SLICE
        used = time.process_time()
        if self._idle.wait(limits.stretch(pause)):
            return
        with self._lock:
            self._give_up()
            if time.process_time() - used > pause / 2:  # they compute
                self._room = max(FEW, self._room - 1)
                return
            self._room = min(AT_ONCE, self._room + 1)
            if self._waiting and len(self._workers) < self._room and not self._is_over():
                self._start_worker()

    def tell(self, progress: Callable[[str], None] | None) -> None:
        """Report the checks that have ended."""
        while progress and self._finished:
            progress(self._finished.popleft())

    def answers(self) -> list[RunningCheck]:
        """The answers of all checks, in their order."""
        return [self._answers.get(check.id) or self._unfinished(check) for check in self._checks]

    def _unfinished(self, check: Check) -> RunningCheck:
        earlier = self._earlier.get(check.id)
        if earlier is not None:
            return self._late(earlier, CUT_OFF)
        return RunningCheck(check, late=NOT_STARTED)

    def _late(self, answer: RunningCheck, why: str) -> RunningCheck:
        """A copy with the findings so far: the abandoned thread may go on adding to the other."""
        known = RunningCheck(answer.check, why)
        earlier = self._earlier.get(answer.check.id, answer)
        known.findings = [*max(answer, earlier, key=_found_so_far).findings]
        known.seconds = time.monotonic() - answer.started
        return known

    def _keep(self, answer: RunningCheck) -> None:
        self._answers[answer.check.id] = answer
        self._finished.append(answer.check.id)

    def _is_over(self) -> bool:
        return self._clock.read() >= self._end or time.monotonic() >= self.probes.cache.end

    def _start_worker(self) -> None:
        worker = _Worker(self)
        self._workers.append(worker)
        self._idle.clear()
        try:
            worker.thread = limits.start_thread(worker.work, "check-worker")
        except RuntimeError:
            self._workers.remove(worker)
            if not self._workers:
                while self._waiting:
                    self._keep(RunningCheck(self._waiting.pop(), limits.NO_THREAD))
                self._idle.set()

    def _give_up(self) -> None:
        """Abandon threads whose check or probe takes too long; this is safe, as they only read."""
        now = self._clock.read()
        for worker in [*self._workers]:
            answer = worker.answer
            if worker.thread and not worker.thread.is_alive():
                self._give_up_ended(worker)
                continue
            if answer is None:
                continue
            if now >= self._due[answer.check.id] or self._is_over():
                own = answer.check.limit * self._stretch
                worker.abandon()
                in_all = self._is_over()
                why = CUT_OFF if in_all else f"took longer than {own:g} s"
                self._keep(self._late(answer, why))
            elif worker.give_up_overdue():
                self._earlier[answer.check.id] = max(
                    answer, self._earlier.get(answer.check.id, answer), key=_found_so_far
                )
                self._waiting.append(answer.check)  # again, without that probe
            else:
                continue
            self._workers.remove(worker)
            self._start_worker()

    def _give_up_ended(self, worker: _Worker) -> None:
        """Give up the check of a thread that had not even the memory to say that it has too little.

        If it had none, the next check is given up, so that the run does not go on for ever.
        """
        self._workers.remove(worker)
        why = limits.reason("this check")
        if worker.answer is not None:
            self._keep(self._late(worker.answer, why))
        elif self._waiting:
            self._keep(RunningCheck(self._waiting.pop(), why))


def _found_so_far(answer: RunningCheck) -> int:
    return len(answer.findings)
