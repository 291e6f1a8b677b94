"""Find missing or damaged pages, indexes and search indexes inside databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CACHES,
    CouldNotLook,
    Evidence,
    Finding,
    Partly,
    Probes,
    Severity,
    Skip,
    check,
    loss,
    shown,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Condition, Damage

_CODES = ["DB-MALFORMED", "DB-TRUNCATED", "DB-INDEX", "DB-FTS-CORRUPT", "KANBAN-CORRUPT"]


@check(id="database-pages", group="databases", codes=[*_CODES, "RESPSTORE"], limit=10)
def database_pages(probes: Probes) -> Iterator[Finding | CouldNotLook | Partly]:
    """Is every page of every database what it should be?"""
    if not probes.databases().paths:
        raise Skip("there is no database yet")
    for name, path, found in probes.conditions():
        if found.doubt is not None:
            yield CouldNotLook(text("{name}: {doubt}", name=name, doubt=found.doubt))
        if found.partly is not None:
            yield Partly(f"{name}: {found.partly}")
        for one in found.unjudged:
            yield Partly(f"{name}: {shown([one.table])} was not judged: {one.why}")
        for finding in _findings(name, found):
            yield finding._replace(caused_by=_cause(probes, path))


def _findings(name: str, found: Condition) -> Iterator[Finding]:
    if found.truncated is not None:
        yield _truncated(name, *found.truncated)
    elif found.stale_log:
        return  # the check database-log reports it
    elif found.damage is not None:
        yield from _damaged(name, found, found.damage)
    else:
        yield from _searches(name, found)


def _cause(probes: Probes, path: Path) -> str | None:
    """Return the cause if a process uses lost files: two logs on one database damage it."""
    lost = [one.kind for one in probes.lost_files() if one.database == path]
    if not lost:
        return None
    return "DB-REPLACED" if "database" in lost else "DB-DELETED-WAL"


def _truncated(name: str, there: int, claimed: int) -> Finding:
    return Finding(
        code="DB-TRUNCATED",
        severity=Severity.CRITICAL,
        title=text("{name} is cut off", name=name),
        subject=name,
        detail=text(
            "{loss} A copy that was interrupted or a full disk does this. Keep the file.",
            loss=loss(name),
        ),
        evidence=(Evidence(name, f"{there} whole pages of {claimed} are there"),),
        fix=_salvage(name),
        data={"pages": there, "claimed": claimed},
    )


def _damaged(name: str, found: Condition, damage: Damage) -> Iterator[Finding]:
    if _canonical(found, damage):
        yield _malformed(name, damage)
    elif damage.indexes:
        yield Finding(
            code="DB-INDEX",
            severity=Severity.CRITICAL if _is_board(name) else Severity.ERROR,
            title=text("indexes of {name} are damaged, its rows are not", name=name),
            subject=name,
            detail=(
                (
                    "Hermes refuses the whole board for it. "
                    if _is_board(name)
                    else "Rows that are there are not found, and some cannot be written. "
                )
                + "Hermes has no repair for this, and the one it tries can make it worse."
            ),
            evidence=(Evidence(name, f"damaged: {shown(damage.indexes)}"),),
            fix="rebuild-indexes",
            data={"indexes": tuple(sorted(damage.indexes))},
        )
    elif damage.rules:
        yield _forbidden(name, damage)
    if not _canonical(found, damage):
        yield from _searches(name, found)


def _canonical(found: Condition, damage: Damage) -> bool:
    """Whether the damage includes more than what can be rebuilt from the rows."""
    derived = damage.indexes or damage.searches or found.flaws
    return bool(damage.rows or damage.free or (damage.unused and not derived))


def _forbidden(name: str, damage: Damage) -> Finding:
    """Report readable rows with forbidden values; Hermes rejects a board that has them."""
    board = _is_board(name)
    return Finding(
        code="KANBAN-CORRUPT" if board else "DB-MALFORMED",
        severity=Severity.CRITICAL if board else Severity.WARNING,
        title=text("rows of {name} break the rules of their own table", name=name),
        subject=name,
        detail=(
            _advice(name)
            if board
            else "Every row can be read, and nothing is lost. Hermes' own checks call it damaged."
        ),
        evidence=tuple(
            Evidence(name, f"a forbidden value in {_place(rule)}") for rule in sorted(damage.rules)
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
    rows = shown(damage.rows)
    if damage.schema:
        what = "the list of its tables is damaged"
    elif damage.rows:
        what = f"rows are hit in {rows}"
    elif damage.free:
        what = "only the list of its free pages is damaged; every row can be read"
    else:
        noun = "page belongs" if damage.unused == 1 else "pages belong"
        what = f"{damage.unused} {noun} to nothing; every row can be read"
    evidence = [Evidence(name, what)]
    for table, count in sorted(damage.disputed.items()):
        noun = "row says" if count == 1 else "rows say"
        what = f"{count} {noun} something else than an index of {shown([table])}"
        evidence.append(Evidence(name, what))
    if damage.pages and damage.rows:
        evidence.append(Evidence(name, f"damaged pages: {_numbers(damage.pages)}"))
    beside = [*damage.indexes, *damage.searches]
    if beside:
        evidence.append(Evidence(name, f"also hit: {shown(beside)}"))
    harmless = not damage.rows and not damage.free
    return Finding(
        code=code,
        severity=Severity.WARNING if harmless else Severity.CRITICAL,
        title=text("{name} is damaged", name=name)
        if not harmless
        else text("{name} has pages that belong to nothing", name=name),
        subject=name,
        detail=(
            _advice(name)
            if damage.rows
            else "Writing fails as soon as a free page is needed. Nothing is lost yet."
            if damage.free
            else "They take space, and Hermes refuses to open a board like this."
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


def _searches(name: str, found: Condition) -> Iterator[Finding]:
    hit = found.damage.searches - found.damage.inverted if found.damage else frozenset()
    flaws = [flaw for flaw in found.flaws if flaw.table not in hit]
    differs = found.damage.inverted if found.damage else frozenset()
    if not hit and not flaws and not differs:
        return
    evidence = [Evidence(name, f"pages of {shown([table])} are damaged") for table in sorted(hit)]
    evidence += [Evidence(name, f"{shown([flaw.table])}: {flaw.what}") for flaw in flaws]
    evidence += [
        Evidence(name, f"{shown([table])} does not agree with its rows")
        for table in sorted(differs)
    ]
    breaks = {flaw.breaks for flaw in flaws} | ({"writes"} if hit else set())
    breaks |= {"search"} if differs - found.benign else set()
    if "writes" in breaks:
        severity, effect = Severity.CRITICAL, "Every new message fails to be written."
    elif "search" in breaks:
        severity, effect = Severity.ERROR, "Searching fails, and later writing too."
    elif "later" in breaks:
        severity = Severity.ERROR
        effect = "Hermes damages it as soon as it resumes `hermes sessions optimize-storage`."
    elif breaks:
        severity, effect = Severity.WARNING, "Searching does not find all that is there."
    else:
        severity, effect = Severity.INFO, "Releases of SQLite differ here; searching works."
    lost = [flaw.table for flaw in flaws if flaw.lost]
    yield Finding(
        code="DB-FTS-CORRUPT",
        severity=severity,
        title=text("the search index of {name} is damaged", name=name)
        + ("" if lost else ", its rows are not"),
        subject=name,
        detail=effect
        + (
            text(" The text that {lost} kept is nowhere else.", lost=shown(lost))
            if lost
            else " The index can be made anew from the rows."
        ),
        evidence=tuple(evidence),
        fix="salvage-rows" if lost else "rebuild-fts",
        data={
            "tables": tuple(sorted({*hit, *differs, *(flaw.table for flaw in flaws)})),
        },
    )


def _advice(name: str) -> str:
    if name in CACHES:
        return f"{loss(name)} It holds nothing that would be missed."
    if _is_board(name):
        return "Hermes refuses the whole board, and makes a copy of it each time it tries."
    return (
        "What lies on those pages cannot be read, and writing fails. Do not run `hermes sessions "
        "repair` or `hermes doctor --fix`: they take the search tables away first and can leave "
        "it worse than before."
    )


def _is_board(name: str) -> bool:
    return name.rpartition("/")[2] == "kanban.db"


def _salvage(name: str) -> str:
    return "set-aside-cache" if name in CACHES else "salvage-rows"


def _numbers(pages: frozenset[int]) -> str:
    first = sorted(pages)[:8]
    more = f" and {len(pages) - len(first)} more" if len(pages) > len(first) else ""
    return ", ".join(map(str, first)) + more
