"""Check for stale pid and lock files, a lost lock, and several gateways on one home."""

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
    snapshot,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Runtime

_NAMES = ("gateway.pid", "gateway.lock")


@check(id="gateway-lock", group="gateway", codes=["GW-STALE-PID", "GW-LOCK-LOST", "GW-DUPLICATE"])
def gateway_lock(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Would a start find the way free, and a second one find it closed?"""
    running = [gateway.pid for gateway in probes.gateways()]
    runtime = probes.runtime()
    for doubt in runtime.doubts:
        yield CouldNotLook(doubt)
    if running:
        yield from _several(probes, runtime, running)
        return
    if runtime.unseen:
        raise CouldNotLook(runtime.unseen)
    if runtime.lock_holder:
        yield _held(probes, runtime.lock_holder)
    elif runtime.lock_holder is None:
        yield from _in_the_way(probes)
        yield from _left(probes, runtime)


def _held(probes: Probes, pid: int) -> Finding:
    name = probes.command(pid)
    alive = probes.process(pid) is not None
    who = f"process {pid} ({name})" if name else f"process {pid}"
    if not alive:
        who = f"a child of process {pid}, which is no more,"
    return Finding(
        code="GW-STALE-PID",
        severity=Severity.ERROR,
        title=text("{who} holds gateway.lock and is no gateway", who=who),
        subject="gateway.lock",
        detail=(
            "Every start ends with `Gateway runtime lock is already held by another instance`. "
            "The lock goes when that process ends; deleting the file would let two gateways run."
        ),
        evidence=(Evidence("/proc/locks", f"gateway.lock is held by process {pid}"),),
        data={"pid": pid, "held": True},
    )


def _in_the_way(probes: Probes) -> Iterator[Finding]:
    """Report pid and lock files that no start can remove; Hermes fails to do so silently."""
    user = probes.gateway_user()
    for name in _NAMES:
        taken = snapshot(probes.home / name)
        what = ""
        if taken.kind not in ("absent", "file"):
            what = f"is a {taken.kind}"
        elif taken.kind == "file" and name == "gateway.lock" and not user.may_write(taken):
            what = f"owner {taken.uid}, mode {taken.mode:04o}; the gateway runs as {user.uid}"
        if what:
            yield Finding(
                code="GW-STALE-PID",
                severity=Severity.ERROR,
                title=text("{name} keeps every gateway from starting", name=name),
                subject=name,
                detail=(
                    "A start takes the file for the lock of another gateway (`PID file race "
                    "lost`), or fails to open it."
                ),
                evidence=(Evidence(name, what),),
                fix="clear-stale-lock",
                data={"name": name, "snapshot": taken},
            )


def _left(probes: Probes, runtime: Runtime) -> Iterator[Finding]:
    """Report a pid file whose process has ended, or whose pid belongs to another process now."""
    owner = runtime.pid_file
    taken = snapshot(probes.home / "gateway.pid")
    if owner is None or taken.kind != "file":
        return
    seen = probes.process(owner.pid)
    if seen is None:
        what = f"process {owner.pid} is no more"
    elif seen.doing == "Z":
        what = f"process {owner.pid} has ended, and its parent {seen.parent} has not buried it"
    elif owner.start_time is not None and seen.start_time != owner.start_time:
        what = f"process {owner.pid} is another one by now ({seen.name})"
    else:
        what = f"process {owner.pid} ({seen.name}) is no gateway of this home"
    yield Finding(
        code="GW-STALE-PID",
        severity=Severity.INFO,
        title="gateway.pid names a gateway that is no more",
        subject="gateway.pid",
        detail=(
            "Nobody holds the lock, so Hermes 0.13 to 0.19 clears both files at the next start; "
            "until then other tools may take it for running."
        ),
        evidence=(Evidence("gateway.pid", what),),
        caused_by="GW-DIED",
        fix="clear-stale-lock",
        data={"name": "gateway.pid", "snapshot": taken, "pid": owner.pid},
    )


def _several(probes: Probes, runtime: Runtime, running: list[int]) -> Iterator[Finding]:
    """Report several gateways with a lock each, or a running gateway whose lock was deleted."""
    holders, lost = [], []
    for pid in running:
        try:
            vitals = probes.vitals(pid)
        except CouldNotLook:
            continue
        if vitals.kinds and vitals.kinds.get("gateway.lock"):
            holders.append(pid)
        if vitals.deleted and str(probes.home / "gateway.lock") in vitals.deleted:
            lost.append(pid)
    if len(holders) > 1:
        yield Finding(
            code="GW-DUPLICATE",
            severity=Severity.CRITICAL,
            title=text("{number} gateways run on this home at once", number=len(holders)),
            subject="gateway",
            detail=(
                "They take each other's messages, log each other out and write into the same "
                "databases. One of them must go: stop them all, then start one."
            ),
            evidence=tuple(Evidence(f"process {pid}", _lock(pid, lost)) for pid in holders),
            fix="restart-gateway",
            data={"pids": tuple(holders), "keep": runtime.lock_holder},
        )
    elif lost:
        yield Finding(
            code="GW-LOCK-LOST",
            severity=Severity.WARNING,
            title="the lock of the running gateway was deleted",
            subject="gateway.lock",
            detail=(
                "A second gateway could start beside it, and Hermes' own commands no longer see "
                "it. `hermes gateway status` deletes the lock when it fails to recognise the "
                "process, as with the package setproctitle installed. A restart makes it anew."
            ),
            evidence=(Evidence(f"/proc/{lost[0]}/fd", "gateway.lock, deleted"),),
            fix="restart-gateway",
            data={"pid": lost[0]},
        )


def _lock(pid: int, lost: list[int]) -> str:
    return "holds a gateway.lock that was deleted" if pid in lost else "holds gateway.lock"
