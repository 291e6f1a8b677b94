"""Check that the API server's key is strong enough for the address it listens on."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(
    id="api-exposure",
    group="access",
    codes=["GW-API-KEY-MISSING"],
    by_release=True,
    needs="platform:api_server",
)
def api_exposure(probes: Probes) -> Iterator[Finding]:
    """Is the key of the API server strong enough?"""
    server = probes.api_server()
    if server is None:
        raise Skip("the API server is not switched on")
    if server.fault is None:
        return
    title = "the key of the API server is easy to guess"
    if server.refused:
        title = {
            "missing": "API server cannot start: API_SERVER_KEY is missing",
            "a placeholder": "API server cannot start: API_SERVER_KEY is a placeholder",
        }.get(server.fault, "API server cannot start: API_SERVER_KEY is too short")
    yield Finding(
        code="GW-API-KEY-MISSING",
        severity=Severity.ERROR if server.refused else Severity.WARNING,
        title=title,
        subject="api_server",
        detail=_detail(refused=server.refused, needed=server.needed),
        next=(
            "Set API_SERVER_KEY in .env to the output of `openssl rand -hex 32`, give it to the "
            "clients, then restart the gateway."
        ),
        evidence=(
            Evidence(server.place or ".env", f"API_SERVER_KEY is {server.fault}"),
            Evidence(
                server.host_place,
                text("listens on {host} (this machine only)", host=server.host)
                if server.local
                else text("listens on {host} (other machines can reach it)", host=server.host),
            ),
        ),
    )


def _detail(*, refused: bool, needed: int) -> str:
    if not refused:
        return "A stranger who guesses the key can use the bot and its tools."
    if needed > 1:
        return text(
            "Programs that use the API get no answer. This release needs a key of at least "
            "{length} characters.",
            length=needed,
        )
    return "Programs that use the API get no answer. This release needs a key."
