"""The liveness ladder of a gateway: from a running process up to answers that are sent.

Each rung says what was observed and since when. A gateway reaches the highest rung that holds
while no rung below it has failed; a missing supervisor does not count as a failure, because a
running gateway works without one. A rung that cannot be checked is unknown, and a higher one may
still hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

from hermes_doctor.model import ANSWERS_OUT, OPTIONAL_RUNG, CouldNotLook, Gateway, Rung, RungState
from hermes_doctor.probes.probes import Probes

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
    try:
        server = probes.served_by()
    except CouldNotLook:
        return ()
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
    gateways = probes.gateways()
    if not gateways:
        raise CouldNotLook("no gateway was found among the processes")
    holder = probes.runtime().lock_holder
    return next((one for one in gateways if one.pid == holder), gateways[0])


def _process(probes: Probes) -> Seen:
    if probes.gateways():
        found = _gateway(probes)
        return RungState.OK, f"process {found.pid}", found.running_since
    runtime = probes.runtime()
    if runtime.unseen:
        return RungState.UNKNOWN, runtime.unseen, None
    try:
        pulse = probes.pulse()
    except CouldNotLook:
        lives = probes.diary()
        ended = lives[-1].ended if lives else None
        return RungState.FAILED, "no gateway of this home runs", ended or runtime.updated_at
    return RungState.UNKNOWN, f"none here; {pulse.what}", None


def _lock(probes: Probes) -> Seen:
    found, holder = _gateway(probes), probes.runtime().lock_holder
    if holder == found.pid:
        return RungState.OK, "it holds gateway.lock", found.running_since
    if holder is not None:
        return RungState.FAILED, f"process {holder} holds gateway.lock", None
    kinds = probes.vitals(found.pid).kinds
    if kinds is None:
        return RungState.UNKNOWN, "you may not see what it holds", None
    runtime = probes.runtime()
    mine = runtime.state_owner is not None and runtime.state_owner.pid == found.pid
    if runtime.state == "starting" or not mine:
        return RungState.UNKNOWN, "it is still starting", found.running_since
    return RungState.FAILED, "it does not hold gateway.lock", None


def _supervised(probes: Probes) -> Seen:
    if not probes.gateways() and probes.runtime().unseen:
        return RungState.UNKNOWN, "its process cannot be seen", None
    found = probes.supervision()
    hold = {True: RungState.OK, False: RungState.FAILED, None: RungState.UNKNOWN}[found.revives]
    return hold, found.why, None


def _loop(probes: Probes) -> Seen:
    pulse = probes.pulse()
    if pulse.running is None:
        return RungState.UNKNOWN, pulse.what, None
    if pulse.running:
        return RungState.OK, pulse.what, _gateway(probes).running_since if pulse.pid else None
    return RungState.FAILED, pulse.what, pulse.since


def _platforms(probes: Probes) -> Seen:
    """Compare the platform states that this gateway process reported with its open connections."""
    found = _gateway(probes)
    states = [
        one
        for one in probes.runtime().platforms.values()
        if one.updated_at is not None and one.updated_at >= found.started_at
    ]
    if not states:
        return RungState.UNKNOWN, "it has named no platform since it started", None
    bad = [one for one in states if one.state != "connected"]
    since = max(one.updated_at for one in bad or states if one.updated_at)
    if bad:
        return RungState.FAILED, ", ".join(f"{one.name} {one.state}" for one in bad[:6]), since
    for one in states:
        proof = probes.platform_proof(found, one.name)
        if not proof.connected:
            hold = RungState.UNKNOWN if proof.is_reconnecting else RungState.FAILED
            return hold, f"{one.name}: {proof.reason}", proof.since
    names = frozenset(one.name for one in states)
    links = [one for one in probes.links(found.pid, names) if one.platform.name in names]
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
    found, began = probes.traffic(), _gateway(probes).started_at
    last = found.last_in
    if last is None or last < began:
        if found.started is None or found.started < began - CLOCKS:
            first = datetime.fromtimestamp(found.covers[0], UTC) if found.covers else began
            what = "no message in the newest lines of the log"
            return RungState.UNKNOWN, what, max(first, began)
        return RungState.UNKNOWN, "no message since it started", None
    return RungState.OK, "the last message came in", last


def _answers_out(probes: Probes) -> Seen:
    found, gateway = probes.traffic(), _gateway(probes)
    waits, began = found.waits_since, gateway.started_at
    now = datetime.now(UTC) - gateway.clock_step
    if waits is not None and waits >= began and now - waits > PATIENCE:
        return RungState.FAILED, "a message waits for its answer", waits
    if found.last_out is None or found.last_out < began:
        return RungState.UNKNOWN, "no answer since it started", None
    return RungState.OK, "the last answer went out", found.last_out


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
