"""Check whether the clock of the machine has jumped since the gateway started."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    clock,
    duration,
    snapshot,
    text,
)

_NOTABLE = timedelta(minutes=2)


@check(id="clock-step", group="gateway", codes=["CLOCK-STEP"], needs="gateway")
def clock_step(probes: Probes) -> Iterator[Finding]:
    """Has the clock been steady since the gateway started?"""
    gateway = probes.gateways()[0]
    written = datetime.fromtimestamp(snapshot(probes.home / "gateway.pid").mtime_ns / 1e9, UTC)
    back = written - datetime.now(UTC)
    step = max(gateway.clock_step, back)
    if step < _NOTABLE:
        return
    span = duration(step.total_seconds())
    yield Finding(
        code="CLOCK-STEP",
        severity=Severity.INFO,
        title=(
            text("the clock was set back by {span} after the start", span=span)
            if step == back
            else text("the clock jumped forward by {span} after the start", span=span)
        ),
        subject="clock",
        detail=(
            "Times in logs from before and after the jump do not match. Most often the clock was "
            "corrected, or the machine was paused."
        ),
        evidence=(
            Evidence("gateway.pid", text("written {time}, at the start", time=clock(written))),
            Evidence(
                text("process {pid}", pid=gateway.pid),
                text("started {time} by the present clock", time=clock(gateway.running_since)),
            ),
        ),
        next="Compare `date` with another clock. If the time is right, there is nothing to do.",
        data={"step": round(step.total_seconds())},
    )
