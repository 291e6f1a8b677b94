"""Check whether the gateway's SQLite has the bug by which concurrent writers damage a database."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="sqlite-library", group="databases", codes=["DB-SQLITE-WALRESET"])
def sqlite_library(probes: Probes) -> Iterator[Finding]:
    """Is the gateway's SQLite free of the fault that damages databases in WAL mode?"""
    gateways = probes.gateways()
    if not gateways:
        raise Skip("no gateway is seen to run")
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
        title=text(
            "the gateway's SQLite {version} has a fault that can damage databases", version=version
        ),
        subject="sqlite",
        detail=(
            "Two processes that write and checkpoint at the same moment can damage a database "
            "(SQLite 3.7.0 to 3.51.2; repaired in 3.51.3, 3.50.7 and 3.44.6). It is rare. "
            + (
                "More than one process has a database open now: end those that are not needed."
                if crowded
                else "As long as only the gateway writes, nothing happens."
            )
        ),
        evidence=(
            Evidence(str(found.path), f"SQLite {version}, loaded by process {found.pid}"),
            *(
                Evidence(name, f"open in processes {', '.join(map(str, holders))}")
                for name, holders in sorted(crowded.items())
            ),
        ),
        data={"version": found.version},
    )
