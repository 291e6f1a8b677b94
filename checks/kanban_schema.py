"""Columns that a kanban database lacks and that nothing will bring back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    columns_of,
    load_knowledge,
)

Release = tuple[int, ...]


@check(id="kanban-schema", group="databases", codes=["KANBAN-SCHEMA"])
def kanban_schema(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Has every kanban database the columns that the installed Hermes asks for?"""
    databases = probes.databases()
    boards = [path for path in databases.paths if path.name == "kanban.db"]
    doubts = [doubt for doubt in databases.doubts if "kanban" in doubt]
    if not boards and not doubts:
        raise Skip("there is no kanban database")
    yield from map(CouldNotLook, doubts)
    for path in boards:
        try:
            yield from _board(probes, path)
        except CouldNotLook as doubt:
            yield CouldNotLook(f"{probes.home.name_of(path)}: {doubt}")
        except FileNotFoundError:
            yield CouldNotLook(f"{probes.home.name_of(path)}: is gone, or a symlink to nowhere")


def _board(probes: Probes, path: Path) -> Iterator[Finding]:
    header = probes.header(path)
    if header.empty or not header.magic:
        return  # other checks tell of those
    knowledge = load_knowledge("schemas/kanban")
    tables = probes.schema(path).tables
    installed = probes.installation()
    version = installed.release if installed else _level(knowledge, tables)
    newest = _release(knowledge["releases"][-1])
    missing = {
        (table, column): facts
        for table, known in knowledge["tables"].items()
        if table in tables
        for column, facts in columns_of(known, version).items()
        if column not in tables[table]
    }
    if not missing:
        return
    name = probes.home.name_of(path)
    heals = bool(installed) and all(
        _heals(facts, installed.version if installed else "") for facts in missing.values()
    )
    running = bool(probes.gateways())
    columns = ", ".join(f"{table}.{column}" for table, column in sorted(missing))
    if heals and not running:
        severity = Severity.INFO
        detail = "This Hermes adds it by itself at the next start."
    elif heals:
        severity = Severity.ERROR
        detail = (
            "Hermes would add it at a start, but the running gateway looked only once, when it "
            "started: it fails with `no such column` until then."
        )
    elif installed is None:
        severity = Severity.ERROR
        detail = (
            "Newer releases add some columns by themselves at a start, but no Hermes was found "
            "here to tell. Until then it fails with `no such column`."
        )
    else:
        severity = Severity.ERROR
        detail = "Hermes does not add it by itself: it fails with `no such column` or worse."
    # What this Hermes adds by itself it also fills from older columns: that is left to it.
    ours = {
        key: facts
        for key, facts in missing.items()
        if not installed or not _heals(facts, installed.version)
    }
    older = any(
        column not in known["columns"]
        for table, known in knowledge["tables"].items()
        for column in tables.get(table, ())
    )
    curable = (
        bool(ours)
        and version <= newest
        and not any(facts["key"] for facts in ours.values())
        and not (older and installed is None)
    )
    yield Finding(
        code="KANBAN-SCHEMA",
        severity=severity,
        title=f"{name} lacks {'a column' if len(missing) == 1 else f'{len(missing)} columns'}",
        subject=name,
        detail=detail,
        evidence=(Evidence(name, f"missing: {columns}"),),
        fix="add-columns" if curable else None,
        data={"missing": tuple(sorted(ours)), "version": version},
    )


def _heals(facts: dict[str, Any], version: str) -> bool:
    """Whether the installed release brings the column back; a newer one than we know does too."""
    healed = facts["healed_by"]
    return version in healed or (bool(healed) and _release(version) > _release(healed[-1]))


def _level(knowledge: dict[str, Any], tables: Any) -> Release:
    """The newest release whose own columns the database has: at least that one worked on it."""
    levels = [
        _release(facts["since"])
        for table, known in knowledge["tables"].items()
        for column, facts in known["columns"].items()
        if column in tables.get(table, ())
    ]
    return max(levels, default=_release(knowledge["releases"][0]))


def _release(version: str) -> Release:
    parts = version.split(".")
    return tuple(int(part) for part in parts if part.isdecimal() and len(part) < 10)
