"""Find write-ahead logs set aside earlier that may have rows which state.db lacks."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    set_aside_logs,
    size,
    snapshot,
)


@check(id="database-aside", group="databases", codes=["DB-WAL-ROWS"])
def database_aside(probes: Probes) -> Iterator[Finding]:
    """Does state.db have all rows of old -wal files?"""
    path = probes.home / "state.db"
    logs = set_aside_logs(path)
    if not logs:
        raise Skip("no write-ahead log (-wal) was set aside")
    for log in logs:
        yield Finding(
            code="DB-WAL-ROWS",
            severity=Severity.INFO,
            title="an old -wal file may have rows that state.db lacks",
            subject=log.name,
            detail=(
                "This write-ahead log (-wal) was set aside, so Hermes does not read it. The repair "
                "adds messages and sessions that only it has."
            ),
            evidence=(Evidence(log.name, size(snapshot(log).size)),),
            fix="add-log-rows",
            data={"database": "state.db"},
        )
