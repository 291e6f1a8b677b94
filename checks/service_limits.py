"""Check that the gateway's service allows enough open files."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

_USUAL = 1024
_SCANT = 256


@check(id="service-limits", group="supervision", codes=["GW-FD-LIMIT-LOW"])
def service_limits(probes: Probes) -> Iterator[Finding]:
    """May the gateway open enough files?"""
    unit = probes.supervision().owner
    if unit is None or unit.kind not in ("systemd-user", "systemd-system", "launchd"):
        raise Skip("no service that sets limits runs the gateway")
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
        title=text("{unit} lets the gateway open {limit} files", unit=unit.name, limit=limit),
        subject=unit.name,
        detail=(
            "Databases, sockets and pipes of tools all count. At the limit everything fails at "
            "once with `Too many open files`. 65536 costs nothing."
        ),
        evidence=(Evidence(unit.name, f"soft limit of open files: {limit}"),),
        fix="raise-limit" if unit.systemd else None,
        data={"unit": unit, "limit": limit},
    )
