"""Answers the three questions of a container manager: is the gateway live, ready, started?

A manager restarts what is not live. So `live` asks only for the process, its lock and its event
loop, and fails only if one of them is known to be broken: an outage of a platform, or what cannot
be seen, must never restart a healthy gateway. `ready` and `started` need proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hermes_doctor.examination.liveness import LOCK, LOOP, PLATFORMS, PROCESS, ladder
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import duration, text
from hermes_doctor.model import CouldNotLook, Rung, RungState
from hermes_doctor.probes.probes import Probes
from hermes_doctor.probes.pulse import FRESH, OLD, SKEW

LIVE, READY, STARTED = "live", "ready", "started"
QUESTIONS = (LIVE, READY, STARTED)
_RUNGS = {
    LIVE: (PROCESS, LOCK, LOOP),
    READY: (PROCESS, LOCK, LOOP, PLATFORMS),
    STARTED: (PROCESS, LOCK, LOOP),
}


class Answer(NamedTuple):
    """The answer to one question, in one line."""

    holds: bool
    line: str


def answer(probes: Probes, question: str) -> Answer:
    """Answer one of the QUESTIONS."""
    rungs = [_by_heartbeat(probes, rung) for rung in ladder(probes, _RUNGS[question])]
    broken = [rung for rung in rungs if rung.hold is RungState.FAILED]
    if broken:
        return Answer(
            False, text("not {question}: {why}", question=question, why=_told(broken[:1]))
        )
    unknown = [rung for rung in rungs if rung.hold is RungState.UNKNOWN]
    known = [rung for rung in rungs if rung.hold is RungState.OK]
    if question == LIVE and not known:
        why = _told(unknown)
        return Answer(True, text("perhaps live, could not check: {why}", why=why))
    if question == LIVE or not _missing(question, unknown):
        return Answer(True, text("{question}: {what}", question=question, what=_told(known)))
    why = _told(_missing(question, unknown))
    return Answer(False, text("not {question} yet: {why}", question=question, why=why))


def _by_heartbeat(probes: Probes, rung: Rung) -> Rung:
    """In a sidecar, where no process can be seen, the heartbeat (0.19 and later) shows the loop."""
    if rung.name != LOOP or rung.hold is not RungState.UNKNOWN:
        return rung
    try:
        runtime = probes.runtime()
    except CouldNotLook:
        return rung
    if not runtime.unseen or runtime.beat is None:
        return rung
    age = (datetime.now(UTC) - runtime.beat.at).total_seconds()
    what = text("its last heartbeat is {time} old", time=duration(max(0.0, age)))
    if -SKEW <= age <= FRESH:
        return rung._replace(hold=RungState.OK, what=what)
    return rung._replace(hold=RungState.FAILED, what=what) if age > OLD else rung


def _missing(question: str, unknown: Sequence[Rung]) -> list[Rung]:
    """The rungs without which the answer is no.

    The lock counts only while the process can be seen, and old releases do not show their event
    loop. A gateway that another container runs is known by its event loop alone.
    """
    names = {rung.name for rung in unknown}
    if question == READY:
        return [rung for rung in unknown if rung.name == PLATFORMS or names >= {PROCESS, LOOP}]
    starting = [rung for rung in unknown if rung.name == LOCK and PROCESS not in names]
    return starting or [rung for rung in unknown if names >= {PROCESS, LOOP}]


def _told(rungs: Sequence[Rung]) -> str:
    return "; ".join(map(_words, rungs))


def _words(rung: Rung) -> str:
    if rung.name == PLATFORMS and rung.hold is RungState.OK:
        return f"connected: {rung.what}"
    return rung.what
