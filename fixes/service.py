"""Set up what starts and limits the gateway: systemd, cron or its container."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hermes_doctor.api import (
    CannotFix,
    EnableLinger,
    EnableUnit,
    Finding,
    Probes,
    Safety,
    Step,
    fix,
    repairs,
    text,
)
from hermes_doctor.api.repairs import change_container, drop_in, service_limit
from hermes_doctor.api.tools import listed


@fix(id="enable-linger", codes=["GW-LINGER"], safety=Safety.SAFE)
def enable_linger(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Keep the gateway running without a login."""
    if probes.gateway.supervision().linger is not False:
        raise CannotFix("Lingering is enabled already. Nothing to do.")
    yield EnableLinger(probes.home)


@fix(id="enable-service", codes=["GW-NOT-ENABLED"], safety=Safety.CONFIRM)
def enable_service(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let systemd start the gateway with the machine."""
    unit = finding.data["unit"]
    if unit.name not in [
        one.name for one in probes.gateway.supervision().units if one.can_be_enabled
    ]:
        raise CannotFix("{unit} is enabled already. Nothing to do.", unit=unit.name)
    yield EnableUnit(probes.home, unit.name, system=unit.manager is None)


@fix(
    id="install-service",
    codes=["GW-UNSUPERVISED", "GW-WSL-NO-SYSTEMD"],
    safety=Safety.CONFIRM,
)
def install_service(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Install what restarts the gateway: a service, or a crontab line."""
    yield from repairs.install_service(probes, agreed="GW-DOWN")


ENOUGH = 65536
NO_END = 2**31


@fix(id="raise-limit", codes=["GW-FD-EXHAUST", "GW-FD-LIMIT-LOW"], safety=Safety.CONFIRM)
def raise_limit(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Allow the gateway to open more files."""
    soft, hard = service_limit(probes, "LimitNOFILE")
    wanted = min(ENOUGH, hard)
    if soft >= wanted:
        raise CannotFix(
            "systemd allows no more than {limit} open files. Raise its hard limit first.",
            limit=hard,
        )
    kept = f"{wanted}:{hard}" if wanted < hard < NO_END else f"{wanted}"
    yield from drop_in(
        probes,
        {"LimitNOFILE": kept},
        why=text("allow {new} open files instead of {old}", new=wanted, old=soft),
    )


_LOCAL = ("localhost", "127.0.0.1", "::1")


@fix(id="give-proxy", codes=["PROXY-SERVICE"], safety=Safety.CONFIRM)
def give_proxy(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Give the proxy of this shell to the gateway's service."""
    names = [*finding.data.get("names", ()), "NO_PROXY"]
    found = {name: value for name in names if (value := _of_shell(name))}
    if set(found) <= {"NO_PROXY"}:
        raise CannotFix("This shell sets no proxy. If sudo removed it, use `sudo -E`.")
    kept = [word for word in found.get("NO_PROXY", "").split(",") if word]
    found["NO_PROXY"] = ",".join([*kept, *(word for word in _LOCAL if word not in kept)])
    why = text("set {names} as in this shell", names=listed([*found]))
    yield from drop_in(probes, found, why, variables=True)


def _of_shell(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower()) or ""


@fix(
    id="configure-container",
    codes=["DOCKER-NO-RESTART", "DOCKER-TZ", "DOCKER-LIMITS", "DOCKER-NO-HEALTHCHECK"],
    safety=Safety.CONFIRM,
)
def configure_container(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add the missing setting to the Compose file of the container."""
    why = {
        "DOCKER-NO-RESTART": "so that Docker restarts it after a crash or a reboot",
        "DOCKER-TZ": "so that scheduled jobs run in the time zone of this machine",
        "DOCKER-LIMITS": "so that it stays within limits",
        "DOCKER-NO-HEALTHCHECK": "so that Docker shows whether the gateway answers",
    }[finding.code]
    yield from change_container(probes, finding.data["wanted"], why)
