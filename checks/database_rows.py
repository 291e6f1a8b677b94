"""Find rows of state.db that are valid for SQLite but make Hermes fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check

Release = tuple[int, ...]
_CODES = ["DB-ACTIVE-NULL", "DB-TITLES", "DB-JSON", "DB-SCHEMAVERSION"]
_SOME = 2000
"""Number of rows at each end of a table that a quick check reads."""


@check(id="database-rows", group="databases", codes=_CODES, by_release=True)
def database_rows(probes: Probes) -> Iterator[Finding]:
    """Can Hermes work with every row of its history?"""
    path = probes.home / "state.db"
    if path not in probes.databases().paths:
        raise Skip("there is no state.db yet")
    try:
        found = probes.condition(path)
    except FileNotFoundError:
        raise Skip("state.db is gone") from None
    if not found.readable or not found.catalog or "messages" not in found.catalog.tables:
        raise Skip("state.db cannot be read, or holds no history")
    installed = probes.installation()
    release = installed.release if installed else ()
    yield from _schema_version(probes, path)
    yield from _json(probes, path, release)
    yield from _titles(probes, path, release)
    yield from _active(probes, path, release)


def _count(probes: Probes, path: Path, sql: str) -> int:
    """Return the count; 0 also if the table or column is missing or the query timed out."""
    answer = probes.ask(path, sql)
    value = answer.rows[0][0] if answer.rows and not answer.error else 0
    return value if isinstance(value, int) else 0


def _schema_version(probes: Probes, path: Path) -> Iterator[Finding]:
    sql = "SELECT count(*) FROM schema_version WHERE typeof(version) <> 'integer'"
    count = _count(probes, path, sql)
    if count:
        yield Finding(
            code="DB-SCHEMAVERSION",
            severity=Severity.CRITICAL,
            title="the schema version in state.db is not a number",
            subject="state.db",
            detail=(
                "Hermes cannot open its history: `TypeError: '<' not supported`. The gateway "
                "goes on without it. `hermes sessions repair` sees nothing."
            ),
            evidence=(Evidence("state.db", f"schema_version: {count} rows that are no number"),),
            fix="mend-rows",
            data={"count": count},
        )


def _json(probes: Probes, path: Path, release: Release) -> Iterator[Finding]:
    count = _count(
        probes,
        path,
        "SELECT count(*) FROM sessions WHERE model_config IS NOT NULL AND NOT "
        "CASE typeof(model_config) WHEN 'blob' THEN 0 ELSE json_valid(model_config) END",
    )
    if count:
        fails = not release or release >= (0, 17)
        yield Finding(
            code="DB-JSON",
            severity=Severity.ERROR if fails else Severity.INFO,
            title="a session's settings are not JSON, which breaks the list of all sessions",
            subject="state.db",
            detail=(
                "One such row is enough: listing, resuming and deleting any session fails with "
                "`malformed JSON`."
                if fails
                else "This release does not mind; newer ones fail to list any session."
            ),
            evidence=(Evidence("state.db", f"sessions.model_config: {count} rows"),),
            fix="mend-rows",
            data={"count": count, "table": "sessions", "column": "model_config"},
        )


def _titles(probes: Probes, path: Path, release: Release) -> Iterator[Finding]:
    index = "SELECT count(*) FROM sqlite_master WHERE name = 'idx_sessions_title_unique'"
    if _count(probes, path, index):
        return
    count = _count(
        probes,
        path,
        "SELECT count(*) FROM (SELECT title FROM sessions WHERE title IS NOT NULL "
        "GROUP BY title HAVING count(*) > 1)",
    )
    if count:
        heals = release >= (0, 19)
        yield Finding(
            code="DB-TITLES",
            severity=Severity.INFO if heals else Severity.ERROR,
            title="sessions share a title, and the index that forbids it is missing",
            subject="state.db",
            detail=(
                "This release takes the title from the older ones at its next start."
                if heals
                else "Hermes makes the index at its start and dies of it: `UNIQUE constraint "
                "failed: sessions.title`. The gateway goes on without history."
            ),
            evidence=(Evidence("state.db", f"sessions.title: {count} titles more than once"),),
            fix="mend-rows",
            data={"count": count},
        )


def _active(probes: Probes, path: Path, release: Release) -> Iterator[Finding]:
    if release and release < (0, 16):
        return
    if probes.deep:
        count = _count(probes, path, "SELECT count(*) FROM messages WHERE active IS NULL")
    else:
        ends = (
            f"SELECT active FROM messages ORDER BY id {way} LIMIT {_SOME}" for way in ("", "DESC")
        )
        count = max(
            _count(probes, path, f"SELECT count(*) FROM ({end}) WHERE active IS NULL")
            for end in ends
        )
    if count:
        heals = release >= (0, 18, 1)
        yield Finding(
            code="DB-ACTIVE-NULL",
            severity=Severity.INFO if heals else Severity.ERROR,
            title="messages are marked neither active nor inactive, so Hermes leaves them out",
            subject="state.db",
            detail=(
                "This release sets them right at its next start."
                if heals
                else "Transcripts load empty although every message is there."
            ),
            evidence=(Evidence("state.db", f"messages.active: at least {count} rows without it"),),
            fix="mend-rows",
            data={"count": count},
        )
