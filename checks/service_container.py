"""Check that the gateway in a container is running and that the container restarts by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="service-container", group="supervision", codes=["DOCKER-S6-DOWN", "DOCKER-NO-RESTART"])
def service_container(probes: Probes) -> Iterator[Finding]:
    """Is the gateway up in its container, and the container started again?"""
    found = probes.supervision()
    slots = [unit for unit in found.units if unit.kind == "s6"]
    boxes = [unit for unit in found.units if unit.kind == "docker"]
    if not slots and not boxes:
        raise Skip("no container runs the gateway")
    for unit in slots:
        if unit.state in ("inactive", "failed") and unit.settings.get("ExecMainStatus") != "78":
            meant = _stopped_on_purpose(probes)
            yield Finding(
                code="DOCKER-S6-DOWN",
                severity=Severity.INFO if meant else Severity.ERROR,
                title=(
                    "the gateway in the container was stopped on purpose"
                    if meant
                    else "the container runs, but its gateway is down"
                ),
                subject=unit.name,
                detail=(
                    "The container keeps it stopped over restarts, until you start it."
                    if meant
                    else "s6 has the slot and does not start it: after an upgrade or a restart "
                    "of the container it follows what the gateway last said of itself."
                ),
                evidence=(Evidence(unit.name, _seen(unit.settings)),),
                fix="start-gateway",
                data={"unit": unit, "ran": not meant},
            )
    for unit in boxes:
        if unit.settings.get("Restart") == "no":
            compose = unit.settings.get("Project")
            how = (
                "Add `restart: unless-stopped` to the service in compose.yaml, then `docker "
                "compose up -d`."
                if compose
                else f"`docker update --restart unless-stopped {unit.name}` changes that at once."
            )
            yield Finding(
                code="DOCKER-NO-RESTART",
                severity=Severity.WARNING,
                title=text("nobody starts the container {unit} again", unit=unit.name),
                subject=unit.name,
                detail=text("After a crash or a reboot it stays down. {how}", how=how),
                evidence=(
                    Evidence(
                        unit.name, f"restart policy no, {unit.settings.get('Status') or unit.state}"
                    ),
                ),
                data={"unit": unit},
            )


def _stopped_on_purpose(probes: Probes) -> bool:
    try:
        return probes.runtime().desired_state == "stopped"
    except CouldNotLook:
        return False


def _seen(settings: Mapping[str, str]) -> str:
    code = settings.get("ExecMainStatus")
    ended = f", last exit status {code}" if code else ""
    down = ", registered but not to be started" if settings.get("NormallyDown") == "yes" else ""
    return f"down for {settings.get('Seconds', '?')} s{ended}{down}"
