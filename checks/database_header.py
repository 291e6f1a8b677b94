"""Find databases that are empty or that SQLite rejects because of their first page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CACHES,
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    ago,
    check,
    count,
    loss,
    moment,
    sentences,
    size,
    snapshot,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import DatabaseCopy, FirstPageFault

_REPAIRS = {"magic": "write-magic", "fields": "rewrite-header", "lost": "salvage-rows"}


@check(id="database-header", group="databases", codes=["DB-NOTADB", "DB-EMPTY"])
def database_header(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can SQLite open every database?"""
    databases = probes.databases()
    if not databases.paths and not databases.unreadable:
        raise Skip("no database yet")
    yield from map(CouldNotLook, databases.unreadable)
    for path in databases.paths:
        name = probes.home.name_of(path)
        if other := probes.kind(path):
            yield _other(name, other)
            continue
        try:
            found = probes.condition(path)
        except CouldNotLook as doubt:
            yield doubt
            continue
        except FileNotFoundError:
            yield CouldNotLook(text("{name} is missing, or a symlink to nothing", name=name))
            continue
        if found.header.empty or (found.catalog and not found.catalog.entries and not found.damage):
            yield from _empty(probes, path, found.log.size, zero=not found.files.main.size)
        elif found.fault is not None:
            fault = found.fault
            lost = fault.kind == "other" and name not in CACHES
            copies = probes.all_copies(path) if lost else []
            yield _fault(probes, name, fault, copies, log=found.log.committed if lost else 0)


def _other(name: str, what: str) -> Finding:
    hint = text("Docker creates a folder if the file of a mount is missing.")
    return Finding(
        code="DB-NOTADB",
        severity=Severity.CRITICAL,
        title=text("{name} is not a file", name=name),
        subject=name,
        detail=sentences(loss(name), hint if "folder" in what else ""),
        next=text("Move it away, then restore {name} from a backup.", name=name),
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
        "The old content may be in a backup.",
    ),
}
"""Title and what is left of the data, for each kind of damage."""


def _fault(
    probes: Probes, name: str, fault: FirstPageFault, copies: list[DatabaseCopy], log: int
) -> Finding:
    kind = fault.kind
    repair = _REPAIRS.get(kind)
    if kind in ("lost", "other") and name in CACHES:
        repair = "set-aside-cache"
    elif log:
        repair = "salvage-rows"
    elif copies:
        repair = "restore-database"
    title, left = _FAULTS[kind]
    if copies:
        left = text(
            "Its newest copy is from {time}; the -wal file may have newer rows."
            if log
            else "Its newest copy is from {time}; what came later is lost.",
            time=ago(moment(copies[0].mtime_ns)),
        )
    elif log:
        left = "Only its write-ahead log (-wal) is left."
    return Finding(
        code="DB-NOTADB",
        severity=Severity.CRITICAL,
        title=text(title, name=name),
        subject=name,
        detail=sentences(loss(name), left),
        next=(
            "Do not start Hermes before the repair."
            if log
            else ""
            if copies
            else "Do not delete the file; the repair needs it."
            if repair
            else "Copy the file to another place, then restore it from a backup."
        ),
        evidence=(Evidence(name, fault.what), *_shown(probes, copies)),
        fix=repair,
        data={"kind": kind, "fields": dict(fault.fields)},
    )


def _shown(probes: Probes, copies: list[DatabaseCopy]) -> list[Evidence]:
    return [
        Evidence(
            probes.home.name_of(one.path) + (one.member and f":{one.member}"),
            text("copy, {size}, perhaps of another home", size=size(one.size))
            if one.doubtful
            else text("copy, {size}", size=size(one.size)),
        )
        for one in copies[:3]
    ]


def _empty(probes: Probes, path: Path, log: int, *, zero: bool) -> Iterator[Finding]:
    """Report an empty database if traces show that it had content before."""
    name = probes.home.name_of(path)
    copies = probes.all_copies(path)
    # A zip that may be of another home does not show that this one was used.
    traces = _shown(probes, [one for one in copies if not one.doubtful])
    if log > 32:
        traces.insert(0, Evidence(f"{name}-wal", text("write-ahead log, {size}", size=size(log))))
    if not copies and path.name == "state.db" and (sessions := probes.sessions()):
        traces.append(Evidence("sessions", count(sessions, "session file")))
    certain = bool(traces)
    if not certain and zero:
        traces = _history(probes, path)
    if not traces:
        return
    fix = "salvage-rows" if log > 32 else "restore-database" if copies else None
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
        detail=(
            "Hermes treats it as new and starts without the old data. SQLite deletes the "
            "write-ahead log (-wal) at the next start."
            if log > 32
            else "Hermes treats it as new and starts without the old data."
        ),
        next=(
            "Do not start Hermes before the repair."
            if log > 32
            else ""
            if fix
            else "Restore the file from a backup, if you have one."
        ),
        evidence=(Evidence(name, "no tables"), *traces),
        fix=fix,
        data={"copies": tuple(one.path for one in copies)},
    )


_HISTORY = ("state.db", "kanban.db")
_USED = ("sessions/sessions.json", "logs/gateway.log", "logs/agent.log")


def _history(probes: Probes, path: Path) -> list[Evidence]:
    """What shows that Hermes has been used here; it creates tables before it does anything."""
    if path.name not in _HISTORY:
        return []
    found = []
    for other in probes.databases().paths:
        if other != path and other.name in _HISTORY and (length := _length(other)):
            what = text("another database of this home, {size}", size=size(length))
            found.append(Evidence(probes.home.name_of(other), what))
    lengths = {name: _length(probes.home / name) for name in _USED}
    found += [Evidence(name, size(length)) for name, length in lengths.items() if length > _BLANK]
    return found[:3]


_BLANK = 4
"""Bytes of an empty JSON object with a line end."""


def _length(path: Path) -> int:
    try:
        taken = snapshot(path)
    except CouldNotLook:
        return 0
    return taken.size if taken.kind == "file" else 0
