"""The liveness ladder of a gateway: from a running process up to answers that are sent.

Each rung says what was observed and since when. A gateway reaches the highest rung that holds
while no rung below it has failed; a missing supervisor does not count as a failure, because a
running gateway works without one. A rung that cannot be checked is unknown, and a higher one may
still hold.

The last `hermes-doctor ask` counts as an answer, too. `is_answering` says whether the gateway is
writing one at the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.core.message import duration, text
from hermes_doctor.core.model import (
    ANSWERS_OUT,
    OPTIONAL_RUNG,
    CouldNotLook,
    Gateway,
    Mark,
    Part,
    Rung,
    RungState,
    known_or,
)
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes.runtime_files import Runtime

if TYPE_CHECKING:
    pass

PATIENCE = timedelta(minutes=10)
"""How long an answer may take before it counts as missing."""
CLOCKS = timedelta(seconds=60)
"""How far the clock of the log and the start time of a process may differ."""


def ladder(probes: Probes, names: Collection[str] | None = None) -> tuple[Rung, ...]:
    """All rungs, or those with these names, the lowest first."""
    rungs: list[Rung] = []
    if served := _served(probes):
        return tuple(rung for rung in served if names is None or rung.name in names)
    for name, look in _RUNGS:
        if names is not None and name not in names:
            continue
        broken = [rung for rung in rungs if rung.hold is RungState.FAILED]
        fallen = next((rung for rung in broken if rung.name in (PROCESS, LOOP)), None)
        if fallen:
            rungs.append(Rung(name, RungState.FAILED, f"no {fallen.name}", fallen.since))
            continue
        try:
            hold, what, since = look(probes)
        except CouldNotLook as doubt:
            hold, what, since = RungState.UNKNOWN, str(doubt), None
        rungs.append(Rung(name, hold, what, since))
    return tuple(rungs)


def _served(probes: Probes) -> tuple[Rung, ...]:
    """The rungs of a profile that the root home's gateway serves: only the first one is known."""
    server = known_or(None, probes.gateway.served_by)
    if server is None:
        return ()
    first = f"process {server.pid}, the gateway of the root home, serves this profile"
    rest = "as for the root home, whose gateway serves this profile"
    return (
        Rung(PROCESS, RungState.OK, first, server.running_since),
        *(Rung(name, RungState.UNKNOWN, rest, None) for name, _ in _RUNGS if name != PROCESS),
    )


Seen = tuple[RungState, str, datetime | None]


def _gateway(probes: Probes) -> Gateway:
    """The gateway that holds the lock, else any of them."""
    gateways = probes.gateway.running()
    if not gateways:
        raise CouldNotLook("no gateway was found among the processes")
    holder = probes.gateway.runtime().lock_holder
    return next((gateway for gateway in gateways if gateway.pid == holder), gateways[0])


def _process(probes: Probes) -> Seen:
    if probes.gateway.running():
        gateway = _gateway(probes)
        return RungState.OK, f"process {gateway.pid}", gateway.running_since
    runtime = probes.gateway.runtime()
    if runtime.unseen:
        return RungState.UNKNOWN, runtime.unseen, None
    try:
        pulse = probes.health.pulse()
    except CouldNotLook:
        lives = probes.gateway.diary()
        ended = lives[-1].ended if lives else None
        return RungState.FAILED, "no gateway of this home runs", ended or runtime.updated_at
    return RungState.UNKNOWN, f"none here; {pulse.what}", None


def _lock(probes: Probes) -> Seen:
    gateway, holder = _gateway(probes), probes.gateway.runtime().lock_holder
    if holder == gateway.pid:
        return RungState.OK, "it holds gateway.lock", gateway.running_since
    if holder is not None:
        return RungState.FAILED, f"process {holder} holds gateway.lock", None
    kinds = probes.machine.vitals(gateway.pid).kinds
    if kinds is None:
        return RungState.UNKNOWN, "you may not see what it holds", None
    runtime = probes.gateway.runtime()
    mine = runtime.state_owner is not None and runtime.state_owner.pid == gateway.pid
    if runtime.state == "starting" or not mine:
        return RungState.UNKNOWN, "it is still starting", gateway.running_since
    return RungState.FAILED, "it does not hold gateway.lock", None


def _supervised(probes: Probes) -> Seen:
    if not probes.gateway.running() and probes.gateway.runtime().unseen:
        return RungState.UNKNOWN, "its process cannot be seen", None
    supervision = probes.gateway.supervision()
    hold = {True: RungState.OK, False: RungState.FAILED, None: RungState.UNKNOWN}[
        supervision.revives
    ]
    return hold, supervision.why, None


def _loop(probes: Probes) -> Seen:
    pulse = probes.health.pulse()
    if pulse.running is None:
        return RungState.UNKNOWN, pulse.what, None
    if pulse.running:
        return RungState.OK, pulse.what, _gateway(probes).running_since if pulse.pid else None
    return RungState.FAILED, pulse.what, pulse.since


def _platforms(probes: Probes) -> Seen:
    """Compare the platform states that this gateway process reported with its open connections."""
    gateway = _gateway(probes)
    states = [
        platform
        for platform in probes.gateway.runtime().platforms.values()
        if platform.updated_at is not None and platform.updated_at >= gateway.started_at
    ]
    if not states:
        return RungState.UNKNOWN, "it has named no platform since it started", None
    bad = [platform_state for platform_state in states if platform_state.state != "connected"]
    since = max(one.updated_at for one in bad or states if one.updated_at)
    if bad:
        return RungState.FAILED, ", ".join(f"{one.name} {one.state}" for one in bad[:6]), since
    for state in states:
        proof = probes.health.platform_proof(gateway, state.name)
        if not proof.connected:
            hold = RungState.UNKNOWN if proof.is_reconnecting else RungState.FAILED
            return hold, f"{state.name}: {proof.reason}", proof.since
    names = frozenset(one.name for one in states)
    every = probes.health.links(gateway.pid, names)
    links = [link for link in every if link.platform.name in names]
    for link in links:
        if link.how is None:
            return RungState.FAILED, f"{link.platform.name} has no connection", None
        if dead := link.dead_for():
            silent = datetime.now(UTC) - timedelta(seconds=dead[0])
            return RungState.FAILED, f"the connection of {link.platform.name} is dead", silent
    doubtful = [one.platform.name for one in links if not one.sure]
    said = ", ".join(sorted(names)[:6])
    return RungState.OK, said + (f" (likely: {', '.join(doubtful[:6])})" if doubtful else ""), since


def _messages_in(probes: Probes) -> Seen:
    traffic, began = probes.logs.traffic(), _gateway(probes).started_at
    last = traffic.last_in
    if last is None or last < began:
        if traffic.started is None or traffic.started < began - CLOCKS:
            first = datetime.fromtimestamp(traffic.covers[0], UTC) if traffic.covers else began
            what = "no message in the newest lines of the log"
            return RungState.UNKNOWN, what, max(first, began)
        return RungState.UNKNOWN, "no message since it started", None
    return RungState.OK, "the last message came in", last


def _answers_out(probes: Probes) -> Seen:
    traffic, gateway = probes.logs.traffic(), _gateway(probes)
    waits, began = traffic.waits_since, gateway.started_at
    now = datetime.now(UTC) - gateway.clock_step
    if waits is not None and waits >= began and now - waits > PATIENCE:
        return RungState.FAILED, "a message waits for its answer", waits
    if traffic.last_out is None or traffic.last_out < began:
        return RungState.UNKNOWN, "no answer since it started", None
    return RungState.OK, "the last answer went out", traffic.last_out


PROCESS, LOCK, LOOP, PLATFORMS = "process", "lock", "event loop", "platforms"
_RUNGS: tuple[tuple[str, Callable[[Probes], Seen]], ...] = (
    (PROCESS, _process),
    (LOCK, _lock),
    (OPTIONAL_RUNG, _supervised),
    (LOOP, _loop),
    (PLATFORMS, _platforms),
    ("messages in", _messages_in),
    (ANSWERS_OUT, _answers_out),
)


ANSWERED = "it answered `hermes-doctor ask`"
_FORMS = {
    (True, "ok"): "asked {age} ago: answered in {seconds:.1f} s",
    (True, True): "refused ({status}) {age} ago",
    (True, False): "asked {age} ago: {reason}",
    (False, "ok"): "provider asked {age} ago: answered in {seconds:.1f} s",
    (False, True): "provider refused ({status}) {age} ago",
    (False, False): "provider asked {age} ago: {reason}",
}
"""By whether the gateway was asked, and how it ended: answered, refused, or otherwise."""


def last_ask_parts(probes: Probes) -> Iterable[Part]:
    """The remark about the last question: who was asked, when, and how it ended."""
    from hermes_doctor.backup.records.last_ask import GATEWAY

    record = known_or(None, probes.health.last_ask)
    if record is None:
        return
    last = record.attempts[-1]
    form = _FORMS[record.via == GATEWAY, "ok" if last.is_fine else last.is_refused]
    message = text(
        form,
        age=duration((datetime.now(UTC) - record.at).total_seconds()),
        seconds=max(last.seconds, 0.1),
        status=last.status,
        reason=last.words,
    )
    yield Part(Mark.GOOD if last.is_fine else Mark.BAD, message)


def with_answer(probes: Probes, rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """The ladder, whose last rung also holds if the gateway itself answered a question."""
    from hermes_doctor.backup.records.last_ask import GATEWAY

    record = known_or(None, probes.health.last_ask)
    if record is None or record.via != GATEWAY or not record.is_fine:
        return tuple(rungs)
    return tuple(
        Rung(ANSWERS_OUT, RungState.OK, ANSWERED, record.at)
        if rung.name == ANSWERS_OUT and rung.hold is RungState.UNKNOWN
        else rung
        for rung in rungs
    )


COUNTED_SINCE = (0, 18)
"""Since this release a gateway records at each turn how many agents are active."""


def is_answering(probes: Probes) -> bool:
    """Whether the gateway of this home is writing an answer; False if that is unknown."""
    try:
        gateways, runtime = probes.gateway.running(), probes.gateway.runtime()
    except CouldNotLook:
        return False
    return any(_busy(probes, gateway, runtime) for gateway in gateways)


def _busy(probes: Probes, gateway: Gateway, runtime: Runtime) -> bool:
    own = runtime.state_owner is not None and runtime.state_owner.pid == gateway.pid
    if own and runtime.active_agents:
        return True
    try:
        installation = probes.hermes.installation()
        if (
            own
            and installation
            and installation.release >= COUNTED_SINCE
            and runtime.active_agents is not None
        ):
            return False
        waits = probes.logs.traffic().waits_since
    except CouldNotLook:
        return False
    if waits is None or waits < gateway.started_at:
        return False
    return datetime.now(UTC) - waits < PATIENCE
