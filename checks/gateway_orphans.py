"""Check for MCP servers and browsers that an earlier gateway of this home left running."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, count, text

_CODES = {"mcp": "MCP-ORPHANS", "browser": "BROWSER-ORPHANS"}


@check(id="gateway-orphans", group="gateway", codes=["MCP-ORPHANS", "BROWSER-ORPHANS"])
def gateway_orphans(probes: Probes) -> Iterator[Finding]:
    """Have MCP servers and browsers of old gateways ended?"""
    found = probes.orphans()
    for kind, code in _CODES.items():
        mine = [one for one in found if one.kind == kind]
        if not mine:
            continue
        browser = kind == "browser"
        noun = "browser" if browser else "MCP server"
        yield Finding(
            code=code,
            severity=Severity.WARNING,
            title=text(
                "{orphans} of an earlier gateway still running", orphans=count(len(mine), noun)
            ),
            subject="browsers" if browser else "MCP servers",
            detail=(
                "No gateway uses such a browser any more, but it takes hundreds of megabytes."
                if browser
                else "No gateway uses such a server any more, but it takes memory and may hold "
                "a port or a file."
            ),
            evidence=tuple(
                Evidence(f"process {one.pid} ({one.name})", f"belongs to this home: {one.proof}")
                for one in mine
            ),
            since=min(one.started_at for one in mine),
            data={"pids": tuple(one.pid for one in mine)},
            next=text("Run `kill {pids}`.", pids=" ".join(str(one.pid) for one in mine)),
        )
