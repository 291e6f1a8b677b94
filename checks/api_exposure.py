"""Check that the API server's key is strong enough for the address it listens on."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="api-exposure", group="access", codes=["GW-API-KEY-MISSING"], by_release=True)
def api_exposure(probes: Probes) -> Iterator[Finding]:
    """Does the API server have a key that is good enough for where it listens?"""
    on = any(one.name == "api_server" for one in probes.platforms())
    server = probes.api_server() if on else None
    if server is None:
        raise Skip("the API server is not switched on")
    needed = server.needed
    where = f"on {server.host}" + ("" if server.local else ", which others can reach")
    if server.fault is None:
        return
    refused = server.refused
    yield Finding(
        code="GW-API-KEY-MISSING",
        severity=Severity.ERROR if refused else Severity.WARNING,
        title=(
            text("the API server will not start: its key is {fault}", fault=server.fault)
            if refused
            else text("the API server is open to guessing: its key is {fault}", fault=server.fault)
        ),
        subject="api_server",
        detail=(
            text("It listens {where}. ", where=where)
            + (
                text("This release wants a key of at least {needed} characters. ", needed=needed)
                if needed
                else ""
            )
            + "Put the output of `openssl rand -hex 32` into .env as API_SERVER_KEY, give it to "
            "the clients, and restart the gateway."
        ),
        evidence=(
            Evidence(server.place or ".env", f"API_SERVER_KEY is {server.fault}"),
            Evidence(server.host_place, f"the API server listens {where}"),
        ),
    )
