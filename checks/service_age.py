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
    duration,
    listed,
    masked_name,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Unit

_MOST = 4
"""Names of variables that are shown."""
_WRITTEN = "Hermes Agent Gateway"
"""In the description of every unit written by Hermes; other units are the operator's own."""
_WEIGHTY = {
    "Restart": "systemd does not restart the gateway after every stop",
    "StartLimitIntervalSec": "systemd gives up after a few failed starts",
}
_TEMPLATE = ("HOME", "USER", "LOGNAME", "PATH", "VIRTUAL_ENV", "HERMES_HOME")
"""The variables that Hermes writes into every unit; it drops all others."""
_LIGHT = ("RestartForceExitStatus", "RestartPreventExitStatus", "KillMode", "ExecReload")


@check(
    id="service-age", group="supervision", codes=["GW-STALE-UNIT"], by_release=True, needs="service"
)
def service_age(probes: Probes) -> Iterator[Finding]:
    """Does the service match the installed Hermes?"""
    units = [unit for unit in probes.supervision().units if unit.systemd and unit.declared]
    if not units:
        raise Skip("no systemd unit for the gateway")
    installed = probes.installation()
    if installed is None:
        raise Skip("no Hermes installation found to compare with")
    from hermes_doctor.api import service_plan

    plan = service_plan(installed.version)
    if plan is None:
        raise Skip(text("the unit of Hermes {version} is unknown", version=installed.version))
    drain = _configured_drain(probes)
    for unit in units:
        stop = _stop(unit)
        needed = plan.drain if drain is None else drain
        weighty = []
        if stop is not None and stop < needed:
            weighty.append(
                Evidence(
                    "TimeoutStopSec",
                    text(
                        "systemd kills the gateway after {limit}, but Hermes may need {time} to "
                        "finish its answers",
                        limit=duration(stop),
                        time=duration(needed),
                    ),
                )
            )
        light = []
        if _WRITTEN in unit.declared.get("Description", ""):
            for name, so in _WEIGHTY.items():
                if name in plan.settings and unit.declared.get(name) != plan.settings[name]:
                    weighty.append(Evidence(name, so))
            light = [
                Evidence(name, "differs from the unit of this release")
                for name in _LIGHT
                if name in plan.settings and unit.declared.get(name) != plan.settings[name]
            ]
        if weighty or light:
            yield _finding(unit, installed.version, weighty, light)


def _finding(unit: Unit, version: str, weighty: list[Evidence], light: list[Evidence]) -> Finding:
    return Finding(
        code="GW-STALE-UNIT",
        severity=Severity.WARNING if weighty else Severity.INFO,
        title=text("{unit} does not fit Hermes {version}", unit=unit.name, version=version),
        subject=unit.name,
        detail=(
            "The gateway can stay down after a stop or be killed in the middle of an answer. "
            "Updates do not always rewrite the unit."
            if weighty
            else "An older Hermes wrote the unit; updates do not always rewrite it."
        ),
        evidence=(*weighty, *light),
        next=_step(unit),
        data={"unit": unit},
    )


def _step(unit: Unit) -> str:
    """Return how to write the unit again without losing variables that only it sets."""
    system = unit.kind == "systemd-system"
    own = sorted(name for name in unit.environment if name not in _TEMPLATE)
    if "EnvironmentFile" in unit.declared:
        own.append("EnvironmentFile")
    names = listed([masked_name(name) for name in own[:_MOST]])
    if own and system:
        return text(
            "Move {names} from the unit into .env, because Hermes drops it. Then run `hermes "
            "gateway install --force --system` as root.",
            names=names,
        )
    if own:
        return text(
            "Move {names} from the unit into .env, because Hermes drops it. Then run `hermes "
            "gateway install --force`.",
            names=names,
        )
    if system:
        return "Run `hermes gateway install --force --system` as root to write it again."
    return "Run `hermes gateway install --force` to write it again."


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
