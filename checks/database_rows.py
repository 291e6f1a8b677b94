"""Find rows of state.db that are valid for SQLite but make Hermes fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.tools import NamedTuple, count

Release = tuple[int, ...]
_CODES = ["DB-ACTIVE-NULL", "DB-TITLES", "DB-JSON", "DB-SCHEMAVERSION"]
_SOME = 2000
"""Number of rows at each end of a table that a quick check reads."""


@check(id="database-rows", group="databases", codes=_CODES, by_release=True)
def database_rows(probes: Probes) -> Iterator[Finding]:
    """Can Hermes use every row of state.db?"""
    path = probes.home / "state.db"
    if path not in probes.databases.files().paths:
        raise Skip("no state.db yet")
    try:
        condition = probes.databases.condition(path)
    except FileNotFoundError:
        raise Skip("state.db is missing") from None
    if (
        not condition.readable
        or not condition.catalog
        or "messages" not in condition.catalog.tables
    ):
        raise Skip("state.db cannot be read, or has no messages")
    installed = probes.hermes.installation()
    release = installed.release if installed else ()
    for fault in _FAULTS:
        if rows := fault.count_rows(probes, path, release):
            harmless = fault.is_harmless(release)
            yield Finding(
                code=fault.code,
                severity=Severity.INFO if harmless else fault.severity,
                title=fault.title,
                subject="state.db",
                detail=fault.harmless if harmless else fault.harm,
                evidence=(Evidence("state.db", text(fault.seen, rows=count(rows, fault.noun))),),
                fix="mend-rows",
                data={"count": rows, **fault.data},
            )


def _count(probes: Probes, path: Path, sql: str) -> int:
    """Return the count; 0 also if the table or column is missing or the query timed out."""
    answer = probes.databases.query(path, sql)
    value = answer.rows[0][0] if answer.rows and not answer.error else 0
    return value if isinstance(value, int) else 0


def _versions(probes: Probes, path: Path, release: Release) -> int:
    sql = "SELECT count(*) FROM schema_version WHERE typeof(version) <> 'integer'"
    return _count(probes, path, sql)


def _invalid_json(probes: Probes, path: Path, release: Release) -> int:
    return _count(
        probes,
        path,
        "SELECT count(*) FROM sessions WHERE model_config IS NOT NULL AND NOT "
        "CASE typeof(model_config) WHEN 'blob' THEN 0 ELSE json_valid(model_config) END",
    )


def _repeated_titles(probes: Probes, path: Path, release: Release) -> int:
    index = "SELECT count(*) FROM sqlite_master WHERE name = 'idx_sessions_title_unique'"
    if _count(probes, path, index):
        return 0
    return _count(
        probes,
        path,
        "SELECT count(*) FROM (SELECT title FROM sessions WHERE title IS NOT NULL "
        "GROUP BY title HAVING count(*) > 1)",
    )


def _without_mark(probes: Probes, path: Path, release: Release) -> int:
    if release and release < (0, 16):
        return 0
    if probes.deep:
        return _count(probes, path, "SELECT count(*) FROM messages WHERE active IS NULL")
    ends = (f"SELECT active FROM messages ORDER BY id {way} LIMIT {_SOME}" for way in ("", "DESC"))
    return max(
        _count(probes, path, f"SELECT count(*) FROM ({end}) WHERE active IS NULL") for end in ends
    )


class _Fault(NamedTuple):
    """Rows that Hermes cannot use, except releases that repair them or do not read them."""

    code: str
    count_rows: Callable[[Probes, Path, Release], int]
    title: str
    harm: str
    seen: str
    """The evidence, with `{rows}` for how many there are."""
    noun: str = "row"
    severity: Severity = Severity.ERROR
    is_harmless: Callable[[Release], bool] = lambda release: False
    harmless: str = ""
    data: Mapping[str, str] = {}


_FAULTS = (
    _Fault(
        "DB-SCHEMAVERSION",
        _versions,
        "the schema version in state.db is not a number",
        "Hermes cannot open the message history, so the bot remembers nothing and saves nothing.",
        "schema_version: {rows} without a number",
        severity=Severity.CRITICAL,
    ),
    _Fault(
        "DB-JSON",
        _invalid_json,
        "settings of a session in state.db are not valid JSON",
        "Listing, resuming and deleting any session fails with `malformed JSON`.",
        "sessions.model_config: {rows}",
        "invalid row",
        is_harmless=lambda release: bool(release) and release < (0, 17),
        harmless="This release works with it; newer releases cannot list sessions.",
        data={"table": "sessions", "column": "model_config"},
    ),
    _Fault(
        "DB-TITLES",
        _repeated_titles,
        "several sessions in state.db have the same title",
        "At its next start Hermes cannot open the message history, so the bot remembers nothing "
        "and saves nothing.",
        "{rows} used more than once; the unique index is missing",
        "title",
        is_harmless=lambda release: release >= (0, 19),
        harmless="At its next start this release removes the title from the older ones.",
    ),
    _Fault(
        "DB-ACTIVE-NULL",
        _without_mark,
        "messages in state.db lack the mark that they are active",
        "The bot does not see these messages in conversations, although they are stored.",
        "messages.active: at least {rows} empty",
        is_harmless=lambda release: release >= (0, 18, 1),
        harmless="This release sets the mark at its next start.",
    ),
)
