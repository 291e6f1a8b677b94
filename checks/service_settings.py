"""Check the settings of the service that starts the gateway."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import Unit
from hermes_doctor.api.tools import known_or

_USUAL = 1024
_SCANT = 256


@check(id="service-limits", group="supervision", codes=["GW-FD-LIMIT-LOW"], needs="service")
def service_limits(probes: Probes) -> Iterator[Finding]:
    """Does the service allow enough open files?"""
    unit = probes.gateway.supervision().owner
    if unit is None or unit.kind not in ("systemd-user", "systemd-system", "launchd"):
        raise Skip("no systemd or launchd service runs the gateway")
    if unit.systemd:
        limit = unit.number("LimitNOFILESoft")
    else:
        failure = unit.declared.get("NumberOfFiles", "")
        limit = int(failure) if failure.isdigit() else _SCANT
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


@check(
    id="service-login", group="supervision", codes=["GW-LINGER", "GW-NO-USER-BUS"], needs="service"
)
def service_login(probes: Probes) -> Iterator[Finding]:
    """Do the user's services run without a login?"""
    supervision = probes.gateway.supervision()
    own = [unit for unit in supervision.units if unit.kind == "systemd-user"]
    if not own:
        raise Skip("no systemd user service for the gateway")
    unit = own[0]
    at_work = unit.state in ("active", "activating")
    if supervision.linger is False and (unit.enabled or at_work):
        yield Finding(
            code="GW-LINGER",
            severity=Severity.WARNING,
            title=text("the gateway stops when {user} logs out", user=unit.user),
            subject=unit.name,
            detail=(
                "It does not start at boot either. systemd runs user services only during a login "
                "unless lingering is enabled."
            ),
            evidence=(Evidence(f"/var/lib/systemd/linger/{unit.user}", "does not exist"),),
            fix="enable-linger",
            data={"user": unit.user, "unit": unit},
        )
    if unit.settings.get("Manager") == "absent" and supervision.booted:
        runs = known_or(True, lambda: bool(probes.gateway.running()))
        yield Finding(
            code="GW-NO-USER-BUS",
            severity=Severity.WARNING if runs else Severity.ERROR,
            title=text("systemd does not run for the user {user}", user=unit.user),
            subject=unit.name,
            detail=(
                text("{unit} cannot start the gateway again when it stops.", unit=unit.name)
                if runs
                else text(
                    "{unit} cannot start the gateway, so nobody gets an answer. "
                    "`systemctl --user` fails with `Failed to connect to bus`.",
                    unit=unit.name,
                )
            ),
            evidence=(Evidence(f"/run/user/{unit.manager}", "no bus, no systemd/private"),),
            next=text(
                "Log in as {user} with ssh (not `su`), or run `systemctl start "
                "user@{uid}.service` as root.",
                user=unit.user,
                uid=unit.manager,
            ),
            data={"user": unit.user, "unit": unit},
        )


@check(
    id="service-job",
    group="supervision",
    codes=["GW-LAUNCHD-EIO", "GW-LAUNCHD-OLD-PLIST"],
    needs="service",
)
def service_job(probes: Probes) -> Iterator[Finding]:
    """Has launchd loaded the job, and does it restart the gateway?"""
    jobs = [unit for unit in probes.gateway.supervision().units if unit.kind == "launchd"]
    if not jobs:
        raise Skip("no launchd job for the gateway")
    for unit in jobs:
        if unit.settings.get("Loaded") == "no":
            runs = known_or(False, lambda: bool(probes.gateway.running()))
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


@check(
    id="service-restart",
    group="supervision",
    codes=["GW-UNSUPERVISED", "GW-WSL-NO-SYSTEMD", "GW-NOT-ENABLED"],
)
def service_restart(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does something restart the gateway when it stops?"""
    supervision = probes.gateway.supervision()
    for why in supervision.unsure:
        yield CouldNotLook(why)
    running = probes.gateway.running()
    due = probes.health.next_start() if supervision.owner is None else None
    if due and due.seconds is not None:  # something that we cannot see restarts it all the time
        raise Skip(due.what)
    if not running:
        if not supervision.units:
            raise Skip("no running gateway and no service for one")
        return
    owner = supervision.owner
    if owner and owner.systemd and owner.starts_at_boot is False:
        yield _not_enabled(owner)
    if supervision.revives is not False or (owner and owner.kind == "docker"):
        return
    pid = running[0].pid
    evidence = (Evidence(f"process {pid}", supervision.why),)
    if supervision.wsl and not supervision.booted:
        yield Finding(
            code="GW-WSL-NO-SYSTEMD",
            severity=Severity.WARNING,
            title="nothing restarts the gateway: WSL runs without systemd",
            subject=f"process {pid}",
            detail=(
                "When the terminal closes or Windows sleeps, the gateway stops and the bot stays "
                "silent."
            ),
            evidence=evidence,
            next=(
                "Write `systemd=true` under `[boot]` in /etc/wsl.conf, run `wsl --shutdown` in "
                "Windows, then `hermes gateway install`."
            ),
            fix="install-service",
            data={"pid": pid},
        )
        return
    there = supervision.units[0] if supervision.units else None
    yield Finding(
        code="GW-UNSUPERVISED",
        severity=Severity.WARNING,
        title="nothing restarts the gateway when it stops",
        subject=f"process {pid}",
        detail="After a crash, a restart or a reboot the bot stays silent until you start it.",
        evidence=evidence,
        next=text("Stop process {pid}, then start the service {unit}.", pid=pid, unit=there.name)
        if there and not supervision.owner
        else "",
        since=running[0].started_at,
        fix=None if there else "install-service",
        data={"pid": pid},
    )


def _not_enabled(unit: Unit) -> Finding:
    """Report a service that runs now, but that nothing starts with the machine."""
    command = f"{unit.command} enable {unit.name}"
    return Finding(
        code="GW-NOT-ENABLED",
        severity=Severity.WARNING,
        title=text("{unit} is not enabled", unit=unit.name),
        subject=unit.name,
        detail="It runs now, but after a reboot the bot stays silent until you start it.",
        evidence=(Evidence(unit.name, unit.settings.get("UnitFileState", "")),),
        next=""
        if unit.can_be_enabled
        else text(
            "Add the lines `[Install]` and `WantedBy=default.target` to {unit}, then run "
            "`{command}`.",
            unit=unit.name,
            command=command,
        ),
        fix="enable-service" if unit.can_be_enabled else None,
        data={"unit": unit},
    )
