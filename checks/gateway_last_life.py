"""Check how the last life of the gateway ended, from its ledger (Hermes 0.19.1 and later)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    clock,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Gateway, Runtime

_CODES = ["GW-DIED", "GW-OOM", "GW-LOOP-BLOCKED", "GW-DRAIN-HANG", "GW-STARTUP-SLOW"]
_LEDGER = "state/gateway.lifecycle.json"
_RECENT = timedelta(hours=6)
_RECENT_OOM = timedelta(days=1)
_SLACK = timedelta(seconds=2)
_ENDS = {
    "loop_liveness_watchdog": (
        "GW-LOOP-BLOCKED",
        "the gateway froze and ended itself",
        "Nobody gets an answer, and nothing has started it again. Its own watchdog ended it "
        "because it did not respond.",
        "Read logs/gateway_faulthandler.log, which shows what blocked it.",
    ),
    "startup_liveness_watchdog": (
        "GW-STARTUP-SLOW",
        "the gateway ended itself before its start was finished",
        "Nobody gets an answer, and nothing has started it again. Its start took too long without "
        "progress.",
        "Read logs/gateway-startup-watchdog.log, which shows where the start hangs.",
    ),
    "shutdown_watchdog": (
        "GW-DRAIN-HANG",
        "the gateway hung while it shut down and was killed",
        "Unfinished answers can be lost. Its own watchdog killed it.",
        "Read logs/gateway-shutdown-watchdog.log, which shows where it hung.",
    ),
}
"""Code, title, detail and next step for each watchdog that ends a gateway."""


@check(id="gateway-last-life", group="gateway", codes=_CODES, needs="last life")
def gateway_last_life(probes: Probes) -> Iterator[Finding]:
    """Did the last gateway end in order?"""
    runtime = probes.runtime()
    ledger = runtime.ledger
    assert ledger is not None
    if gateways := probes.gateways():
        if not ledger.after_death:
            raise Skip("a gateway is running")
        yield from _died_before(probes, runtime, gateways[0])
        return
    if runtime.unseen:
        raise CouldNotLook(runtime.unseen)
    if any(life.pid == ledger.pid for life in probes.diary()) and not ledger.low_memory:
        raise Skip("the exit log records how this gateway ended, and another check reads it")
    if ledger.phase == "running":
        yield from _died(probes, runtime)
    elif ledger.reason in _ENDS:
        code, title, detail, step = _ENDS[ledger.reason]
        yield Finding(
            code=code,
            severity=Severity.WARNING if code == "GW-DRAIN-HANG" else Severity.ERROR,
            title=title,
            subject="gateway",
            detail=detail,
            evidence=(Evidence(_LEDGER, f"exit_reason: {ledger.reason}"),),
            since=ledger.at,
            data={"pid": ledger.pid},
            next=step,
        )


def _died_before(probes: Probes, runtime: Runtime, gateway: Gateway) -> Iterator[Finding]:
    """Report the sudden end of the life before that of the running gateway.

    The ledger has no time for it; log lines and the exit log tell more, but they can be gone.
    """
    ledger = runtime.ledger
    assert ledger is not None
    low = ledger.after_low_memory
    if (
        ledger.at is None
        or ledger.at < gateway.started_at - _SLACK  # the ledger of another gateway
        or datetime.now(UTC) - ledger.at > (_RECENT_OOM if low else _RECENT)
        or gateway.started_at <= probes.proved_at()
    ):
        return
    yield Finding(
        code="GW-OOM" if low else "GW-DIED",
        severity=Severity.WARNING,
        title=(
            "the gateway was killed, probably out of memory"
            if low
            else "the gateway died suddenly and was started again"
        ),
        subject="gateway",
        detail=(
            "Answers in progress were lost. The machine had almost no free memory, so it can "
            "happen again."
            if low
            else "Answers in progress were lost. It logged no error: something killed it, Python "
            "crashed, or the machine went down."
        ),
        evidence=(
            Evidence(_LEDGER, text("the life before the start at {time}", time=clock(ledger.at))),
        ),
        since=ledger.at,
        data={"pid": ledger.pid},
        next=(
            "Give the machine or the service more memory, or use fewer agents at once."
            if low
            else "Look at that time in the kernel log and in logs/gateway_faulthandler.log."
        ),
    )


def _died(probes: Probes, runtime: Runtime) -> Iterator[Finding]:
    """Report a process that is gone but still listed as running."""
    ledger = runtime.ledger
    assert ledger is not None
    seen = [at for at in (ledger.at, runtime.beat and runtime.beat.at) if at]
    if seen and probes.rebooted_since(max(seen)):
        raise Skip("the machine restarted since then")
    what = text("process {pid} is listed as running but is gone", pid=ledger.pid)
    evidence = [Evidence(_LEDGER, what)]
    if runtime.beat and runtime.beat.pid == ledger.pid:
        beat = text("last heartbeat {time}", time=clock(runtime.beat.at))
        evidence.append(Evidence("state/gateway.heartbeat", beat))
    low = ledger.low_memory
    yield Finding(
        code="GW-OOM" if low else "GW-DIED",
        severity=Severity.ERROR,
        title=(
            "the gateway was killed, probably out of memory" if low else "the gateway died suddenly"
        ),
        subject="gateway",
        detail=(
            "Nobody gets an answer. The machine had almost no free memory shortly before."
            if low
            else "Nobody gets an answer. It logged no error. The cause is probably SIGKILL, lack "
            "of memory or a crash of Python."
        ),
        evidence=tuple(evidence),
        since=max(seen, default=None),
        data={"pid": ledger.pid},
        next="Give the machine or the service more memory, or use fewer agents." if low else "",
    )
