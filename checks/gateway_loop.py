"""Check for a running gateway that is suspended or whose event loop is stuck."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    count,
    text,
)


@check(
    id="gateway-loop",
    group="gateway",
    codes=["GW-LOOP-BLOCKED", "GW-SUSPENDED"],
    limit=10,
    needs="gateway",
)
def gateway_loop(probes: Probes) -> Iterator[Finding]:
    """Does the gateway respond?"""
    if due := probes.next_start():
        raise Skip(due.what)
    pulse = probes.pulse()
    if pulse.running:
        return
    if pulse.running is None:
        raise CouldNotLook(pulse.what)
    data = {"pid": pulse.pid, "certain": pulse.certain, "halted": pulse.halted}
    where = f"process {pulse.pid}"
    if pulse.halted:
        yield Finding(
            code="GW-SUSPENDED",
            severity=Severity.CRITICAL,
            title="the gateway is suspended",
            subject="gateway",
            detail=(
                "Nobody gets an answer until it continues. Ctrl-Z, a debugger, `kill -STOP` or a "
                "paused container suspends a process."
            ),
            evidence=(Evidence(where, pulse.what),),
            since=pulse.since,
            fix="restart-gateway",
            data=data,
            next=text("Let it continue with `kill -CONT {pid}`, or restart it.", pid=pulse.pid),
        )
        return
    evidence = [Evidence(where, pulse.what)]
    if pulse.waiting:
        evidence.append(Evidence(where, f"{count(pulse.waiting, 'connection')} not accepted"))
    waits = probes.vitals(pulse.pid).waits_in if pulse.pid else ""
    if waits:
        evidence.append(Evidence(f"/proc/{pulse.pid}/wchan", waits))
    yield Finding(
        code="GW-LOOP-BLOCKED",
        severity=Severity.CRITICAL if pulse.certain else Severity.WARNING,
        title=(
            "the gateway is frozen"
            if pulse.certain
            else "the gateway does not respond at the moment"
        ),
        subject="gateway",
        detail=(
            "Nobody gets an answer, and it ignores SIGTERM. Usually a plugin, a hook or a slow "
            "disk blocks it."
            if pulse.certain
            else "It may be busy; after 2 minutes without a response it is frozen. The fix waits "
            "that long before it restarts the gateway."
            if pulse.mute
            else "It may be busy; after 2 minutes without a response it is frozen."
        ),
        evidence=tuple(evidence),
        since=pulse.since,
        fix="restart-gateway" if pulse.certain or pulse.mute else None,
        data=data,
        next="" if pulse.certain or pulse.mute else "Check again in 2 minutes.",
    )
