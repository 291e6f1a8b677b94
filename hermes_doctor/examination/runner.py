"""Run checks in parallel threads, each isolated and with a time limit."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hermes_doctor.examination import offers, states
from hermes_doctor.examination.liveness import ladder
from hermes_doctor.examination.verdict import judge
from hermes_doctor.lazy import EMPTY
from hermes_doctor.model import (
    CheckResult,
    CouldNotLook,
    Finding,
    Gateway,
    Partly,
    Report,
    Rung,
    Severity,
    Skip,
    Status,
)
from hermes_doctor.plugins.declare import Check
from hermes_doctor.plugins.load import Plugins
from hermes_doctor.plugins.mount import Broken
from hermes_doctor.probes.probes import Probes
from hermes_doctor.system import threads, time_limits
from hermes_doctor.system.once import DEEP

AT_ONCE = 8
FEW = 1
"""Checks that run at once while they make progress: more would only compete for the GIL."""
STALL_SECONDS = 0.01
"""Seconds without a finished check after which one more is started: the running ones wait."""
LIMIT = 30.0
"""Seconds for all checks together on an idle machine; each check's own limit is measured alike."""
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
        self.crashed: str | None = None
        self.seconds = 0.0

    def ask(self, probes: Probes) -> None:
        """Run the check; an exception becomes part of the answer."""
        try:
            unjudged = self._unjudged(probes)
            if unjudged and set(self.check.by_release) == set(self.check.codes):
                raise Skip(unjudged)
            for said in self.check.look(probes):
                if isinstance(said, CouldNotLook):
                    self.doubts.append(str(said))
                elif isinstance(said, Partly):
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
                    self.findings.append(said._replace(check=self.check.id))
        except CouldNotLook as doubt:
            self.doubts.append(str(doubt))
        except Skip as skip:
            self.skipped = str(skip)
        except BaseException as error:
            self.crashed = describe_crash(error)
        finally:
            self.seconds = time.monotonic() - self.started

    def _unjudged(self, probes: Probes) -> str:
        """Why the release-dependent part of the check is skipped: Hermes is too new; or ""."""
        if not self.check.by_release:
            return ""
        try:
            newer = probes.newer()
        except CouldNotLook:
            return ""
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
        return CheckResult(self.check.id, self.check.group, status, self.seconds, reason)


def examine(
    probes: Probes,
    checks: Sequence[Check],
    *,
    limit: float = LIMIT,
    progress: Callable[[str], None] | None = None,
) -> tuple[list[CheckResult], list[Finding]]:
    """Run every check; return results in the order of the checks, findings worst first."""
    with redirect_stdout(sys.stderr):  # what a check prints is not part of our output
        return _examine(probes, checks, limit, progress)


def _examine(
    probes: Probes,
    checks: Sequence[Check],
    limit: float,
    progress: Callable[[str], None] | None,
) -> tuple[list[CheckResult], list[Finding]]:
    probes.choose_knowledge()
    stretch = DEEP if probes.deep else 1
    clock, end = time_limits.Stopwatch(), limit * stretch
    due: dict[str, float] = {}
    waiting = list(reversed(checks))
    running: list[RunningCheck] = []
    answers: dict[str, RunningCheck] = {}
    done: queue.SimpleQueue[RunningCheck] = queue.SimpleQueue()
    room = FEW

    def work(answer: RunningCheck) -> None:
        answer.ask(probes)
        done.put(answer)

    while waiting or running:
        while waiting and len(running) < room and clock.read() < end:
            answer = RunningCheck(waiting.pop())
            due[answer.check.id] = min(end, clock.read() + answer.check.limit * stretch)
            answers[answer.check.id] = answer
            running.append(answer)
            threads.start(partial(work, answer), f"check-{answer.check.id}")
        if not running:
            break
        first = min(due[answer.check.id] for answer in running)
        pause = min(time_limits.SLICE, first - clock.read())
        if waiting and room < AT_ONCE:
            pause = min(pause, STALL_SECONDS)
        try:
            finished = done.get(timeout=max(0.0, time_limits.stretch(pause)))
            room = max(FEW, room - 1)
            if finished in running:
                running.remove(finished)
                if progress:
                    progress(finished.check.id)
            continue
        except queue.Empty:
            room = min(AT_ONCE, room + 1)
        now = clock.read()
        for answer in list(running):  # its thread is abandoned: it only reads
            if now >= due[answer.check.id]:
                own = min(answer.check.limit * stretch, end)
                # A copy: the abandoned thread may go on adding to the old one.
                known = RunningCheck(answer.check, f"took longer than {own:g} s")
                known.findings = list(answer.findings)
                known.seconds = time.monotonic() - answer.started
                answers[answer.check.id] = known
                running.remove(answer)
    for check in waiting:
        answers[check.id] = RunningCheck(
            check, late="the time for all checks was used up before it ran"
        )
    ordered = [answers[check.id] for check in checks]
    findings = [finding for answer in ordered for finding in answer.findings]
    return [answer.result() for answer in ordered], sort(findings)


def sort(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings: worst first, then by code and subject."""
    return sorted(findings, key=lambda f: (f.severity.rank, f.code, f.subject))


def describe_crash(error: BaseException) -> str:
    """Describe a crash by error type and code location, without the data in it."""
    where = ""
    trace = error.__traceback__
    while trace is not None:
        where = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    said = f" ({error})" if isinstance(error, Undeclared) else ""
    return f"{type(error).__name__}{where}{said}"


def _platforms(probes: Probes) -> set[str] | None:
    """The platforms that are set up, as logs name them; None if that is unknown."""
    try:
        return {platform.name for platform in probes.platforms()}
    except CouldNotLook:
        return None


def report(
    probes: Probes,
    plugins: Plugins,
    checks: Sequence[Check],
    *,
    options: str = "",
    page_options: str = "",
    limit: float = LIMIT,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Examine one home and make the report."""
    started, clock = datetime.now(UTC), time.monotonic()
    results, findings = examine(probes, checks, limit=limit, progress=progress)
    if findings:
        from hermes_doctor.examination.causes import merge_and_explain

        findings = sort(
            merge_and_explain(findings, results, plugins.causes, lambda: _platforms(probes))
        )
        results = [_joined(result, findings) for result in results]
    fixes = {fix.id: fix.safety for fix in plugins.fixes} if findings else {}
    results += [broken_plugin_result(one) for one in plugins.broken]
    rungs = _ladder(probes)
    made = Report(
        home=probes.home.path,
        hermes_version=_version(probes),
        started_at=started,
        seconds=time.monotonic() - clock,
        checks=tuple(results),
        findings=tuple(findings),
        fixes=fixes,
        personal=frozenset(fix.id for fix in plugins.fixes if fix.personal and fix.id in fixes),
        options=options,
        page_options=page_options,
        gateways=_gateways(probes),
        ladder=rungs,
        states=states.describe(probes, rungs, findings, plugins.effects),
        effects=plugins.effects,
        complete=len(checks) == len(plugins.checks),
        refusals=offers.refusals(probes, plugins.fixes, findings) if findings else EMPTY,
    )
    return made._replace(verdict=judge(made))


def _joined(result: CheckResult, findings: Sequence[Finding]) -> CheckResult:
    """Correct a check's result if all its findings were dropped or merged into others."""
    own = any(f.check == result.id and f.severity is not Severity.INFO for f in findings)
    if result.status is not Status.PROBLEM or own:
        return result
    return result._replace(status=Status.UNKNOWN if result.reason else Status.OK)


def broken_plugin_result(plugin: Broken) -> CheckResult:
    """The result for a plugin that could not be loaded: it counts as a crashed check."""
    return CheckResult(
        f"plugin:{plugin.path.name}", "plugins", Status.CRASHED, 0.0, f"not loaded: {plugin.why}"
    )


def _version(probes: Probes) -> str | None:
    try:
        found = probes.installation()
    except CouldNotLook:
        return None
    return found.version if found else None


def _ladder(probes: Probes) -> tuple[Rung, ...]:
    try:
        return ladder(probes)
    except Exception:
        return ()


def _gateways(probes: Probes) -> tuple[Gateway, ...] | None:
    try:
        found = tuple(probes.gateways())
        return None if not found and probes.runtime().unseen else found
    except CouldNotLook:
        return None
