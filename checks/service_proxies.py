"""Check that the gateway's service has the proxies that this shell uses and that they can work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    listed,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Unit

_PROXIES = ("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY")
_LOCAL = ("localhost", "127.0.0.1")
_CODES = ["PROXY-SERVICE", "PROXY-SOCKS", "PROXY-LOCALHOST"]


@check(id="service-proxies", group="supervision", codes=_CODES)
def service_proxies(probes: Probes) -> Iterator[Finding]:
    """Does the gateway use the right proxy?"""
    unit = probes.supervision().owner
    written = _written(probes)
    given = {**(unit.environment if unit else {}), **_upper(written)}
    if unit is not None and unit.kind in ("systemd-user", "systemd-system", "launchd"):
        yield from _missing(probes, unit, given)
    if not any(_get(given, name) for name in _PROXIES):
        raise Skip("the gateway uses no proxy")
    where = ".env" if any(_get(written, name) for name in _PROXIES) else unit.name if unit else ""
    for name in _PROXIES:
        if _get(given, name).startswith("socks://"):
            yield Finding(
                code="PROXY-SOCKS",
                severity=Severity.ERROR,
                title=text("{name} starts with socks://, which Hermes cannot use", name=name),
                subject=name,
                detail=(
                    "Every connection fails with `Unknown scheme for proxy URL`, so nobody gets an "
                    "answer."
                ),
                evidence=(Evidence(where, f"{name}=socks://…"),),
                next=text(
                    "Write socks5:// instead of socks:// in {name}, then restart the gateway.",
                    name=name,
                ),
            )
    exempt = _get(given, "NO_PROXY")
    if exempt != "*" and not any(one in exempt for one in _LOCAL) and _calls_itself(probes):
        yield Finding(
            code="PROXY-LOCALHOST",
            severity=Severity.WARNING,
            title="requests to this machine itself go through the proxy",
            subject="NO_PROXY",
            detail=(
                "config.yaml uses a server on this machine. A proxy usually cannot reach it and "
                "answers with an error."
            ),
            evidence=(Evidence(where, "NO_PROXY lacks localhost and 127.0.0.1"),),
            next="Add localhost,127.0.0.1,::1 to NO_PROXY, then restart the gateway.",
        )


def _missing(probes: Probes, unit: Unit, given: Mapping[str, str]) -> Iterator[Finding]:
    shell = [name for name in _PROXIES if _get(os.environ, name)]
    if not shell or any(_get(given, name) for name in _PROXIES):
        return
    stuck = _unconnected(probes)
    yield Finding(
        code="PROXY-SERVICE",
        severity=Severity.WARNING if stuck else Severity.INFO,
        title=text("{unit} does not use the proxy of this shell", unit=unit.name),
        subject=unit.name,
        detail=(
            "If the platforms can be reached only through the proxy, nobody gets an answer. A "
            "service does not get the variables of a shell."
            if stuck
            else "A service does not get the variables of a shell. It matters only if the gateway "
            "needs the proxy."
        ),
        evidence=(
            Evidence("this shell", text("sets {names}", names=listed(shell))),
            Evidence(unit.name, "neither the service nor .env sets a proxy"),
            *(Evidence("gateway_state.json", f"{name} is not connected") for name in stuck),
        ),
        fix="give-proxy",
        data={"unit": unit, "names": tuple(shell)},
    )


def _unconnected(probes: Probes) -> list[str]:
    """Return the platforms that the running gateway has not connected."""
    try:
        running, told = probes.gateways(), probes.runtime()
    except CouldNotLook:
        return []
    if not running:
        return []
    return sorted(
        one.name
        for one in told.platforms.values()
        if one.state in ("retrying", "connecting", "disconnected")
        and one.updated_at is not None
        and one.updated_at >= running[0].started_at
    )


def _written(probes: Probes) -> dict[str, str]:
    """Return the variables of .env, which the gateway loads at its start."""
    try:
        env = probes.env()
    except CouldNotLook:
        return {}
    return env.values() if env and "proxy" in (env.text or "").lower() else {}


def _calls_itself(probes: Probes) -> bool:
    try:
        config = probes.config()
    except CouldNotLook:
        return False
    text = config.data.decode("utf-8", "replace") if config else ""
    return any(f"//{one}" in text for one in _LOCAL)


def _upper(values: Mapping[str, str]) -> dict[str, str]:
    return {name.upper(): value for name, value in values.items() if "proxy" in name.lower()}


def _get(values: Mapping[str, str], name: str) -> str:
    return values.get(name) or values.get(name.lower()) or ""
