"""Check whether the gateway's SQLite has the bug by which concurrent writers damage a database."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, listed, text


@check(id="sqlite-library", group="databases", codes=["DB-SQLITE-WALRESET"], needs="gateway")
def sqlite_library(probes: Probes) -> Iterator[Finding]:
    """Is the gateway's SQLite safe for databases in WAL mode?"""
    found = probes.sqlite_library()
    if found is None or not found.risky:
        return
    version = ".".join(map(str, found.version))
    crowded = {
        name: holders
        for name, path, _ in probes.conditions()
        if len(holders := probes.held().holders(path)) > 1
    }
    yield Finding(
        code="DB-SQLITE-WALRESET",
        severity=Severity.WARNING if crowded else Severity.INFO,
        title=text("SQLite {version} of the gateway can damage databases", version=version),
        subject="sqlite",
        detail=(
            "A rare bug: two processes that write at the same moment can damage a database. "
            "Several processes have one open now."
            if crowded
            else "A rare bug needs two processes that write at the same moment. Only the gateway "
            "has the databases open."
        ),
        evidence=(
            Evidence(str(found.path), f"SQLite {version}, loaded by process {found.pid}"),
            *(
                Evidence(
                    name,
                    text("open in processes {numbers}", numbers=listed([*map(str, holders)])),
                )
                for name, holders in sorted(crowded.items())
            ),
        ),
        next=(
            "Stop the processes that you do not need, and update SQLite to 3.51.3 or newer."
            if crowded
            else "Update SQLite to 3.51.3, 3.50.7 or 3.44.6 when you next update the machine."
        ),
        data={"version": found.version},
    )
