"""Check that something restarts the running gateway when it stops."""

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
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Unit


@check(
    id="service-restart",
    group="supervision",
    codes=["GW-UNSUPERVISED", "GW-WSL-NO-SYSTEMD", "GW-NOT-ENABLED"],
)
def service_restart(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does something restart the gateway when it stops?"""
    found = probes.supervision()
    for why in found.unsure:
        yield CouldNotLook(why)
    running = probes.gateways()
    due = probes.next_start() if found.owner is None else None
    if due and due.seconds is not None:  # something that we cannot see restarts it all the time
        raise Skip(due.what)
    if not running:
        if not found.units:
            raise Skip("no running gateway and no service for one")
        return
    owner = found.owner
    if owner and owner.systemd and owner.starts_at_boot is False:
        yield _not_enabled(owner)
    if found.revives is not False or (owner and owner.kind == "docker"):
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
            fix="install-service",
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


def _not_enabled(unit: Unit) -> Finding:
    """Report a service that runs now, but that nothing starts with the machine."""
    command = f"{unit.command} enable {unit.name}"
    return Finding(
        code="GW-NOT-ENABLED",
        severity=Severity.WARNING,
        title=text("{unit} is not enabled", unit=unit.name),
        subject=unit.name,
        detail="It runs now, but after a reboot the bot stays silent until you start it.",
        evidence=(Evidence(unit.name, unit.settings.get("UnitFileState", "")),),
        next=""
        if unit.can_be_enabled
        else text(
            "Add the lines `[Install]` and `WantedBy=default.target` to {unit}, then run "
            "`{command}`.",
            unit=unit.name,
            command=command,
        ),
        fix="enable-service" if unit.can_be_enabled else None,
        data={"unit": unit},
    )
