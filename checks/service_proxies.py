"""Check that the gateway's service has the proxies that this shell uses and that they can work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Unit

_PROXIES = ("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY")
_LOCAL = ("localhost", "127.0.0.1")
_CODES = ["PROXY-SERVICE", "PROXY-SOCKS", "PROXY-LOCALHOST"]


@check(id="service-proxies", group="supervision", codes=_CODES)
def service_proxies(probes: Probes) -> Iterator[Finding]:
    """Has the gateway's service the proxies that it needs, and can they work?"""
    unit = probes.supervision().owner
    written = _written(probes)
    given = {**(unit.environment if unit else {}), **_upper(written)}
    if unit is not None and unit.kind in ("systemd-user", "systemd-system", "launchd"):
        yield from _missing(probes, unit, given)
    if not any(_get(given, name) for name in _PROXIES):
        raise Skip("no proxy is set for the gateway")
    where = ".env" if any(_get(written, name) for name in _PROXIES) else unit.name if unit else ""
    for name in _PROXIES:
        if _get(given, name).startswith("socks://"):
            yield Finding(
                code="PROXY-SOCKS",
                severity=Severity.ERROR,
                title=text("{name} has a scheme that Hermes does not know", name=name),
                subject=name,
                detail=(
                    "`socks://` makes every connection fail with `Unknown scheme for proxy URL`. "
                    "Write socks5:// instead (socks5h:// to let the proxy look names up)."
                ),
                evidence=(Evidence(where, f"{name}=socks://…"),),
            )
    exempt = _get(given, "NO_PROXY")
    if exempt != "*" and not any(one in exempt for one in _LOCAL) and _calls_itself(probes):
        yield Finding(
            code="PROXY-LOCALHOST",
            severity=Severity.WARNING,
            title="calls to this very machine go through the proxy",
            subject="NO_PROXY",
            detail=(
                "config.yaml names a server on this machine, and NO_PROXY does not except it: the "
                "proxy answers 503. Add localhost,127.0.0.1,::1 to NO_PROXY."
            ),
            evidence=(Evidence(where, "NO_PROXY lacks localhost and 127.0.0.1"),),
        )


def _missing(probes: Probes, unit: Unit, given: Mapping[str, str]) -> Iterator[Finding]:
    shell = [name for name in _PROXIES if _get(os.environ, name)]
    if not shell or any(_get(given, name) for name in _PROXIES):
        return
    stuck = _unconnected(probes)
    yield Finding(
        code="PROXY-SERVICE",
        severity=Severity.WARNING if stuck else Severity.INFO,
        title=text("this shell uses a proxy, {unit} does not", unit=unit.name),
        subject=unit.name,
        detail=(
            "A service does not get the variables of a shell. If the platforms can only be reached "
            "through the proxy, the gateway cannot reach them."
        ),
        evidence=(
            Evidence("this shell", f"sets {', '.join(shell)}"),
            Evidence(unit.name, "sets none of them, nor does .env"),
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
