"""Check for MCP servers and browsers that an earlier gateway of this home left running."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text

_WORDS = {
    "mcp": ("MCP-ORPHANS", "MCP servers", "Each takes memory and may hold a port or a file."),
    "browser": ("BROWSER-ORPHANS", "browsers", "Each takes hundreds of megabytes."),
}


@check(id="gateway-orphans", group="gateway", codes=["MCP-ORPHANS", "BROWSER-ORPHANS"])
def gateway_orphans(probes: Probes) -> Iterator[Finding]:
    """Did earlier gateways take their children with them?"""
    found = probes.orphans()
    for kind, (code, what, harm) in _WORDS.items():
        mine = [one for one in found if one.kind == kind]
        if not mine:
            continue
        pids = " ".join(str(one.pid) for one in mine)
        yield Finding(
            code=code,
            severity=Severity.WARNING,
            title=text(
                "{number} {what} of an earlier gateway still run", number=len(mine), what=what
            ),
            subject=what,
            detail=text(
                "{harm} Nobody uses them any more; `kill {pids}` ends them.", harm=harm, pids=pids
            ),
            evidence=tuple(
                Evidence(f"process {one.pid} ({one.name})", f"belongs here by {one.proof}")
                for one in mine
            ),
            since=min(one.started_at for one in mine),
            data={"pids": tuple(one.pid for one in mine)},
        )
