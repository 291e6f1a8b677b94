"""Check for a running gateway that is suspended or whose event loop is stuck."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text


@check(
    id="gateway-loop",
    group="gateway",
    codes=["GW-LOOP-BLOCKED", "GW-SUSPENDED"],
    limit=10,
)
def gateway_loop(probes: Probes) -> Iterator[Finding]:
    """Does the event loop of the gateway turn?"""
    if not probes.gateways():
        raise Skip("no gateway is seen to run")
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
                text(
                    "It stands still and would go on where it was. Ctrl-Z, a debugger, "
                    "`kill -STOP` or a paused container does that; `kill -CONT {pid}` "
                    "wakes it.",
                    pid=pulse.pid,
                )
            ),
            evidence=(Evidence(where, pulse.what),),
            since=pulse.since,
            fix="restart-gateway",
            data=data,
        )
        return
    evidence = [Evidence(where, pulse.what)]
    if pulse.waiting:
        evidence.append(Evidence(where, f"{pulse.waiting} callers wait at its door"))
    waits = probes.vitals(pulse.pid).waits_in if pulse.pid else ""
    if waits:
        evidence.append(Evidence(f"/proc/{pulse.pid}/wchan", waits))
    yield Finding(
        code="GW-LOOP-BLOCKED",
        severity=Severity.CRITICAL if pulse.certain else Severity.WARNING,
        title=(
            "the gateway runs, and its event loop does not turn"
            if pulse.certain
            else "the event loop of the gateway does not answer just now"
        ),
        subject="gateway",
        detail=(
            "No message is taken and none is answered, and it does not even heed a SIGTERM. A "
            "plugin, a hook or a slow disk blocks it."
            if pulse.certain
            else "It may be at one long piece of work. If this stays for two minutes, it is stuck"
            + ("; the fix watches it for so long." if pulse.mute else ".")
        ),
        evidence=tuple(evidence),
        since=pulse.since,
        fix="restart-gateway" if pulse.certain or pulse.mute else None,
        data=data,
    )
