"""Check that the gateway's service allows enough open files."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

_USUAL = 1024
_SCANT = 256


@check(id="service-limits", group="supervision", codes=["GW-FD-LIMIT-LOW"], needs="service")
def service_limits(probes: Probes) -> Iterator[Finding]:
    """Does the service allow enough open files?"""
    unit = probes.supervision().owner
    if unit is None or unit.kind not in ("systemd-user", "systemd-system", "launchd"):
        raise Skip("no systemd or launchd service runs the gateway")
    if unit.systemd:
        limit = unit.number("LimitNOFILESoft")
    else:
        said = unit.declared.get("NumberOfFiles", "")
        limit = int(said) if said.isdigit() else _SCANT
    if not limit or limit > _USUAL:
        return
    yield Finding(
        code="GW-FD-LIMIT-LOW",
        severity=Severity.WARNING if limit <= _SCANT else Severity.INFO,
        title=text("{unit} allows only {limit} open files", unit=unit.name, limit=limit),
        subject=unit.name,
        detail=(
            "At the limit every new connection and every database fails with `Too many open "
            "files`, so the bot cannot answer."
        ),
        evidence=(Evidence(unit.name, f"soft limit of open files: {limit}"),),
        fix="raise-limit" if unit.systemd else None,
        next=""
        if unit.systemd
        else "Set NumberOfFiles to 65536 under SoftResourceLimits in the job file of launchd.",
        data={"unit": unit, "limit": limit},
    )
