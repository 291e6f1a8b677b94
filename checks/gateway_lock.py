"""Check pid and lock files, gateways that share a home, and the profiles that one serves."""

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
    snapshot,
    text,
)
from hermes_doctor.api.gateway import OtherGateway, Runtime

_NAMES = ("gateway.pid", "gateway.lock")


@check(id="gateway-lock", group="gateway", codes=["GW-STALE-PID", "GW-LOCK-LOST", "GW-DUPLICATE"])
def gateway_lock(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can the gateway start, and only once?"""
    running = [gateway.pid for gateway in probes.gateway.running()]
    runtime = probes.gateway.runtime()
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
    name = probes.machine.command(pid)
    if probes.machine.process(pid) is None:
        title = text("a child of the ended process {pid} holds gateway.lock", pid=pid)
    elif name:
        title = text("process {pid} ({name}) holds gateway.lock", pid=pid, name=name)
    else:
        title = text("process {pid} holds gateway.lock", pid=pid)
    return Finding(
        code="GW-STALE-PID",
        severity=Severity.ERROR,
        title=title,
        subject="gateway.lock",
        detail=(
            "Nobody gets an answer: a gateway that starts stops with `Gateway runtime lock is "
            "already held by another instance`. This process is not a gateway."
        ),
        evidence=(Evidence("/proc/locks", f"gateway.lock: locked by process {pid}"),),
        data={"pid": pid, "held": True},
        next=(
            "End the process that holds the lock. Do not delete gateway.lock: two gateways "
            "could run then."
        ),
    )


def _in_the_way(probes: Probes) -> Iterator[Finding]:
    """Report pid and lock files that no start can remove; Hermes fails to do so silently."""
    if probes.gateway.is_home_closed():  # another check reports the whole home
        return
    user = probes.gateway.user()
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
                title=text("{name} prevents the gateway from starting", name=name),
                subject=name,
                detail=(
                    "Nobody gets an answer, because the gateway can neither replace nor remove it."
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
    copied = probes.health.copied_from()
    if copied and copied.pid == owner.pid:
        yield _copied(copied)
        return
    seen = probes.machine.process(owner.pid)
    if seen is None:
        what = f"process {owner.pid} has ended"
    elif seen.doing == "Z":
        what = f"process {owner.pid} has ended (zombie of process {seen.parent})"
    elif owner.start_time is not None and seen.start_time != owner.start_time:
        what = f"process {owner.pid} is now another program ({seen.name})"
    else:
        what = f"process {owner.pid} ({seen.name}) is not a gateway of this home"
    yield Finding(
        code="GW-STALE-PID",
        severity=Severity.INFO,
        title="leftover gateway.pid of a stopped gateway (harmless)",
        subject="gateway.pid",
        detail="No process holds the lock, so Hermes removes the file at the next start.",
        evidence=(Evidence("gateway.pid", what),),
        fix="clear-stale-lock",
        data={"name": "gateway.pid", "snapshot": taken, "pid": owner.pid},
    )


def _copied(other: OtherGateway) -> Finding:
    """Report a pid file that was copied from a home whose gateway runs."""
    return Finding(
        code="GW-STALE-PID",
        severity=Severity.INFO,
        title="gateway.pid names the running gateway of another home",
        subject="gateway.pid",
        detail=text(
            "This home was probably copied from {home} while its gateway was running.",
            home=other.home,
        ),
        evidence=(Evidence("gateway.pid", f"process {other.pid}"),),
        data={"name": "gateway.pid", "pid": other.pid},
        next=(
            "Move gateway_state.json, gateway.pid and gateway.lock out of this home, not out of "
            "the original."
        ),
    )


def _several(probes: Probes, runtime: Runtime, running: list[int]) -> Iterator[Finding]:
    """Report several gateways with a lock each, or a running gateway whose lock was deleted."""
    holders, lost = [], []
    for pid in running:
        try:
            vitals = probes.machine.vitals(pid)
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
            title=text("{number} gateways run on this home", number=len(holders)),
            subject="gateway",
            detail=(
                "They take messages from each other, disconnect each other and can damage the "
                "databases."
            ),
            next="Stop all of them, then start one.",
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
                "A second gateway can start. `hermes gateway status` deletes the lock when it "
                "does not recognise the process. A restart creates it again."
            ),
            evidence=(Evidence(f"/proc/{lost[0]}/fd", "gateway.lock (deleted)"),),
            fix="restart-gateway",
            data={"pid": lost[0]},
        )


def _lock(pid: int, lost: list[int]) -> str:
    return "holds a deleted gateway.lock" if pid in lost else "holds gateway.lock"


_STATE = "gateway_state.json"
_BY_SETTINGS = (0, 20, 5)
"""Up to this release, Hermes goes by the settings of the root home, not by the list."""


@check(id="served-profiles", group="gateway", codes=["GW-EXIT78"], needs="profile")
def served_profiles(probes: Probes) -> Iterator[Finding]:
    """May this profile start its own gateway?"""
    listed = probes.gateway.listed_by()
    if listed is None:
        raise Skip("the gateway of the root home does not list this profile")
    installation = probes.hermes.installation()
    if not listed.stale or (installation and installation.release <= _BY_SETTINGS):
        return
    root = probes.home.path.parent.parent
    yield Finding(
        code="GW-EXIT78",
        severity=Severity.ERROR,
        title=text("Hermes refuses a gateway for profile {name}", name=probes.home.profile),
        subject="gateway",
        detail=(
            "Nobody gets an answer here. The root home still lists the profile as served, but its "
            "gateway serves only itself."
        ),
        evidence=(
            Evidence(str(root / _STATE), text("served_profiles: {name}", name=probes.home.profile)),
            Evidence(str(root / "config.yaml"), "multiplex_profiles: false"),
        ),
        next=(
            "Stop the gateway of the root home, move its gateway_state.json away, then start both "
            "gateways."
        ),
    )
