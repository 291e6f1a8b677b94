"""Check that the gateway's systemd unit has the settings that the installed Hermes would write."""

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

_WRITTEN = "Hermes Agent Gateway"
"""In the description of every unit written by Hermes; other units are the operator's own."""
_WEIGHTY = {
    "Restart": "it is not started again after every end",
    "StartLimitIntervalSec": "systemd gives up on it after a few failures",
}
_LIGHT = ("RestartForceExitStatus", "RestartPreventExitStatus", "KillMode", "ExecReload")


@check(id="service-age", group="supervision", codes=["GW-STALE-UNIT"], by_release=True)
def service_age(probes: Probes) -> Iterator[Finding]:
    """Is the service what the installed Hermes would write?"""
    units = [unit for unit in probes.supervision().units if unit.systemd and unit.declared]
    if not units:
        raise Skip("no unit of systemd runs the gateway")
    installed = probes.installation()
    if installed is None:
        raise Skip("no Hermes was found to compare the unit with")
    from hermes_doctor.api import service_plan

    plan = service_plan(installed.version)
    if plan is None:
        raise Skip(text("what Hermes {version} writes is not known", version=installed.version))
    drain = _configured_drain(probes)
    for unit in units:
        stop = _stop(unit)
        needed = plan.drain if drain is None else drain
        weighty = []
        if stop is not None and stop < needed:
            weighty.append(
                Evidence(
                    "TimeoutStopSec",
                    f"systemd kills it after {stop:g} s, while work may take {needed:g} s to end",
                )
            )
        light = []
        if _WRITTEN in unit.declared.get("Description", ""):
            for name, so in _WEIGHTY.items():
                if name in plan.settings and unit.declared.get(name) != plan.settings[name]:
                    weighty.append(Evidence(name, so))
            light = [
                Evidence(name, "is not set as it should be")
                for name in _LIGHT
                if name in plan.settings and unit.declared.get(name) != plan.settings[name]
            ]
        if weighty or light:
            yield _finding(unit, installed.version, weighty, light)


def _finding(unit: Unit, version: str, weighty: list[Evidence], light: list[Evidence]) -> Finding:
    return Finding(
        code="GW-STALE-UNIT",
        severity=Severity.WARNING if weighty else Severity.INFO,
        title=text(
            "{unit} is not what Hermes {version} would write", unit=unit.name, version=version
        ),
        subject=unit.name,
        detail=(
            "An update does not always write it anew. `hermes gateway install --force` does"
            + (" (with --system, as root)." if unit.kind == "systemd-system" else ".")
        ),
        evidence=(*weighty, *light),
        data={"unit": unit},
    )


def _stop(unit: Unit) -> float | None:
    """Return the seconds that systemd waits for the gateway to stop; None if unlimited."""
    from hermes_doctor.api import seconds

    said = unit.settings.get("TimeoutStopUSec") or unit.declared.get("TimeoutStopSec") or "90"
    return seconds(said)


def _configured_drain(probes: Probes) -> float | None:
    """Return the seconds that config.yaml allows work in progress to finish."""
    try:
        config = probes.config()
    except CouldNotLook:
        return None
    values = (config.values or {}) if config else {}
    agent = values.get("agent")
    said = agent.get("restart_drain_timeout") if isinstance(agent, dict) else None
    return float(said) if isinstance(said, int | float) and said >= 0 else None
