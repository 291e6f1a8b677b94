"""Check that launchd has loaded the gateway's job and restarts the gateway after every exit."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text


@check(
    id="service-job",
    group="supervision",
    codes=["GW-LAUNCHD-EIO", "GW-LAUNCHD-OLD-PLIST"],
    needs="service",
)
def service_job(probes: Probes) -> Iterator[Finding]:
    """Has launchd loaded the job, and does it restart the gateway?"""
    jobs = [unit for unit in probes.supervision().units if unit.kind == "launchd"]
    if not jobs:
        raise Skip("no launchd job for the gateway")
    for unit in jobs:
        if unit.settings.get("Loaded") == "no":
            runs = _runs(probes)
            yield Finding(
                code="GW-LAUNCHD-EIO",
                severity=Severity.WARNING if runs else Severity.ERROR,
                title=text("launchd has not loaded {unit}", unit=unit.name),
                subject=unit.name,
                detail=(
                    "The gateway runs now, but nothing restarts it when it stops. An older copy of "
                    "the job is often the reason."
                    if runs
                    else "The gateway does not start, so nobody gets an answer. An older copy of "
                    "the job is often the reason."
                ),
                evidence=(Evidence(str(unit.path), "exists, but is not loaded"),),
                next=text(
                    "Run `launchctl bootout gui/$UID/{unit}` (ignore an error), then "
                    "`launchctl bootstrap gui/$UID {file}`.",
                    unit=unit.name,
                    file=unit.path,
                ),
                data={"unit": unit},
            )
        if unit.declared.get("KeepAlive") == "unless-clean":
            yield Finding(
                code="GW-LAUNCHD-OLD-PLIST",
                severity=Severity.WARNING,
                title="launchd does not restart the gateway after a clean exit",
                subject=unit.name,
                detail=(
                    "After a restart that the gateway asks for, the bot stays silent. An older "
                    "Hermes wrote the file."
                ),
                evidence=(Evidence(str(unit.path), "KeepAlive contains SuccessfulExit: false"),),
                next="Run `hermes gateway install --force` to write it again.",
                data={"unit": unit},
            )


def _runs(probes: Probes) -> bool:
    try:
        return bool(probes.gateways())
    except CouldNotLook:
        return False
