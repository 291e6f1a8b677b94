"""Answers the three questions of a container manager: is the gateway live, ready, started?

A manager restarts what is not live. So `live` asks only for the process, its lock and its event
loop, and fails only if one of them is certainly broken: an outage of a platform, or what cannot be
seen, must never restart a healthy gateway. `ready` and `started` need proof.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import duration, text
from hermes_doctor.core.model import Rung, RungState, known_or
from hermes_doctor.diagnosis.examination.liveness import LOCK, LOOP, PLATFORMS, PROCESS, ladder
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.pulse import FRESH, OLD, SKEW
from hermes_doctor.hermes.processes.runtime_files import Heartbeat

LIVE, READY, STARTED = "live", "ready", "started"
QUESTIONS = (LIVE, READY, STARTED)
_RUNGS = {
    LIVE: (PROCESS, LOCK, LOOP),
    READY: (PROCESS, LOCK, LOOP, PLATFORMS),
    STARTED: (PROCESS, LOCK, LOOP),
}


class Answer(NamedTuple):
    """The answer to one question, in one line."""

    yes: bool
    line: str


def answer(probes: Probes, question: str) -> Answer:
    """Answer one of the QUESTIONS; for a profile that the root's gateway serves, ask about that."""
    if known_or(False, lambda: probes.gateway.served_by() is not None):
        probes = Probes(Home(probes.home.path.parent.parent))
    rungs = [_judged(probes, question, rung) for rung in ladder(probes, _RUNGS[question])]
    broken = [rung for rung in rungs if rung.hold is RungState.FAILED]
    if broken:
        return Answer(
            False, text("not {question}: {why}", question=question, why=_told(broken[:1]))
        )
    unknown = [rung for rung in rungs if rung.hold is RungState.UNKNOWN]
    known = [rung for rung in rungs if rung.hold is RungState.OK]
    if question == LIVE:
        if known:
            return Answer(True, text("live: {what}", what=_told(known)))
        return Answer(True, text("perhaps live, could not check: {why}", why=_told(unknown)))
    runtime = known_or(None, probes.gateway.runtime)
    if runtime is not None and runtime.state == "starting":
        return Answer(False, text("not {question} yet: it is still starting", question=question))
    missing = _missing(question, unknown)
    if missing:
        why = _told(missing)
        return Answer(False, text("not {question} yet: {why}", question=question, why=why))
    return Answer(True, text("{question}: {what}", question=question, what=_told(known)))


def unseen(question: str, why: object) -> Answer:
    """The answer if nothing could be checked."""
    if question == LIVE:
        return Answer(True, text("perhaps live, could not check: {why}", why=why))
    return Answer(
        False, text("not {question} yet: could not check: {why}", question=question, why=why)
    )


def _judged(probes: Probes, question: str, rung: Rung) -> Rung:
    """Return the rung; that of the event loop is judged by what this question needs."""
    if rung.name != LOOP:
        return rung
    if rung.hold is RungState.UNKNOWN:
        return _by_heartbeat(probes, rung)
    if (
        rung.hold is RungState.FAILED
        and question == LIVE
        and not known_or(True, lambda: probes.health.pulse().certain)
    ):
        return rung._replace(hold=RungState.UNKNOWN)  # long work looks the same for a moment
    return rung


def _by_heartbeat(probes: Probes, rung: Rung) -> Rung:
    """In a sidecar, where no process can be seen, the heartbeat (0.19 and later) shows the loop."""
    runtime = known_or(None, probes.gateway.runtime)
    if runtime is None or not runtime.unseen or runtime.beat is None:
        return rung
    owner = runtime.state_owner
    if runtime.state != "running" or owner is None or owner.pid != runtime.beat.pid:
        return rung  # the heartbeat is from an earlier life
    age = _age(runtime.beat)
    what = text("its last heartbeat is {time} old", time=duration(max(0.0, age)))
    if -SKEW <= age <= FRESH:
        return rung._replace(hold=RungState.OK, what=what)
    return rung._replace(hold=RungState.FAILED, what=what) if age > OLD else rung


def _age(beat: Heartbeat) -> float:
    """Seconds since a heartbeat; a sleep of the machine or a jump of its clock does not count."""
    wall = (datetime.now(UTC) - beat.at).total_seconds()
    awake = wall if beat.monotonic is None else time.monotonic() - beat.monotonic
    return min(wall, awake) if awake >= 0 else wall


def _missing(question: str, unknown: Sequence[Rung]) -> list[Rung]:
    """The rungs without which the answer is no.

    The lock counts only while the process can be seen. Process or event loop is enough: releases
    before 0.19 do not show their event loop, and a sidecar cannot see the process.
    """
    names = {rung.name for rung in unknown}
    blind = {PROCESS, LOOP} <= names
    if question == READY:
        return [rung for rung in unknown if blind or rung.name == PLATFORMS]
    starting = [rung for rung in unknown if rung.name == LOCK and PROCESS not in names]
    return starting or (list(unknown) if blind else [])


def _told(rungs: Sequence[Rung]) -> str:
    return "; ".join(
        f"connected: {rung.what}"
        if rung.name == PLATFORMS and rung.hold is RungState.OK
        else rung.what
        for rung in rungs
    )
