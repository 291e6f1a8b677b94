"""Check that a running gateway does not run out of file descriptors or memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    size,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Vitals

MANY, MOST = 0.7, 0.9
TIGHT, TIGHTEST = 0.85, 0.95
LEAK = 60
"""Descriptors open on one database; a busy gateway has about twenty."""
LARGE = 2 * 1024**3


@check(id="gateway-resources", group="gateway", codes=["GW-FD-EXHAUST", "GW-MEMORY"])
def gateway_resources(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Has the gateway descriptors and memory left?"""
    gateways = probes.gateways()
    if not gateways:
        raise Skip("no gateway is seen to run")
    for gateway in gateways:
        vitals = probes.vitals(gateway.pid)
        if vitals.files is None or vitals.kinds is None:
            yield CouldNotLook(text("what process {pid} has open cannot be seen", pid=vitals.pid))
        else:
            yield from _descriptors(probes, vitals, vitals.files)
        yield from _memory(vitals)


def _descriptors(probes: Probes, vitals: Vitals, used: int) -> Iterator[Finding]:
    limit = vitals.files_limit
    share = used / limit if limit else 0.0
    kinds = sorted((vitals.kinds or {}).items(), key=lambda one: one[1], reverse=True)
    leaks = [(name, count) for name, count in kinds if name.endswith(".db") and count > LEAK]
    if share < MANY and not leaks:
        return
    most = ", ".join(f"{count} {name}" for name, count in (leaks or kinds)[:3])
    yield Finding(
        code="GW-FD-EXHAUST",
        severity=Severity.CRITICAL if share >= MOST else Severity.WARNING,
        title=(
            text("the gateway has used {share:.0%} of its descriptors", share=share)
            if share >= MANY
            else text("the gateway opens {leaks} again and again", leaks=leaks[0][0])
        ),
        subject="gateway",
        detail=(
            "At the limit nothing works any more, databases and connections least of all: `Too "
            "many open files`. A restart gives them back; a higher limit puts it off."
        ),
        evidence=(
            Evidence(f"/proc/{vitals.pid}/fd", f"{used} of {limit or 'no limit'}; most: {most}"),
        ),
        fix="raise-limit" if _by_systemd(probes) else "restart-gateway",
        data={"pid": vitals.pid, "used": used, "limit": limit},
    )


def _by_systemd(probes: Probes) -> bool:
    try:
        owner = probes.supervision().owner
    except CouldNotLook:
        return False
    return owner is not None and owner.kind.startswith("systemd")


def _memory(vitals: Vitals) -> Iterator[Finding]:
    used, limit = vitals.memory_used, vitals.memory_limit
    share = used / limit if used and limit else 0.0
    if share < TIGHT and vitals.memory < LARGE:
        return
    tight = share >= TIGHT
    what = f"process {vitals.pid} uses {size(vitals.memory)}"
    if used and limit and tight:
        what += f"; its cgroup {size(used)} of {size(limit)}"
    yield Finding(
        code="GW-MEMORY",
        severity=(
            (Severity.ERROR if share >= TIGHTEST else Severity.WARNING) if tight else Severity.INFO
        ),
        title=(
            text("the memory that the gateway may use is at {share:.0%}", share=share)
            if tight
            else text("the gateway uses {size} of memory", size=size(vitals.memory))
        ),
        subject="gateway",
        detail=(
            "Past the limit the kernel kills a process of the group, most often the gateway. A "
            "restart gives memory back; a higher MemoryMax or container limit puts it off."
            if tight
            else "Most gateways need less than half a gigabyte. A restart gives it back."
        ),
        evidence=(Evidence("cgroup" if tight else f"/proc/{vitals.pid}/status", what),),
        fix="restart-gateway" if tight else None,
        data={"pid": vitals.pid},
    )
