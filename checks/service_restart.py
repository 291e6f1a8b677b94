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
    """Would something start the gateway again when it ends?"""
    found = probes.supervision()
    for why in found.unsure:
        yield CouldNotLook(why)
    running = probes.gateways()
    if not running:
        if not found.units:
            raise Skip("no gateway is seen to run, and nothing is set up to run one")
        return
    if found.revives is not False or (found.owner and found.owner.kind == "docker"):
        return
    pid = running[0].pid
    evidence = (Evidence(f"process {pid}", found.why),)
    if found.wsl and not found.booted:
        yield Finding(
            code="GW-WSL-NO-SYSTEMD",
            severity=Severity.WARNING,
            title="WSL runs without systemd, so nothing starts the gateway again",
            subject=f"process {pid}",
            detail=(
                "It ends with the terminal or with the machine's next sleep, and stays down. Put "
                "`systemd=true` under `[boot]` in /etc/wsl.conf, run `wsl --shutdown` from "
                "Windows, then `hermes gateway install`."
            ),
            evidence=evidence,
            data={"pid": pid},
        )
        return
    there = found.units[0] if found.units else None
    yield Finding(
        code="GW-UNSUPERVISED",
        severity=Severity.WARNING,
        title="nothing starts the gateway again when it ends",
        subject=f"process {pid}",
        detail=(
            text(
                "A crash, a restart that it asks for itself, or a reboot leaves it "
                "down. {there} is set up for it: end this process, then start the "
                "service.",
                there=there.name,
            )
            if there and not found.owner
            else "A crash, a restart that it asks for itself, or a reboot leaves it down."
        ),
        evidence=evidence,
        since=running[0].started_at,
        fix=None if there else "install-service",
        data={"pid": pid},
    )
