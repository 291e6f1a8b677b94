"""Check that the gateway reaches its servers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.providers import redact_for_display
from hermes_doctor.api.tools import listed, sentences

if TYPE_CHECKING:
    from hermes_doctor.api.gateway import HostResult, Unit


_STAGES = {
    "name": (
        "NET-DNS",
        "The bot gets no connection, because the host name cannot be resolved.",
        "Check the DNS server of this machine (/etc/resolv.conf) and its network.",
    ),
    "connection": (
        "NET-TCP",
        "The bot gets no connection, because the host does not accept one.",
        "Check the firewall of this machine, and whether it needs a proxy.",
    ),
    "certificate": (
        "NET-TLS",
        "The bot gets no connection, because the encryption (TLS) fails.",
        "Check the clock and the CA certificates of this machine.",
    ),
    "proxy": (
        "NET-PROXY",
        "The bot gets no connection, because the proxy does not connect to the host.",
        "Check the address of the proxy, and that it runs and allows this host.",
    ),
}
"""Code, what fails and the operator's step for each stage of a connection."""
_NETWORK_CODES = ["NET-DNS", "NET-TCP", "NET-TLS", "NET-PROXY"]


@check(id="network-reach", group="connections", codes=_NETWORK_CODES, limit=12, needs="network")
def network_reach(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can every platform and model provider be reached?"""
    host_results = probes.health.reach()
    if not host_results:
        raise Skip("no platform and no known provider is set up")
    failed: dict[tuple[str, str], list[HostResult]] = {}
    for host_result in host_results:
        if host_result.failed:
            failed.setdefault((host_result.failed, host_result.why), []).append(host_result)
    for (stage, _), some in failed.items():
        yield _finding(stage, some, len(host_results))
    for doubt in probes.settings.effective().unreadable:
        yield CouldNotLook(doubt)


def _finding(stage: str, some: list[HostResult], every: int) -> Finding:
    code, cause, step = _STAGES[stage]
    names = sorted({host_result.target.what for host_result in some})
    proxy = some[0].target.proxy
    route = (
        text("Tried through {proxy} ({variable}).", proxy=proxy.name, variable=proxy.variable)
        if proxy
        else "Tried without a proxy."
    )
    return Finding(
        code=code,
        severity=Severity.ERROR,
        title=(
            "no platform and no provider can be reached"
            if len(some) == every > 1
            else text("{hosts} cannot be reached", hosts=listed(names, 3))
        ),
        subject=", ".join(names),
        detail=sentences(cause, route),
        evidence=tuple(
            Evidence(one.target.endpoint.name, f"{one.why} ({one.seconds:.1f} s)")
            for one in some[:8]
        ),
        next=step,
    )


_TITLES = {
    "does not exist": "{variable} names a file that does not exist",
    "is empty": "{variable} names an empty file",
    "is an empty folder": "{variable} names an empty folder",
    "holds no certificate": "{variable} names a file without certificates",
}
_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HERMES_CA_BUNDLE")


@check(id="certificates", group="connections", codes=["SSL-CA"])
def certificates(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Do the variables for certificates name usable files?"""
    settings = probes.settings.effective()
    named = [name for name in _NAMES if settings.value(name)]
    if not named:
        raise Skip("no variable names a file with certificates")
    for name in named:
        try:
            fault = probes.gateway.certificate_fault(settings.value(name))
        except CouldNotLook as doubt:
            yield CouldNotLook("{variable}: {reason}", variable=name, reason=doubt)
            continue
        if fault:
            yield Finding(
                code="SSL-CA",
                severity=Severity.ERROR,
                title=text(_TITLES.get(fault, "{variable} names an unusable file"), variable=name),
                subject=name,
                detail=(
                    "Encrypted connections fail, so the bot reaches neither its platforms nor its "
                    "model."
                ),
                next=text(
                    "Remove {variable}, or set it to a file with certificates. Then restart the "
                    "gateway.",
                    variable=name,
                ),
                evidence=(
                    Evidence(
                        settings.source(name), f"{name}={redact_for_display(settings.value(name))}"
                    ),
                ),
            )


_PROXIES = ("HTTPS_PROXY", "ALL_PROXY", "HTTP_PROXY")
_LOCAL = ("localhost", "127.0.0.1")
_PROXY_CODES = ["PROXY-SERVICE", "PROXY-SOCKS", "PROXY-LOCALHOST"]


@check(id="service-proxies", group="supervision", codes=_PROXY_CODES)
def service_proxies(probes: Probes) -> Iterator[Finding]:
    """Does the gateway use the right proxy?"""
    unit = probes.gateway.supervision().owner
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
        running, told = probes.gateway.running(), probes.gateway.runtime()
    except CouldNotLook:
        return []
    if not running:
        return []
    return sorted(
        platform.name
        for platform in told.platforms.values()
        if platform.state in ("retrying", "connecting", "disconnected")
        and platform.updated_at is not None
        and platform.updated_at >= running[0].started_at
    )


def _written(probes: Probes) -> dict[str, str]:
    """Return the variables of .env, which the gateway loads at its start."""
    try:
        env = probes.settings.env()
    except CouldNotLook:
        return {}
    return env.values() if env and "proxy" in (env.text or "").lower() else {}


def _calls_itself(probes: Probes) -> bool:
    try:
        config = probes.settings.config()
    except CouldNotLook:
        return False
    text = config.data.decode("utf-8", "replace") if config else ""
    return any(f"//{one}" in text for one in _LOCAL)


def _upper(values: Mapping[str, str]) -> dict[str, str]:
    return {name.upper(): value for name, value in values.items() if "proxy" in name.lower()}


def _get(values: Mapping[str, str], name: str) -> str:
    return values.get(name) or values.get(name.lower()) or ""
