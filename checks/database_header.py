"""Find databases that are empty or that SQLite rejects because of their first page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    snapshot,
    text,
)
from hermes_doctor.api.database import DatabaseCopy, FirstPageFault
from hermes_doctor.api.tools import CACHES, ago, loss, sentences, size

_REPAIRS = {"magic": "write-magic", "fields": "rewrite-header", "lost": "salvage-rows"}


@check(id="database-header", group="databases", codes=["DB-NOTADB", "DB-EMPTY"])
def database_header(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can SQLite open every database?"""
    databases = probes.databases.files()
    if not databases.paths and not databases.unreadable:
        raise Skip("no database yet")
    yield from map(CouldNotLook, databases.unreadable)
    for path in databases.paths:
        name = probes.home.name_of(path)
        if other := probes.files.kind(path):
            yield _other(name, other)
            continue
        try:
            condition = probes.databases.condition(path)
        except CouldNotLook as doubt:
            yield doubt
            continue
        except FileNotFoundError:
            yield CouldNotLook("{name} is missing, or a symlink to a missing file", name=name)
            continue
        if condition.header.empty or (
            condition.catalog and not condition.catalog.entries and not condition.damage
        ):
            yield from _empty(probes, path, condition.log.size, zero=not condition.files.main.size)
        elif condition.fault is not None:
            fault = condition.fault
            lost = fault.kind == "other" and name not in CACHES
            copies = probes.databases.all_copies(path) if lost else []
            yield _fault(probes, name, fault, copies, log=condition.log.committed if lost else 0)


def _other(name: str, what: str) -> Finding:
    hint = text("Docker creates a folder if the file of a mount is missing.")
    return Finding(
        code="DB-NOTADB",
        severity=Severity.CRITICAL,
        title=text("{name} is not a file", name=name),
        subject=name,
        detail=sentences(loss(name), hint if "folder" in what else ""),
        next="Move it away, then run `hermes-doctor check` again: it looks for copies.",
        evidence=(Evidence(name, what),),
        data={"kind": "no file"},
    )


_FAULTS = {
    "magic": (
        "{name} cannot be opened: its first 16 bytes are damaged",
        "Every row is still in the file.",
    ),
    "fields": (
        "{name} cannot be opened: its first 100 bytes are damaged",
        "Every row is still in the file.",
    ),
    "lost": (
        "{name} cannot be opened: its first page is damaged",
        "Most rows can often be saved.",
    ),
    "other": (
        "{name} cannot be opened: it is not a database",
        "",
    ),
}
"""Title and what is left of the data, for each kind of damage."""


def _fault(
    probes: Probes, name: str, fault: FirstPageFault, copies: list[DatabaseCopy], log: int
) -> Finding:
    from hermes_doctor.api.repairs import copy_evidence

    kind, path = fault.kind, probes.home / name
    repair = _REPAIRS.get(kind)
    if kind in ("lost", "other") and name in CACHES:
        repair = "set-aside-cache"
    elif log:
        repair = "salvage-rows"
    elif kind == "other":
        repair = _lost_repair(probes, path, copies)
    held = kind == "other" and _is_open_elsewhere(probes, path)
    title, left = _FAULTS[kind]
    if held:
        repair, left = None, _HELD
    elif copies:
        left = text(
            "Its newest copy is from {time}; the -wal file may have newer rows."
            if log
            else "Its newest copy is from {time}; newer data is lost.",
            time=ago(copies[0].written_at),
        )
    elif log:
        left = "Only its write-ahead log (-wal) is left."
    elif repair == "start-empty":
        from hermes_doctor.api.repairs import NO_COPY

        left = NO_COPY
    elif kind == "other" and repair == "salvage-rows":
        from hermes_doctor.api.repairs import DAMAGED_COPY

        left = DAMAGED_COPY
    elif repair == "set-aside-cache":
        left = "It has no lasting data, so nothing is lost."
    return Finding(
        code="DB-NOTADB",
        severity=Severity.CRITICAL,
        title=text(title, name=name),
        subject=name,
        detail=sentences(loss(name), left),
        next=(
            "Do not start Hermes before the repair."
            if log and not held
            else ""
            if held or copies or repair == "set-aside-cache"
            else probes.databases.advice_without_copy(path)
            if repair == "start-empty"
            else "Do not delete the file; the repair needs it."
        ),
        evidence=(Evidence(name, fault.what), *copy_evidence(probes.home, path.name, copies)),
        fix=repair,
        caused_by="DB-REPLACED" if held else None,
        data={"kind": kind, "fields": dict(fault.fields), "log": bool(log)},
    )


_HELD = "A process still has the old file open, which has the data."


def _is_open_elsewhere(probes: Probes, path: Path) -> bool:
    """Whether a process still uses the file that was at this path before."""
    return any(
        lost_file.database == path and lost_file.kind == "database"
        for lost_file in probes.databases.lost_files()
    )


def _lost_repair(probes: Probes, path: Path, copies: list[DatabaseCopy]) -> str:
    """The fix for a database of which nothing can be read."""
    if copies:
        return "restore-database"
    return "salvage-rows" if probes.databases.damaged_copies(path) else "start-empty"


def _empty(probes: Probes, path: Path, log: int, *, zero: bool) -> Iterator[Finding]:
    """Report an empty database if traces show that it had content before."""
    from hermes_doctor.api.database import LOG_HEAD
    from hermes_doctor.api.repairs import copy_evidence

    name = probes.home.name_of(path)
    copies = probes.databases.all_copies(path)
    own = [copy for copy in copies if not copy.doubtful]
    # A copy that may be of another home does not show that this one was used.
    traces = copy_evidence(probes.home, path.name, own)
    if log > LOG_HEAD:
        traces.insert(0, Evidence(f"{name}-wal", text("write-ahead log, {size}", size=size(log))))
    if not traces:
        left = probes.databases.copies(path)[:1]
        traces = [
            Evidence(probes.home.name_of(database_copy.path), "damaged copy")
            for database_copy in left
        ]
        traces += [Evidence(trace.where, trace.what) for trace in probes.databases.traces(path)[:3]]
    certain = bool(traces)
    if not certain and zero:
        traces = _history(probes, path)
    if not traces:
        return
    held = _is_open_elsewhere(probes, path)
    repair = "salvage-rows" if log > LOG_HEAD else _lost_repair(probes, path, copies)
    yield Finding(
        code="DB-EMPTY",
        severity=(
            Severity.CRITICAL
            if path.name == "state.db"
            else Severity.ERROR
            if certain
            else Severity.WARNING
        ),
        title=(
            text("{name} is empty but had data before", name=name)
            if certain
            else text("{name} has 0 bytes, but this home has been used", name=name)
        ),
        subject=name,
        detail=_HELD if held else _empty_detail(log, copies, repair),
        next=(
            ""
            if held
            else "Do not start Hermes before the repair."
            if log > LOG_HEAD
            else probes.databases.advice_without_copy(path)
            if repair == "start-empty"
            else ""
        ),
        evidence=(Evidence(name, "0 bytes" if zero else "no tables"), *traces),
        fix=None if held else repair,
        caused_by="DB-REPLACED" if held else None,
        data={"copies": tuple(one.path for one in copies), "log": log > LOG_HEAD},
    )


def _empty_detail(log: int, copies: list[DatabaseCopy], repair: str) -> str:
    from hermes_doctor.api.database import LOG_HEAD
    from hermes_doctor.api.repairs import DAMAGED_COPY, NO_COPY

    effect = "Hermes treats it as new and starts without the old data."
    if log > LOG_HEAD:
        return sentences(effect, "SQLite deletes the write-ahead log (-wal) at the next start.")
    if copies:
        return effect
    return sentences(effect, NO_COPY if repair == "start-empty" else DAMAGED_COPY)


_HISTORY = ("state.db", "kanban.db")
_USED = ("sessions/sessions.json", "logs/gateway.log", "logs/agent.log")


def _history(probes: Probes, path: Path) -> list[Evidence]:
    """What shows that Hermes has been used here; it creates tables before it does anything."""
    if path.name not in _HISTORY:
        return []
    evidences = []
    for other in probes.databases.files().paths:
        if other != path and other.name in _HISTORY and (length := _length(other)):
            what = text("another database of this home, {size}", size=size(length))
            evidences.append(Evidence(probes.home.name_of(other), what))
    lengths = {name: _length(probes.home / name) for name in _USED}
    evidences += [
        Evidence(name, size(length)) for name, length in lengths.items() if length > _BLANK
    ]
    return evidences[:3]


_BLANK = 4
"""Bytes of an empty JSON object with a line end."""


def _length(path: Path) -> int:
    try:
        taken = snapshot(path)
    except CouldNotLook:
        return 0
    return taken.size if taken.kind == "file" else 0
