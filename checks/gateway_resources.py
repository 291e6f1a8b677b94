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
    check,
    size,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Vitals

MANY, MOST = 0.7, 0.97
TIGHT, TIGHTEST = 0.85, 0.95
LEAK = 60
"""Descriptors open on one database; a busy gateway has about twenty."""
LARGE = 2 * 1024**3


@check(
    id="gateway-resources", group="gateway", codes=["GW-FD-EXHAUST", "GW-MEMORY"], needs="gateway"
)
def gateway_resources(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Has the gateway enough file descriptors and memory?"""
    gateways = probes.gateways()
    for gateway in gateways:
        vitals = probes.vitals(gateway.pid)
        if vitals.files is None or vitals.kinds is None:
            yield CouldNotLook(
                text(
                    "could not read the open files of process {pid}: permission denied",
                    pid=vitals.pid,
                )
            )
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
            text("the gateway uses {share:.0%} of its file descriptors", share=share)
            if share >= MANY
            else text("the gateway opens {name} too often", name=leaks[0][0])
        ),
        subject="gateway",
        detail=(
            "At the limit (`Too many open files`) the bot cannot answer or save anything. A "
            "restart frees them; a higher limit only delays it."
        ),
        evidence=(
            Evidence(
                f"/proc/{vitals.pid}/fd", f"{used} open, limit {limit or 'none'}; most: {most}"
            ),
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
    what = f"process {vitals.pid}: {size(vitals.memory)}"
    if used and limit and tight:
        what += f"; its control group: {size(used)} of {size(limit)}"
    yield Finding(
        code="GW-MEMORY",
        severity=(
            (Severity.ERROR if share >= TIGHTEST else Severity.WARNING) if tight else Severity.INFO
        ),
        title=(
            text("the gateway uses {share:.0%} of the memory it may use", share=share)
            if tight
            else text("the gateway uses {size} of memory", size=size(vitals.memory))
        ),
        subject="gateway",
        detail=(
            "At the limit the kernel kills the gateway. A restart frees memory; a higher MemoryMax "
            "or container limit only delays it."
            if tight
            else "Most gateways need less than 0.5 GB. A restart frees it."
        ),
        evidence=(Evidence("cgroup" if tight else f"/proc/{vitals.pid}/status", what),),
        fix="restart-gateway" if tight else None,
        data={"pid": vitals.pid},
    )
