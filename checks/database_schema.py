"""Find parts of a database schema that are missing or differ from what Hermes declares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Changed, Missing, Structure

_PLURALS = {"index": "indexes"}


@check(
    id="database-schema",
    group="databases",
    codes=["KANBAN-SCHEMA", "DB-SCHEMA", "DB-NEWER"],
    by_release=["KANBAN-SCHEMA", "DB-SCHEMA"],
)
def database_schema(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Has every database the tables, columns, indexes and triggers that Hermes declares?"""
    databases = probes.databases()
    if not databases.paths and not databases.unreadable:
        raise Skip("there is no database yet")
    yield from map(CouldNotLook, databases.unreadable)
    for path in databases.paths:
        name = probes.home.name_of(path)
        try:
            header = probes.header(path)
            if not header.empty and header.magic:  # other checks report those
                yield from _judge(probes, path, name)
        except CouldNotLook as doubt:
            yield CouldNotLook(text("{name}: {doubt}", name=name, doubt=doubt))
        except FileNotFoundError:
            yield CouldNotLook(text("{name}: is gone, or a symlink to nowhere", name=name))


def _judge(probes: Probes, path: Path, name: str) -> Iterator[Finding]:
    structure = probes.structure(path)
    if structure.newer:
        found = probes.schema(path)
        yield Finding(
            code="DB-NEWER",
            severity=Severity.INFO,
            title=text("{name} was made by a newer Hermes than this tool knows", name=name),
            subject=name,
            detail="What it should be made of is not known here, so that is not judged, and "
            "nothing will change its structure. A newer hermes-doctor may know it.",
            evidence=(
                Evidence(
                    name,
                    f"schema version {found.version}, application id {found.application_id}, "
                    f"user version {found.user_version}",
                ),
            ),
        )
    elif structure.missing or structure.changed:
        yield _unlike(probes, name, structure)


def _unlike(probes: Probes, name: str, structure: Structure) -> Finding:
    missing, changed = structure.missing, structure.changed
    # Leave to Hermes what it adds by itself, because it also fills it from existing data.
    ours = tuple(part for part in missing if part.if_missing != "healed")
    wrong = tuple(part for part in changed if part.breaks)
    weighed = [_weigh(probes, missing)] if missing else []
    weighed += [_weigh_changed(changed)] if changed else []
    severity = min((one for one, _ in weighed), key=lambda one: one.rank)
    detail = " ".join(text for _, text in weighed)
    installed = probes.installation() is not None
    curable = (
        (structure.can_be_made(ours) or not ours)
        and bool(ours or wrong)
        and not structure.beyond
        and not (structure.alien and not installed)
    )
    if ours and not curable and not structure.beyond:
        detail += " What was in it cannot be made up, so that no fix is offered."
    kinds = [
        (kind, sorted(map(str, parts)))
        for kind, parts in groupby(missing, key=lambda part: part.kind)
    ]
    evidence = [
        Evidence(name, f"missing{_label(kind, len(names))}: {', '.join(names)}")
        for kind, names in kinds
    ]
    evidence += [
        Evidence(name, part.what) for part in sorted(changed, key=lambda one: not one.breaks)
    ]
    return Finding(
        code="KANBAN-SCHEMA" if name.endswith("kanban.db") else "DB-SCHEMA",
        severity=severity,
        title=_title(name, [_count(kind, len(names)) for kind, names in kinds], len(changed)),
        subject=name,
        detail=detail,
        evidence=tuple(evidence),
        fix="complete-schema" if curable else None,
        data={"missing": ours, "changed": wrong, "plan": structure.plan},
    )


def _title(name: str, missing: list[str], changed: int) -> str:
    said = [f"lacks {_enumerate(missing)}"] if missing else []
    if changed:
        said.append(
            f"has {changed} {'parts that are' if changed > 1 else 'part that is'} not as declared"
        )
    return f"{name} {' and '.join(said)}"


def _weigh_changed(changed: tuple[Changed, ...]) -> tuple[Severity, str]:
    """Rate parts that are declared differently, and say why."""
    effects = {part.effect for part in changed}
    if "crash" in effects:
        return Severity.ERROR, (
            "Hermes never looks at how a part that is there is declared: what it writes is refused."
        )
    if any(part.kind == "trigger" and part.breaks for part in changed):
        return Severity.ERROR, (
            "Hermes never looks at what a trigger that is there does: what is written from now on "
            "is not found by a search, or what is deleted still is."
        )
    if "silent" in effects:
        return Severity.WARNING, (
            "Hermes never looks at how a part that is there is declared: it goes on without an "
            "error, but rows are written without a value that it counts on, or twice."
        )
    return Severity.INFO, "That part is declared otherwise does no harm that is known."


def _weigh(probes: Probes, missing: tuple[Missing, ...]) -> tuple[Severity, str]:
    """Rate parts that are missing, and say why."""
    fates = {part.if_missing for part in missing}
    needed = any(part.kind in ("column", "table") for part in missing)
    if fates == {"healed"} and not (needed and probes.gateways()):
        return Severity.INFO, "This Hermes adds what is missing by itself at the next start."
    if fates == {"healed"}:
        return Severity.ERROR, (
            "Hermes would add it at a start, but the running gateway looked only once, when it "
            "started: it fails with `no such column` or `no such table` until then."
        )
    if "crash" in fates:
        return Severity.ERROR, (
            "Hermes does not add it by itself: it fails with `no such column` or worse."
        )
    if "unknown" in fates:
        return Severity.ERROR, (
            "Newer releases add some columns by themselves at a start, but which Hermes works on "
            "this home could not be told. Until then it fails with `no such column`."
        )
    if all(part.kind == "trigger" for part in missing if part.if_missing == "silent"):
        return Severity.ERROR, (
            "This Hermes does not add it by itself: it goes on without an error, but what is "
            "written from now on is never found by a search."
        )
    return Severity.ERROR, (
        "Hermes does not add it by itself: it goes on without an error, but what belongs there "
        "is never kept."
    )


def _enumerate(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _count(kind: str, count: int) -> str:
    if count > 1:
        return f"{count} {_plural(kind, count)}"
    return f"an {kind}" if kind == "index" else f"a {kind}"


def _label(kind: str, count: int) -> str:
    return "" if kind == "column" else f" {_plural(kind, count)}"


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else _PLURALS.get(kind, f"{kind}s")
