"""Find rows of state.db that make Hermes fail, and a search index that is not finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.database import Condition
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


_SEARCH_CODES = ["DB-FTS-UNFINISHED", "DB-FTS-STALE"]
_STALE, _DEFERRED = "fts_stale", "fts_rebuild_deferral"
_META = f"SELECT key, value FROM state_meta WHERE key IN ('{_STALE}', '{_DEFERRED}')"
_OFTEN = 3
"""A repair may wait for another process once or twice; that process may be starting or stopping."""


@check(id="search-rebuild", group="databases", codes=_SEARCH_CODES, limit=10)
def search_rebuild(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Has Hermes finished rebuilding the search index?"""
    if not probes.databases.files().paths:
        raise Skip("no database yet")
    for name, path, condition in probes.databases.conditions():
        if condition.flaws or (condition.damage and condition.damage.searches):
            continue  # damage is reported with its own repair
        if condition.rebuild is not None:
            yield _unfinished(name, condition)
        if path.name == "state.db":
            try:
                yield from _stale(probes, name, path, condition)
            except CouldNotLook as why:
                yield why


def _unfinished(name: str, condition: Condition) -> Finding:
    """Report a rebuild in small steps; an interrupted one if no process has the file open."""
    rebuild = condition.rebuild
    assert rebuild is not None
    total = rebuild.high_water
    if rebuild.progress is None:
        indexed = f"unknown how many of {total:,} messages are indexed"
    else:
        indexed = f"{rebuild.progress:,} of {total:,} messages are indexed"
    cut = not condition.holders
    return Finding(
        code="DB-FTS-UNFINISHED",
        severity=Severity.WARNING if cut else Severity.INFO,
        title=(
            text("the rebuild of the search index of {name} was interrupted", name=name)
            if cut
            else text("the search index of {name} is not finished", name=name)
        ),
        subject=name,
        detail=(
            "Searching older messages is slow or finds nothing, and no process continues the "
            "rebuild. Nothing is lost."
            if cut
            else "Searching older messages is slower until Hermes has finished. Nothing is lost."
        ),
        evidence=(Evidence(name, indexed),),
        next="Run `hermes sessions optimize-storage` to finish it now.",
        data={"progress": rebuild.progress, "high_water": rebuild.high_water},
    )


def _stale(probes: Probes, name: str, path: Path, condition: Condition) -> Iterator[Finding]:
    """Report an index that Hermes switched off and cannot rebuild."""
    if not condition.readable:
        return  # the database checks report why
    notes = {str(row[0]): row[1] for row in probes.databases.rows(path, _META, "state_meta")}
    if _STALE not in notes:
        return
    attempts, first, pids = _deferral(notes.get(_DEFERRED))
    blocked = attempts >= _OFTEN
    evidence = [Evidence(name, "state_meta: fts_stale")]
    if attempts:
        what = text("the repair was put off {times}", times=count(attempts, "time"))
        evidence.append(Evidence(name, what))
    holders = [_who(probes, pid) for pid in pids]
    if holders:
        evidence.append(Evidence(name, text("held by {holders}", holders=", ".join(holders))))
    yield Finding(
        code="DB-FTS-STALE",
        severity=Severity.WARNING if blocked or not condition.holders else Severity.INFO,
        title=(
            text("a process keeps Hermes from repairing the search of {name}", name=name)
            if blocked
            else text("Hermes switched off the search index of {name}", name=name)
        ),
        subject=name,
        detail=(
            "Searching old messages is slow and can miss some; saving works. Hermes rebuilds the "
            "index at a start when no other process has the file open."
        ),
        evidence=tuple(evidence),
        since=first,
        next=(
            "Stop every other Hermes process of this home (Desktop, `hermes serve`, dashboard), "
            "then restart the gateway."
        ),
        data={"attempts": attempts, "pids": pids},
    )


def _deferral(value: object) -> tuple[int, datetime | None, tuple[int, ...]]:
    """Return how often the repair was put off, since when, and because of which processes."""
    import json

    try:
        said = json.loads(value) if isinstance(value, (str, bytes)) else {}
        attempts, first, pids = (said.get(one) for one in ("attempts", "first_seen", "holder_pids"))
        since = datetime.fromtimestamp(float(first), UTC) if first else None
        numbers = tuple(pid for pid in pids or () if isinstance(pid, int))
        return int(attempts or 0), since, numbers[:3]
    except (ValueError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
        return 0, None, ()


def _who(probes: Probes, pid: int) -> str:
    name = probes.machine.command(pid)
    return f"process {pid} ({name})" if name else f"process {pid}, which is gone"
