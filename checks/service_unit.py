"""Check that the definition of the service is complete, and that the service uses it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import Unit
from hermes_doctor.api.stores import redact_name
from hermes_doctor.api.tools import duration, known_or, listed

_EXEC, _CHDIR = 203, 200


@check(
    id="service-definition",
    group="supervision",
    codes=["GW-UNIT-BAD-PATH", "GW-DUP-UNITS", "GW-HOME-MISMATCH"],
)
def service_definition(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does exactly one working service start the gateway?"""
    supervision = probes.gateway.supervision()
    defined = [unit for unit in supervision.units if unit.path is not None]
    if not defined and not supervision.others:
        raise Skip("no service for the gateway")
    for unit in defined:
        yield from _paths(unit)
    yield from _fight(defined)
    if not defined and not known_or(True, lambda: bool(probes.gateway.running())):
        yield from _elsewhere(probes, supervision.others, supervision.usual)


def _paths(unit: Unit) -> Iterator[Finding | CouldNotLook]:
    """Report a service whose program or working folder is missing or unusable."""
    evidence = []
    status = unit.number("ExecMainStatus")
    program = Path(unit.program[0]) if unit.program else None
    try:
        if program is None:
            if unit.systemd:
                evidence.append(Evidence(unit.name, "has no command to start"))
        elif program.is_absolute():
            fault = _fault(program, runs=True)
            if fault:
                evidence.append(Evidence(str(program), fault))
        if unit.folder is not None:
            fault = _fault(unit.folder, runs=False)
            if fault:
                evidence.append(Evidence(str(unit.folder), fault))
    except OSError as error:
        yield CouldNotLook(
            "could not read the program of {unit}: {reason}", unit=unit.name, reason=error.strerror
        )
    if status in (_EXEC, _CHDIR) and unit.state != "active":
        what = (
            "last exit status 203/EXEC: systemd could not run the program"
            if status == _EXEC
            else "last exit status 200/CHDIR: systemd could not enter the working folder"
        )
        evidence.append(Evidence(unit.name, what))
    if not evidence:
        return
    up = unit.state == "active"
    yield Finding(
        code="GW-UNIT-BAD-PATH",
        severity=Severity.WARNING if up else Severity.ERROR,
        title=text("{unit} cannot start the gateway", unit=unit.name),
        subject=unit.name,
        detail=(
            "The gateway runs now but cannot start again. Hermes was probably moved or installed "
            "again."
            if up
            else "Nobody gets an answer. Hermes was probably moved or installed again."
        ),
        evidence=tuple(evidence),
        next="Run `hermes gateway install --force` with the Hermes that works.",
        data={"unit": unit},
    )


def _fault(path: Path, *, runs: bool) -> str | None:
    """Return why a path cannot be executed or used as a working folder; None if it can."""
    try:
        st = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            return "is a link to a missing file"
        return "does not exist"
    if runs:
        plain = stat.S_ISREG(st.st_mode) and st.st_mode & 0o111
        return None if plain else "is not executable"
    return None if stat.S_ISDIR(st.st_mode) else "is not a folder"


def _fight(defined: list[Unit]) -> Iterator[Finding]:
    """Report several services that start a gateway on this home and stop each other's."""
    live = [u for u in defined if u.enabled or u.state in ("active", "activating", "failed")]
    if len(live) < 2:
        return
    at_once = sum(unit.state in ("active", "activating") for unit in live) > 1
    yield Finding(
        code="GW-DUP-UNITS",
        severity=Severity.ERROR if at_once else Severity.WARNING,
        title=text("{number} services start a gateway on this home", number=len(live)),
        subject=", ".join(sorted({unit.name for unit in live})),
        detail=(
            "Only one gateway can use a home. The others fail again and again or stop the first "
            "one."
        ),
        evidence=tuple(Evidence(str(unit.path), _how(unit)) for unit in live),
        next=text(
            "Keep one and disable the others, for example with `{command} disable --now {unit}`.",
            command=live[-1].command,
            unit=live[-1].name,
        ),
        data={"units": tuple(live)},
    )


def _how(unit: Unit) -> str:
    scope = {"systemd-user": "user service", "systemd-system": "system service"}.get(unit.kind)
    starts = "enabled" if unit.enabled else "not enabled"
    return ", ".join(part for part in (scope, unit.state, starts) if part)


def _elsewhere(probes: Probes, others: tuple[Unit, ...], usual: str) -> Iterator[Finding]:
    """Report that the service that Hermes would create for this home uses another home."""
    for unit in others:
        if unit.name != usual or unit.home is None:
            continue
        empty = not os.path.lexists(unit.home / "config.yaml")
        yield Finding(
            code="GW-HOME-MISMATCH",
            severity=Severity.WARNING if empty or _same_owner(probes, unit) else Severity.INFO,
            title=text("{unit} runs the gateway of another home", unit=unit.name),
            subject=unit.name,
            detail="Changes in this home have no effect on that gateway.",
            evidence=(Evidence(str(unit.path), f"its home is {unit.home}"),),
            next=text(
                "To check that gateway, add `--home {home}`. To use this home, set HERMES_HOME "
                "and run `hermes gateway install --force`.",
                home=unit.home,
            ),
            data={"unit": unit},
        )


def _same_owner(probes: Probes, unit: Unit) -> bool:
    """Return whether the service runs as the owner of this home, so it was probably meant."""
    if unit.manager is not None:
        return True
    import pwd

    try:
        uid = os.stat(probes.home.path).st_uid
        return unit.user == pwd.getpwuid(uid).pw_name
    except (OSError, KeyError):
        return False


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
    units = [unit for unit in probes.gateway.supervision().units if unit.systemd and unit.declared]
    if not units:
        raise Skip("no systemd unit for the gateway")
    installed = probes.hermes.installation()
    if installed is None:
        raise Skip("no Hermes installation found to compare with")
    from hermes_doctor.api.repairs import service_plan

    plan = service_plan(installed.version)
    if plan is None:
        raise Skip("the unit of Hermes {version} is unknown", version=installed.version)
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
    names = listed([redact_name(name) for name in own[:_MOST]])
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
    from hermes_doctor.api.gateway import parse_time_span

    said = unit.settings.get("TimeoutStopUSec") or unit.declared.get("TimeoutStopSec") or "90"
    return parse_time_span(said)


def _configured_drain(probes: Probes) -> float | None:
    """Return the seconds that config.yaml allows work in progress to finish."""
    try:
        config = probes.settings.config()
    except CouldNotLook:
        return None
    values = (config.values or {}) if config else {}
    agent = values.get("agent")
    said = agent.get("restart_drain_timeout") if isinstance(agent, dict) else None
    return float(said) if isinstance(said, int | float) and said >= 0 else None
