"""Check that the gateway in a container is running and that the container restarts by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import Unit
from hermes_doctor.api.tools import duration

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
            meant = _stopped_on_purpose(probes)
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
                evidence=(Evidence(unit.name, _seen(unit.settings)),),
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


def _stopped_on_purpose(probes: Probes) -> bool:
    try:
        return probes.gateway.runtime().desired_state == "stopped"
    except CouldNotLook:
        return False


def _seen(settings: Mapping[str, str]) -> str:
    """Describe the state that s6 reports."""
    seconds = settings.get("Seconds", "")
    parts = [f"down for {duration(float(seconds))}" if seconds.isdigit() else "down"]
    if settings.get("ExecMainStatus"):
        parts.append(f"last exit status {settings['ExecMainStatus']}")
    if settings.get("NormallyDown") == "yes":
        parts.append("not set to start by itself")
    return ", ".join(parts)
