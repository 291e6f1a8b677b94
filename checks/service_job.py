"""Check that launchd has loaded the gateway's job and restarts the gateway after every exit."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="service-job", group="supervision", codes=["GW-LAUNCHD-EIO", "GW-LAUNCHD-OLD-PLIST"])
def service_job(probes: Probes) -> Iterator[Finding]:
    """Has launchd loaded the job, and does it bring the gateway back?"""
    jobs = [unit for unit in probes.supervision().units if unit.kind == "launchd"]
    if not jobs:
        raise Skip("launchd has no job for the gateway")
    for unit in jobs:
        if unit.settings.get("Loaded") == "no":
            runs = _runs(probes)
            yield Finding(
                code="GW-LAUNCHD-EIO",
                severity=Severity.WARNING if runs else Severity.ERROR,
                title=text("launchd has not loaded {unit}", unit=unit.name),
                subject=unit.name,
                detail=(
                    text(
                        "Most often `launchctl bootstrap` failed with exit 5 because an "
                        "older copy was still there. In this order: `launchctl bootout "
                        "gui/$UID/{unit}` (an error is fine), `launchctl bootstrap "
                        "gui/$UID` with the file, `launchctl kickstart -k gui/$UID/{unit}`.",
                        unit=unit.name,
                    )
                    + (" The gateway that runs now is nobody's." if runs else "")
                ),
                evidence=(Evidence(str(unit.path), "is there, but not loaded"),),
                data={"unit": unit},
            )
        if unit.declared.get("KeepAlive") == "unless-clean":
            yield Finding(
                code="GW-LAUNCHD-OLD-PLIST",
                severity=Severity.WARNING,
                title="launchd does not bring the gateway back after a clean end",
                subject=unit.name,
                detail=(
                    "The file is that of an older Hermes. `hermes gateway install --force` "
                    "writes the present one."
                ),
                evidence=(Evidence(str(unit.path), "KeepAlive holds SuccessfulExit: false"),),
                data={"unit": unit},
            )


def _runs(probes: Probes) -> bool:
    try:
        return bool(probes.gateways())
    except CouldNotLook:
        return False
