"""Check for a service or container that does not keep the gateway running."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import Unit
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import NamedTuple, count, duration, known_or, shorten

_CODES = ["GW-EXIT75-LOOP", "GW-EXIT78", "GW-STARTLIMIT", "GW-CRASH-LOOP", "GW-UNIT-FAILED"]
_RESTART, _CONFIG = 75, 78
"""Exit codes of a gateway that asks for a restart, and of one with invalid settings."""
_NOT_STARTED = (200, 203)
"""systemd could not run the program; another check reports the wrong definition."""
_LONG = 160
"""Characters of an error that are shown."""
_FEW = 3
_SHORT = 120.0
_WINDOW = timedelta(minutes=10)
_SETTLED = timedelta(minutes=5)


class Loop(NamedTuple):
    """A gateway that is restarted over and over."""

    status: int
    evidence: tuple[Evidence, ...]


@check(id="service-state", group="supervision", codes=_CODES, needs="service")
def service_state(probes: Probes) -> Iterator[Finding]:
    """Does the service keep the gateway running?"""
    units = probes.gateway.supervision().units
    for unit in units:
        if unit.number("ExecMainStatus") in _NOT_STARTED:
            continue
        loop = _loop(probes, unit)
        if unit.was_stopped:  # stopped on purpose, whatever the exit code
            continue
        if unit.state == "failed":
            yield _given_up(unit)
        elif loop:
            yield _endless(probes, unit, loop)
        elif unit.kind == "launchd" and unit.state != "active" and _status(unit) == _CONFIG:
            yield _hopeless(unit, ())


def _status(unit: Unit) -> int:
    return unit.number("ExecMainStatus")


def _given_up(unit: Unit) -> Finding:
    if _status(unit) == _CONFIG:
        return _hopeless(unit, ())
    limited = unit.settings.get("Result") == "start-limit-hit" or (
        unit.systemd
        and unit.settings.get("Restart", "no") not in ("no", "on-success")
        and unit.settings.get("StartLimitIntervalUSec") not in ("0", None)
        and unit.number("NRestarts") > 0
    )
    if limited:
        return Finding(
            code="GW-STARTLIMIT",
            severity=Severity.ERROR,
            title=text("systemd no longer tries to start {unit}", unit=unit.name),
            subject=unit.name,
            detail="Nobody gets an answer. The gateway failed too often in a short time.",
            evidence=(_seen(unit),),
            next="First read the newest lines of logs/errors.log and fix what stopped it.",
            since=_since(unit),
            fix="reset-failed",
            data={"unit": unit},
        )
    return Finding(
        code="GW-UNIT-FAILED",
        severity=Severity.ERROR,
        title=text("{unit} has failed and is not restarted", unit=unit.name),
        subject=unit.name,
        detail="Nobody gets an answer, because the gateway does not run.",
        evidence=(_seen(unit),),
        next="Read the newest lines of logs/errors.log to see why the gateway stopped.",
        since=_since(unit),
        fix="reset-gateway",
        data={"unit": unit},
    )


def _endless(probes: Probes, unit: Unit, loop: Loop) -> Finding:
    if loop.status == _CONFIG:
        return _hopeless(unit, loop.evidence)
    if loop.status == _RESTART:
        return Finding(
            code="GW-EXIT75-LOOP",
            severity=Severity.ERROR,
            title="the gateway restarts itself over and over",
            subject=unit.name,
            detail=(
                "Nobody gets an answer in time. Probably a platform delivers the same /restart "
                "message again after each start."
            ),
            evidence=loop.evidence,
            next=(
                "Stop the service for a minute, move .restart_notify.json out of the home, then "
                "start the service."
            ),
            data={"unit": unit},
        )
    return Finding(
        code="GW-CRASH-LOOP",
        severity=Severity.ERROR,
        title=text("the gateway of {unit} stops after each start", unit=unit.name),
        subject=unit.name,
        detail="Nobody gets an answer, although the service restarts the gateway all the time.",
        evidence=loop.evidence + _output(probes, unit),
        next="Read the newest lines of logs/errors.log to see why the gateway stops.",
        fix="reset-gateway",
        data={"unit": unit},
    )


def _output(probes: Probes, unit: Unit) -> tuple[Evidence, ...]:
    """Return the last error that a container printed: it may fail before it writes a log."""
    output = probes.gateway.container_output() if unit.kind == "docker" else ""
    if not output:
        return ()
    return (Evidence(f"docker logs {unit.name}", shorten(redact_log_text(output), _LONG)),)


def _hopeless(unit: Unit, more: tuple[Evidence, ...]) -> Finding:
    return Finding(
        code="GW-EXIT78",
        severity=Severity.ERROR,
        title="the gateway stopped because no platform can connect",
        subject=unit.name,
        detail=(
            "Nobody gets an answer, and the service does not restart it (exit status 78). The "
            "cause is a setting, for example a token that another gateway uses."
        ),
        evidence=(_seen(unit), *more),
        since=_since(unit),
        next=(
            "Correct the setting that `exit_reason` in gateway_state.json names, then start the "
            "service."
        ),
        data={"unit": unit},
    )


def _loop(probes: Probes, unit: Unit) -> Loop | None:
    """Detect repeated restarts from the supervisor's counter or the gateway's own records."""
    again = unit.number("NRestarts")
    began, ended = (
        unit.number(f"ExecMain{what}TimestampMonotonic") / 1e6 for what in ("Start", "Exit")
    )
    life = ended - began if ended >= began > 0 else None
    if unit.is_between_starts and again >= _FEW and (life is None or life < _SHORT):
        return Loop(_status(unit), (_seen(unit),))
    if unit.systemd and again < _FEW:
        return None
    now = datetime.now(UTC)
    starts = [start for start in _starts(probes) if now - start < _WINDOW]
    if len(starts) <= _FEW or now - starts[-1] > _SETTLED:
        return None
    status, ends = _ends(probes, now)
    minutes = max(1, round((now - starts[0]).total_seconds() / 60))
    counted = Evidence("gateway-starts.log", f"{len(starts)} starts in {minutes} min")
    return Loop(status or _status(unit), (_seen(unit), counted, *ends))


def _starts(probes: Probes) -> list[datetime]:
    """Return the latest starts that the gateway recorded since it was set right, oldest first."""
    try:
        told = probes.gateway.runtime().starts or [life.began for life in probes.gateway.diary()]
    except CouldNotLook:
        return []
    return sorted(one for one in told if one > probes.records.proved_at())


def _ends(probes: Probes, now: datetime) -> tuple[int, tuple[Evidence, ...]]:
    """Return the most frequent exit code of the latest runs, with evidence."""
    try:
        lives = [life for life in probes.gateway.diary() if now - life.began < _WINDOW]
    except CouldNotLook:
        return 0, ()
    codes = [life.exit_code for life in lives if life.exit_code]
    if not codes:
        return 0, ()
    most = max(set(codes), key=codes.count)
    what = f"{codes.count(most)} of the last {len(lives)} runs ended with exit status {most}"
    return most, (Evidence("logs/gateway-exit-diag.log", what),)


def _since(unit: Unit) -> datetime | None:
    changed = unit.number("StateChangeTimestampMonotonic") / 1e6
    if not changed:
        return None
    return datetime.now(UTC) - timedelta(seconds=max(0.0, time.monotonic() - changed))


def _seen(unit: Unit) -> Evidence:
    parts = [unit.state]
    if unit.settings.get("Result", "success") != "success":
        parts.append(f"result {unit.settings['Result']}")
    if _status(unit):
        parts.append(f"last exit status {_status(unit)}")
    if unit.number("NRestarts"):
        parts.append(f"restarted {count(unit.number('NRestarts'), 'time')}")
    return Evidence(unit.name, ", ".join(parts))


_HERMES = "/opt/hermes/.venv/bin/hermes"
"""Where the official image has Hermes."""


@check(
    id="service-container",
    group="supervision",
    codes=["DOCKER-S6-DOWN", "DOCKER-NO-RESTART", "DOCKER-EXEC-PATH"],
    needs="service",
)
def service_container(probes: Probes) -> Iterator[Finding]:
    """Does the container run and restart the gateway?"""
    supervision = probes.gateway.supervision()
    slots = [unit for unit in supervision.units if unit.kind == "s6"]
    boxes = [unit for unit in supervision.units if unit.kind == "docker"]
    if not slots and not boxes:
        raise Skip("the gateway does not run in a container")
    for unit in slots:
        if unit.state in ("inactive", "failed") and unit.settings.get("ExecMainStatus") != "78":
            meant = known_or(False, lambda: probes.gateway.runtime().desired_state == "stopped")
            yield Finding(
                code="DOCKER-S6-DOWN",
                severity=Severity.INFO if meant else Severity.ERROR,
                title=(
                    "you stopped the gateway in the container"
                    if meant
                    else "the container runs, but its gateway is down"
                ),
                subject=unit.name,
                detail=(
                    "It stays stopped, even if the container restarts, until you start it."
                    if meant
                    else "Nobody gets an answer. s6, which supervises the gateway in the "
                    "container, does not start it."
                ),
                evidence=(Evidence(unit.name, _seen_in_container(unit.settings)),),
                fix="start-gateway",
                data={"unit": unit, "ran": not meant},
            )
    for unit in boxes:
        if unit.settings.get("Restart") == "no":
            yield _no_restart(unit)
        yield from _hermes_outside_path(probes, unit)


def _no_restart(unit: Unit) -> Finding:
    return Finding(
        code="DOCKER-NO-RESTART",
        severity=Severity.WARNING,
        title=text("Docker does not restart the container {name}", name=unit.name),
        subject=unit.name,
        detail="After a crash or a reboot the bot stays silent until you start it.",
        evidence=(
            Evidence(
                unit.name,
                text(
                    "restart policy: no; state: {state}",
                    state=unit.settings.get("Status") or unit.state,
                ),
            ),
        ),
        fix="configure-container",
        data={"unit": unit, "wanted": {"restart": "unless-stopped"}},
    )


def _hermes_outside_path(probes: Probes, unit: Unit) -> Iterator[Finding]:
    """Report that `docker exec NAME hermes` finds no program, as its PATH does not lead there."""
    if unit.pid is None:
        return
    folders = [one for one in unit.environment.get("PATH", "").split(":") if one.startswith("/")]
    if not folders or probes.machine.container_has(unit.pid, _HERMES) is not True:
        return
    if any(
        probes.machine.container_has(unit.pid, f"{folder}/hermes") is not False
        for folder in folders
    ):
        return
    yield Finding(
        code="DOCKER-EXEC-PATH",
        severity=Severity.INFO,
        title=text("`docker exec {name} hermes` finds no hermes", name=unit.name),
        subject=unit.name,
        detail=(
            "Its folder is not in the PATH of the container. As root it would also create files "
            "that the gateway cannot read."
        ),
        evidence=(
            Evidence(unit.name, f"PATH={':'.join(folders)}"),
            Evidence(unit.name, f"has {_HERMES}"),
        ),
        next=text(
            "Run `docker exec -it -u {user} {name} {program} …`.",
            user=unit.user or "hermes",
            name=unit.name,
            program=_HERMES,
        ),
        data={"unit": unit},
    )


def _seen_in_container(settings: Mapping[str, str]) -> str:
    """Describe the state that s6 reports."""
    seconds = settings.get("Seconds", "")
    parts = [f"down for {duration(float(seconds))}" if seconds.isdigit() else "down"]
    if settings.get("ExecMainStatus"):
        parts.append(f"last exit status {settings['ExecMainStatus']}")
    if settings.get("NormallyDown") == "yes":
        parts.append("not set to start by itself")
    return ", ".join(parts)
