"""Wait for proof that a gateway has started: a new process on this home that stays up and works."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Protocol

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import duration, listed, text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Gateway
from hermes_doctor.core.system import progress
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes.runtime_files import Runtime

SETTLE = 8.0
"""Seconds that it must stay up: a failing start fails within this time."""
STEADY = 60.0
"""The same after a crash loop, in which it may fail late; HERMES_DOCTOR_STEADY overrides it."""
CONNECTING = 45.0
"""Seconds to wait for its platforms to connect; a later connection is noted, not a failure."""
LONGEST_WAIT = 300.0
"""The most seconds that Hermes waits before a start; one that fails and waits again is too late."""
_LOOK_EVERY = 0.25


class StoppedAgain(CannotFix):
    """Raised if the gateway that started has ended again."""

    def __init__(self, why: str, gateway: Gateway) -> None:
        super().__init__(why)
        self.gateway = gateway


class Starter(Protocol):
    """What the proof needs from the gateway control that started the gateway."""

    home: Home
    looped: bool | None
    """Whether the gateway was in a crash loop before."""

    def probes(self) -> Probes:
        """Fresh probes without cached answers."""

    def trouble(self) -> str | None:
        """Why the start has failed for good, if that is known; else None."""


def wait_for_proof(
    starter: Starter, deadline: float, old: int | None, missing: dict[str, str]
) -> Iterator[str]:
    """Wait for the proof and yield notes for the receipt; raise CannotFix if it does not come.

    A platform that does not connect in time is not a failure of the start: it is put into
    `missing`, with its reason.
    """
    gateway, runtime = wait_until_running(starter, deadline, old)
    deadline = max(deadline, time.monotonic() + CONNECTING)
    yield f"process {gateway.pid} holds the lock of this home"
    if runtime.state == "starting":
        yield "it is still connecting its platforms"
    if not starter.looped:
        seconds = SETTLE
    else:
        try:
            seconds = float(os.environ["HERMES_DOCTOR_STEADY"])
        except (KeyError, ValueError):
            seconds = STEADY
    until = time.monotonic() + seconds
    progress.report(f"checking that the gateway stays up (for {seconds:.0f} s)")
    while time.monotonic() < until:
        _insist(starter, gateway, _look(starter)[0])
        time.sleep(4 * _LOOK_EVERY)
    yield _beating(starter, gateway, seconds)
    yield from _connected(starter, gateway, deadline, missing)


def wait_until_running(
    starter: Starter, deadline: float, old: int | None
) -> tuple[Gateway, Runtime]:
    """Wait until a new gateway reports that it runs; raise CannotFix if none does."""
    gateway = _appeared(starter, deadline, old)
    return gateway, _up(starter, gateway, max(deadline, time.monotonic() + CONNECTING))


def _look(starter: Starter) -> tuple[list[Gateway], Runtime]:
    probes = starter.probes()
    return probes.gateway.running(), probes.gateway.runtime()


def _appeared(starter: Starter, deadline: float, old: int | None) -> Gateway:
    """Wait for a new gateway process that holds gateway.lock according to the kernel.

    The time that Hermes itself waits before its start does not count.
    """
    seen: list[Gateway] = []
    limit = deadline - time.monotonic()
    last = deadline + LONGEST_WAIT
    while True:
        try:
            probes = starter.probes()
            seen, runtime = probes.gateway.running(), probes.gateway.runtime()
            for gateway in seen:
                if gateway.pid != old and gateway.pid == runtime.lock_holder:
                    return gateway
            if seen and (due := probes.health.next_start()) and due.seconds is not None:
                progress.report(due.what)
                deadline = min(last, time.monotonic() + due.seconds + limit)
        except CouldNotLook as why:
            if time.monotonic() >= deadline:
                raise CannotFix(
                    "Could not check whether the gateway started: {reason}.", reason=why
                ) from None
        if why_not := starter.trouble():
            raise CannotFix("The gateway did not start: {reason}.", reason=why_not)
        if time.monotonic() >= deadline:
            if seen:
                raise CannotFix(
                    "The gateway did not start in time: process {pid} has no lock yet.",
                    pid=seen[0].pid,
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
                "Process {pid} started but does not report that it runs.", pid=gateway.pid
            )
        time.sleep(_LOOK_EVERY)


def _insist(starter: Starter, gateway: Gateway, now: list[Gateway]) -> None:
    if gateway.pid not in [one.pid for one in now]:
        spent = (datetime.now(UTC) - gateway.running_since).total_seconds()
        why = starter.trouble()
        after = duration(spent)
        what = text("Process {pid} stopped again after {time}.", pid=gateway.pid, time=after)
        if why:
            what = text(
                "Process {pid} stopped again after {time}: {reason}.",
                pid=gateway.pid,
                time=after,
                reason=why,
            )
        raise StoppedAgain(what, gateway)


def _beating(starter: Starter, gateway: Gateway, seconds: float) -> str:
    """Check that its event loop runs, if that can be checked; return a note."""
    try:
        pulse = starter.probes().health.pulse()
    except CouldNotLook as why:
        return f"could not check whether it is frozen: {why}"
    if pulse is None or pulse.running is None:
        return f"it has been running for {seconds:.0f} s; whether it is frozen is unknown"
    if not pulse.running:
        raise CannotFix(
            "Process {pid} started but is frozen: {reason}.", pid=gateway.pid, reason=pulse.what
        )
    return f"it has been running for {seconds:.0f} s, and {pulse.what}"


def _connected(
    starter: Starter, gateway: Gateway, deadline: float, missing: dict[str, str]
) -> Iterator[str]:
    """Wait for its platforms and yield notes; put those that are not connected into `missing`."""
    limit = max(0.0, min(deadline - time.monotonic(), CONNECTING))
    until = time.monotonic() + limit
    while True:
        probes = starter.probes()
        _insist(starter, gateway, probes.gateway.running())
        try:
            labels = {platform.name: platform.label for platform in probes.settings.platforms()}
        except CouldNotLook:
            labels = {}
        claims = probes.gateway.claims(gateway) or {}
        off = {name for name, claim in claims.items() if claim.state == "disabled"}
        proofs = {
            name: probes.health.platform_proof(gateway, name) for name in {*labels, *claims} - off
        }
        waiting = [name for name, proof in proofs.items() if not (proof.connected or proof.final)]
        if not waiting or time.monotonic() >= until:
            break
        names = listed([labels.get(name, name) for name in waiting])
        progress.report(f"waiting for {names} to connect (at most {limit:.0f} s)")
        time.sleep(4 * _LOOK_EVERY)
    good = sorted(name for name, proof in proofs.items() if proof.connected)
    if good:
        yield f"connected: {', '.join(good)}"
    missing.clear()
    for name, proof in sorted(proofs.items()):
        if not proof.connected:
            missing[name] = f"{labels.get(name, name)}: {proof.reason}"
    if missing:
        yield f"not connected yet: {', '.join(missing)}"
