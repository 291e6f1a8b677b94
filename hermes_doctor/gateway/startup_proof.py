"""Wait for proof that a gateway has started: a new process on this home that stays up and works."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from hermes_doctor.message import duration, text
from hermes_doctor.model import CannotFix, CouldNotLook, Gateway

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.processes.runtime_files import Runtime

SETTLE = 8.0
"""Seconds that it must stay up: a failing start fails within this time."""
CONNECTING = 45.0
"""Seconds to wait for its platforms to connect; a later connection is noted, not a failure."""
_LOOK_EVERY = 0.25


class Starter(Protocol):
    """What the proof needs from the gateway control that started the gateway."""

    home: Home

    def probes(self) -> Probes:
        """Fresh probes without cached answers."""

    def trouble(self) -> str | None:
        """Why the start has failed for good, if that is known; else None."""


def wait_for_proof(starter: Starter, deadline: float, old: int | None) -> Iterator[str]:
    """Wait for the proof and yield notes for the receipt; raise CannotFix if it does not come."""
    gateway, runtime = wait_until_running(starter, deadline, old)
    yield f"process {gateway.pid} holds the lock of this home"
    if runtime.state == "starting":
        yield "it is still connecting its platforms"
    _settled(starter, gateway)
    yield _beating(starter, gateway)
    yield from _connected(starter, gateway, deadline)


def wait_until_running(
    starter: Starter, deadline: float, old: int | None
) -> tuple[Gateway, Runtime]:
    """Wait until a new gateway reports that it runs; raise CannotFix if none does."""
    gateway = _appeared(starter, deadline, old)
    return gateway, _up(starter, gateway, deadline)


def _look(starter: Starter) -> tuple[list[Gateway], Runtime]:
    probes = starter.probes()
    return probes.gateways(), probes.runtime()


def _appeared(starter: Starter, deadline: float, old: int | None) -> Gateway:
    """Wait for a new gateway process that holds gateway.lock according to the kernel."""
    seen: list[Gateway] = []
    while True:
        try:
            seen, runtime = _look(starter)
            for gateway in seen:
                if gateway.pid != old and gateway.pid == runtime.lock_holder:
                    return gateway
        except CouldNotLook as why:
            if time.monotonic() >= deadline:
                raise CannotFix(
                    text("Could not check whether the gateway started: {reason}.", reason=why)
                ) from None
        if why_not := starter.trouble():
            raise CannotFix(text("The gateway did not start: {reason}.", reason=why_not))
        if time.monotonic() >= deadline:
            if seen:
                raise CannotFix(
                    text(
                        "The gateway did not start in time: process {pid} has no lock yet.",
                        pid=seen[0].pid,
                    )
                )
            raise CannotFix("The gateway did not start in time.")
        time.sleep(_LOOK_EVERY)


def _up(starter: Starter, gateway: Gateway, deadline: float) -> Runtime:
    """Wait until the gateway's own state file says that it runs."""
    while True:
        gateways, runtime = _look(starter)
        _insist(starter, gateway, gateways)
        own = runtime.state_owner is not None and runtime.state_owner.pid == gateway.pid
        if own and runtime.state == "startup_failed":
            raise CannotFix(
                "The gateway reports that its start failed. Read the newest lines of "
                "logs/errors.log."
            )
        if own and runtime.state in ("running", "degraded", "draining"):
            return runtime
        if time.monotonic() >= deadline:
            if own and runtime.state == "starting":
                return runtime
            raise CannotFix(
                text("Process {pid} started but does not report that it runs.", pid=gateway.pid)
            )
        time.sleep(_LOOK_EVERY)


def _insist(starter: Starter, gateway: Gateway, now: list[Gateway]) -> None:
    if gateway.pid not in [one.pid for one in now]:
        spent = (datetime.now(UTC) - gateway.started_at).total_seconds()
        why = starter.trouble()
        after = duration(spent)
        if why:
            raise CannotFix(
                text(
                    "Process {pid} stopped again after {time}: {reason}.",
                    pid=gateway.pid,
                    time=after,
                    reason=why,
                )
            )
        raise CannotFix(
            text("Process {pid} stopped again after {time}.", pid=gateway.pid, time=after)
        )


def _settled(starter: Starter, gateway: Gateway) -> None:
    until = time.monotonic() + SETTLE
    while time.monotonic() < until:
        _insist(starter, gateway, _look(starter)[0])
        time.sleep(4 * _LOOK_EVERY)


def _beating(starter: Starter, gateway: Gateway) -> str:
    """Check that its event loop runs, if that can be checked; return a note."""
    try:
        pulse = starter.probes().pulse()
    except CouldNotLook as why:
        return f"could not check whether it is frozen: {why}"
    if pulse is None or pulse.running is None:
        return f"it has been running for {SETTLE:.0f} s; whether it is frozen is unknown"
    if not pulse.running:
        raise CannotFix(
            text(
                "Process {pid} started but is frozen: {reason}.",
                pid=gateway.pid,
                reason=pulse.what,
            )
        )
    return f"it has been running for {SETTLE:.0f} s, and {pulse.what}"


def _connected(starter: Starter, gateway: Gateway, deadline: float) -> Iterator[str]:
    """Wait for its platforms and yield notes on them; states of an earlier process do not count."""
    deadline = min(deadline, time.monotonic() + CONNECTING)
    while True:
        gateways, runtime = _look(starter)
        _insist(starter, gateway, gateways)
        states = {
            one.name: one.state
            for one in runtime.platforms.values()
            if one.updated_at and one.updated_at >= gateway.started_at
        }
        waiting = [name for name, state in states.items() if state in ("connecting", "retrying")]
        if not waiting or time.monotonic() >= deadline:
            break
        time.sleep(4 * _LOOK_EVERY)
    good = sorted(name for name, state in states.items() if state == "connected")
    if good:
        yield f"connected: {', '.join(good)}"
    bad = sorted(
        f"{n} ({s})" for n, s in states.items() if s not in ("connected", "disabled", "paused")
    )
    if bad:
        yield f"not connected yet: {', '.join(bad)}"
