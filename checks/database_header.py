"""Find databases that are empty or that SQLite rejects because of their first page."""

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    CACHES,
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    loss,
    size,
    text,
)

_REPAIRS = {"magic": "write-magic", "fields": "rewrite-header", "lost": "salvage-rows"}


@check(id="database-header", group="databases", codes=["DB-NOTADB", "DB-EMPTY"])
def database_header(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every database begin as a database does?"""
    databases = probes.databases()
    if not databases.paths and not databases.unreadable:
        raise Skip("there is no database yet")
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
            yield CouldNotLook(text("{name}: is gone, or a symlink that leads nowhere", name=name))
            continue
        if found.header.empty or (found.catalog and not found.catalog.entries and not found.damage):
            yield from _empty(probes, path, found.log.size)
        elif found.fault is not None:
            yield _fault(name, found.fault.kind, found.fault.what, dict(found.fault.fields))


def _other(name: str, what: str) -> Finding:
    return Finding(
        code="DB-NOTADB",
        severity=Severity.CRITICAL,
        title=text("{name} is no file at all", name=name),
        subject=name,
        detail=(
            text(
                "{loss} Move it to another place; what the database was may be in a backup.",
                loss=loss(name),
            )
            + (" A container makes one where the file of a mount is missing." * ("folder" in what))
        ),
        evidence=(Evidence(name, what),),
        data={"kind": "no file"},
    )


def _fault(name: str, kind: str, what: str, fields: dict[str, int]) -> Finding:
    repair = _REPAIRS.get(kind)
    if kind in ("lost", "other") and name in CACHES:
        repair = "set-aside-cache"
    kept = {
        "magic": "its rows are all there.",
        "fields": "its rows are there, only its first 100 bytes are wrong.",
        "lost": "most rows can often be saved. Copy it away before anything else runs.",
        "other": "copy it away before anything else runs; what it was may be in a backup.",
    }[kind]
    return Finding(
        code="DB-NOTADB",
        severity=Severity.CRITICAL,
        title=text("{name} is no longer a database to SQLite", name=name),
        subject=name,
        detail=text("{loss} Do not remove the file: {kept}", loss=loss(name), kept=kept),
        evidence=(Evidence(name, what),),
        fix=repair,
        data={"kind": kind, "fields": fields},
    )


def _empty(probes: Probes, path: Path, log: int) -> Iterator[Finding]:
    """Report an empty database if traces show that it had content before."""
    name = probes.home.name_of(path)
    copies = probes.copies(path)
    traces = [
        Evidence(probes.home.name_of(one.path), f"a copy of {size(one.size)}") for one in copies[:3]
    ]
    if log > 32:
        traces.insert(0, Evidence(f"{name}-wal", f"a log of {size(log)} is there"))
    if not copies and path.name == "state.db":
        count = probes.sessions()
        traces += [Evidence("sessions", f"{count} files of sessions")] if count else []
    if not traces:
        return
    yield Finding(
        code="DB-EMPTY",
        severity=Severity.CRITICAL if path.name == "state.db" else Severity.ERROR,
        title=text("{name} is empty, and was not always", name=name),
        subject=name,
        detail=(
            "Hermes takes an empty file for a new database: it begins anew without a word, and "
            "what was there is out of sight."
            + (" SQLite deletes the log at the next start." if log > 32 else "")
        ),
        evidence=(Evidence(name, "it holds no table"), *traces),
        fix="salvage-rows" if log > 32 else "restore-database" if copies else None,
        data={"copies": tuple(one.path for one in copies)},
    )
