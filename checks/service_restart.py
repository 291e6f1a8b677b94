"""Check that something restarts the running gateway when it stops."""

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
    text,
)


@check(id="service-restart", group="supervision", codes=["GW-UNSUPERVISED", "GW-WSL-NO-SYSTEMD"])
def service_restart(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does something restart the gateway when it stops?"""
    found = probes.supervision()
    for why in found.unsure:
        yield CouldNotLook(why)
    running = probes.gateways()
    if not running:
        if not found.units:
            raise Skip("no running gateway and no service for one")
        return
    if found.revives is not False or (found.owner and found.owner.kind == "docker"):
        return
    pid = running[0].pid
    evidence = (Evidence(f"process {pid}", found.why),)
    if found.wsl and not found.booted:
        yield Finding(
            code="GW-WSL-NO-SYSTEMD",
            severity=Severity.WARNING,
            title="nothing restarts the gateway: WSL runs without systemd",
            subject=f"process {pid}",
            detail=(
                "When the terminal closes or Windows sleeps, the gateway stops and the bot stays "
                "silent."
            ),
            evidence=evidence,
            next=(
                "Write `systemd=true` under `[boot]` in /etc/wsl.conf, run `wsl --shutdown` in "
                "Windows, then `hermes gateway install`."
            ),
            data={"pid": pid},
        )
        return
    there = found.units[0] if found.units else None
    yield Finding(
        code="GW-UNSUPERVISED",
        severity=Severity.WARNING,
        title="nothing restarts the gateway when it stops",
        subject=f"process {pid}",
        detail="After a crash, a restart or a reboot the bot stays silent until you start it.",
        evidence=evidence,
        next=text("Stop process {pid}, then start the service {unit}.", pid=pid, unit=there.name)
        if there and not found.owner
        else "",
        since=running[0].started_at,
        fix=None if there else "install-service",
        data={"pid": pid},
    )
