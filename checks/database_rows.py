"""Find rows of state.db that are valid for SQLite but make Hermes fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, count, text

Release = tuple[int, ...]
_CODES = ["DB-ACTIVE-NULL", "DB-TITLES", "DB-JSON", "DB-SCHEMAVERSION"]
_SOME = 2000
"""Number of rows at each end of a table that a quick check reads."""


@check(id="database-rows", group="databases", codes=_CODES, by_release=True)
def database_rows(probes: Probes) -> Iterator[Finding]:
    """Can Hermes use every row of state.db?"""
    path = probes.home / "state.db"
    if path not in probes.databases().paths:
        raise Skip("no state.db yet")
    try:
        found = probes.condition(path)
    except FileNotFoundError:
        raise Skip("state.db is missing") from None
    if not found.readable or not found.catalog or "messages" not in found.catalog.tables:
        raise Skip("state.db cannot be read, or has no messages")
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
    rows = _count(probes, path, sql)
    if rows:
        yield Finding(
            code="DB-SCHEMAVERSION",
            severity=Severity.CRITICAL,
            title="the schema version in state.db is not a number",
            subject="state.db",
            detail=(
                "Hermes cannot open the message history, so the bot remembers nothing and saves "
                "nothing."
            ),
            evidence=(
                Evidence(
                    "state.db",
                    text("schema_version: {rows} without a number", rows=count(rows, "row")),
                ),
            ),
            fix="mend-rows",
            data={"count": rows},
        )


def _json(probes: Probes, path: Path, release: Release) -> Iterator[Finding]:
    rows = _count(
        probes,
        path,
        "SELECT count(*) FROM sessions WHERE model_config IS NOT NULL AND NOT "
        "CASE typeof(model_config) WHEN 'blob' THEN 0 ELSE json_valid(model_config) END",
    )
    if rows:
        fails = not release or release >= (0, 17)
        yield Finding(
            code="DB-JSON",
            severity=Severity.ERROR if fails else Severity.INFO,
            title="settings of a session in state.db are not valid JSON",
            subject="state.db",
            detail=(
                "Listing, resuming and deleting any session fails with `malformed JSON`."
                if fails
                else "This release works with it; newer releases cannot list sessions."
            ),
            evidence=(
                Evidence(
                    "state.db",
                    text("sessions.model_config: {rows}", rows=count(rows, "invalid row")),
                ),
            ),
            fix="mend-rows",
            data={"count": rows, "table": "sessions", "column": "model_config"},
        )


def _titles(probes: Probes, path: Path, release: Release) -> Iterator[Finding]:
    index = "SELECT count(*) FROM sqlite_master WHERE name = 'idx_sessions_title_unique'"
    if _count(probes, path, index):
        return
    titles = _count(
        probes,
        path,
        "SELECT count(*) FROM (SELECT title FROM sessions WHERE title IS NOT NULL "
        "GROUP BY title HAVING count(*) > 1)",
    )
    if titles:
        heals = release >= (0, 19)
        yield Finding(
            code="DB-TITLES",
            severity=Severity.INFO if heals else Severity.ERROR,
            title="several sessions in state.db have the same title",
            subject="state.db",
            detail=(
                "At its next start this release removes the title from the older ones."
                if heals
                else "At its next start Hermes cannot open the message history, so the bot "
                "remembers nothing and saves nothing."
            ),
            evidence=(
                Evidence(
                    "state.db",
                    text(
                        "{titles} used more than once; the unique index is missing",
                        titles=count(titles, "title"),
                    ),
                ),
            ),
            fix="mend-rows",
            data={"count": titles},
        )


def _active(probes: Probes, path: Path, release: Release) -> Iterator[Finding]:
    if release and release < (0, 16):
        return
    if probes.deep:
        rows = _count(probes, path, "SELECT count(*) FROM messages WHERE active IS NULL")
    else:
        ends = (
            f"SELECT active FROM messages ORDER BY id {way} LIMIT {_SOME}" for way in ("", "DESC")
        )
        rows = max(
            _count(probes, path, f"SELECT count(*) FROM ({end}) WHERE active IS NULL")
            for end in ends
        )
    if rows:
        heals = release >= (0, 18, 1)
        yield Finding(
            code="DB-ACTIVE-NULL",
            severity=Severity.INFO if heals else Severity.ERROR,
            title="messages in state.db lack the mark that they are active",
            subject="state.db",
            detail=(
                "This release sets the mark at its next start."
                if heals
                else "The bot does not see these messages in conversations, although they are "
                "stored."
            ),
            evidence=(
                Evidence(
                    "state.db",
                    text("messages.active: at least {rows} empty", rows=count(rows, "row")),
                ),
            ),
            fix="mend-rows",
            data={"count": rows},
        )
