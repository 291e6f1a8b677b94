"""Find missing or damaged pages, indexes and search indexes inside databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Partly,
    Probes,
    Severity,
    Skip,
    check,
    text,
)
from hermes_doctor.api.tools import CACHES, count, listed, loss, sentences, shown

if TYPE_CHECKING:
    from hermes_doctor.api.database import Condition, Damage

_CODES = ["DB-MALFORMED", "DB-TRUNCATED", "DB-INDEX", "DB-FTS-CORRUPT", "KANBAN-CORRUPT"]


@check(id="database-pages", group="databases", codes=[*_CODES, "RESPSTORE"], limit=10)
def database_pages(probes: Probes) -> Iterator[Finding | CouldNotLook | Partly]:
    """Are all pages of all databases intact?"""
    if not probes.databases.files().paths:
        raise Skip("no database yet")
    for name, path, condition in probes.databases.conditions():
        if condition.doubt is not None:
            yield CouldNotLook("{name}: {reason}", name=name, reason=condition.doubt)
        if condition.partly is not None:
            yield Partly(text("{name}: {reason}", name=name, reason=condition.partly))
        for unchecked in condition.unjudged:
            yield Partly(
                text(
                    "{name}: could not check {table}: {reason}",
                    name=name,
                    table=shown([unchecked.table]),
                    reason=unchecked.why,
                )
            )
        for finding in _findings(name, condition):
            yield finding._replace(caused_by=_cause(probes, path))


def _findings(name: str, condition: Condition) -> Iterator[Finding]:
    if condition.truncated is not None:
        yield _truncated(name, *condition.truncated)
    elif condition.stale_log:
        return  # the check database-log reports it
    elif condition.damage is not None:
        yield from _damaged(name, condition, condition.damage)
    else:
        yield from _searches(name, condition)


def _cause(probes: Probes, path: Path) -> str | None:
    """Return the cause if a process uses lost files: two logs on one database damage it."""
    lost = [
        lost_file.kind for lost_file in probes.databases.lost_files() if lost_file.database == path
    ]
    if not lost:
        return None
    return "DB-REPLACED" if "database" in lost else "DB-DELETED-WAL"


def _truncated(name: str, there: int, claimed: int) -> Finding:
    return Finding(
        code="DB-TRUNCATED",
        severity=Severity.CRITICAL,
        title=text(
            "{name} is incomplete: {there:,} of {all:,} pages are left",
            name=name,
            there=there,
            all=claimed,
        ),
        subject=name,
        detail=sentences(loss(name), "An interrupted copy or a full disk is the usual cause."),
        evidence=(Evidence(name, "the file is shorter than its header says"),),
        fix=_salvage(name),
        data={"pages": there, "claimed": claimed},
    )


def _damaged(name: str, condition: Condition, damage: Damage) -> Iterator[Finding]:
    if _canonical(condition, damage):
        yield _malformed(name, damage)
    elif damage.indexes:
        yield Finding(
            code="DB-INDEX",
            severity=Severity.CRITICAL if _is_board(name) else Severity.ERROR,
            title=text("indexes of {name} are damaged, its rows are not", name=name),
            subject=name,
            detail=(
                "Hermes refuses to open the board. Hermes' own repair can make this worse."
                if _is_board(name)
                else "Hermes does not find some rows and cannot write others. Hermes' own repair "
                "can make this worse."
            ),
            evidence=(Evidence(name, text("damaged: {indexes}", indexes=shown(damage.indexes))),),
            fix="rebuild-indexes",
            data={"indexes": tuple(sorted(damage.indexes))},
        )
    elif damage.rules:
        yield _forbidden(name, damage)
    if not _canonical(condition, damage):
        yield from _searches(name, condition)


def _canonical(condition: Condition, damage: Damage) -> bool:
    """Whether the damage includes more than what can be rebuilt from the rows."""
    derived = damage.indexes or damage.searches or condition.flaws
    return bool(damage.rows or damage.free or (damage.unused and not derived))


def _forbidden(name: str, damage: Damage) -> Finding:
    """Report readable rows with forbidden values; Hermes rejects a board that has them."""
    board = _is_board(name)
    return Finding(
        code="KANBAN-CORRUPT" if board else "DB-MALFORMED",
        severity=Severity.CRITICAL if board else Severity.WARNING,
        title=text("{name} has rows with forbidden values", name=name),
        subject=name,
        detail=(
            _advice(name)
            if board
            else "Every row can be read and nothing is lost, but Hermes reports the database as "
            "damaged."
        ),
        evidence=tuple(
            Evidence(name, text("forbidden value in {place}", place=_place(rule)))
            for rule in sorted(damage.rules)
        ),
        fix=_salvage(name) if board else None,
        data={"rules": tuple(sorted(damage.rules))},
    )


def _place(rule: str) -> str:
    table, _, column = rule.partition(".")
    return f"{shown([table])}, column {shown([column])}" if column else shown([table])


def _malformed(name: str, damage: Damage) -> Finding:
    code = "DB-MALFORMED"
    if _is_board(name):
        code = "KANBAN-CORRUPT"
    elif name == "response_store.db":
        code = "RESPSTORE"
    if damage.schema:
        what = text("the list of tables is damaged")
    elif damage.rows:
        what = text("damaged rows in {tables}", tables=shown(damage.rows))
    elif damage.free:
        what = text("the list of free pages is damaged; every row can be read")
    else:
        what = text(
            "{pages} without a table; every row can be read", pages=count(damage.unused, "page")
        )
    evidence = [Evidence(name, what)]
    for table, number in sorted(damage.disputed.items()):
        what = text(
            "{rows} of {table} with another value than in an index",
            rows=count(number, "row"),
            table=shown([table]),
        )
        evidence.append(Evidence(name, what))
    if damage.pages and damage.rows:
        pages = listed([str(page) for page in sorted(damage.pages)], 8)
        evidence.append(Evidence(name, text("damaged pages: {pages}", pages=pages)))
    beside = [*damage.indexes, *damage.searches]
    if beside:
        evidence.append(Evidence(name, text("also damaged: {parts}", parts=shown(beside))))
    harmless = not damage.rows and not damage.free
    return Finding(
        code=code,
        severity=Severity.WARNING if harmless else Severity.CRITICAL,
        title=text("{name} is damaged", name=name)
        if not harmless
        else text("{name} has pages that belong to no table", name=name),
        subject=name,
        detail=(
            _advice(name)
            if damage.rows
            else "Nothing is lost yet, but writing fails when SQLite needs a free page."
            if damage.free
            else "They waste space, and Hermes refuses to open the board."
            if _is_board(name)
            else "They waste space. Every row can be read."
        ),
        next=(
            "Do not run `hermes sessions repair` or `hermes doctor --fix`: they can make it worse."
            if damage.rows and not _is_board(name) and name not in CACHES
            else ""
        ),
        evidence=tuple(evidence),
        fix=_salvage(name) if damage.rows else "rewrite-header",
        data={
            "tables": tuple(sorted(damage.rows)),
            "indexes": tuple(sorted(damage.indexes)),
            "searches": tuple(sorted(damage.searches)),
            "pages": tuple(sorted(damage.pages)),
            "schema": damage.schema,
            "free": damage.free,
        },
    )


def _searches(name: str, condition: Condition) -> Iterator[Finding]:
    hit = condition.damage.searches - condition.damage.inverted if condition.damage else frozenset()
    flaws = [flaw for flaw in condition.flaws if flaw.table not in hit]
    differs = condition.damage.inverted if condition.damage else frozenset()
    if not hit and not flaws and not differs:
        return
    evidence = [
        Evidence(name, text("damaged pages in {table}", table=shown([table])))
        for table in sorted(hit)
    ]
    evidence += [
        Evidence(name, text("{table}: {fault}", table=shown([flaw.table]), fault=flaw.what))
        for flaw in flaws
    ]
    evidence += [
        Evidence(name, text("{table} differs from its rows", table=shown([table])))
        for table in sorted(differs)
    ]
    breaks = {flaw.breaks for flaw in flaws} | ({"writes"} if hit else set())
    breaks |= {"search"} if differs - condition.benign else set()
    if "writes" in breaks:
        severity, effect = Severity.CRITICAL, "The bot cannot save new messages."
    elif "search" in breaks:
        severity, effect = (
            Severity.ERROR,
            "Searching fails now, and saving messages can fail later.",
        )
    elif "later" in breaks:
        severity = Severity.ERROR
        effect = "The next `hermes sessions optimize-storage` damages it further."
    elif breaks:
        severity, effect = Severity.WARNING, "Searching does not find every message."
    else:
        severity, effect = Severity.INFO, "Searching works; other releases of SQLite may report it."
    lost = [flaw.table for flaw in flaws if flaw.lost]
    yield Finding(
        code="DB-FTS-CORRUPT",
        severity=severity,
        title=text("the search index of {name} is damaged", name=name),
        subject=name,
        detail=sentences(
            effect,
            text("The text in {tables} is stored only there.", tables=shown(lost))
            if lost
            else "The messages are intact, so the index can be built again.",
        ),
        evidence=tuple(evidence),
        fix="salvage-rows" if lost else "rebuild-fts",
        data={
            "tables": tuple(sorted({*hit, *differs, *(flaw.table for flaw in flaws)})),
        },
    )


def _advice(name: str) -> str:
    if name in CACHES:
        return sentences(loss(name), "It has no lasting data, so nothing is lost.")
    if _is_board(name):
        return "Hermes refuses to open the board and makes another copy of it at each try."
    return "The bot cannot read the damaged rows, and saving new ones fails."


def _is_board(name: str) -> bool:
    return name.rpartition("/")[2] == "kanban.db"


def _salvage(name: str) -> str:
    return "set-aside-cache" if name in CACHES else "salvage-rows"
