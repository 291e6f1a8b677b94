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
    count,
    listed,
    sentences,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Changed, Missing, Structure

_PLURALS = {"index": "indexes", "search index": "search indexes"}
_NOUNS = {"full-text table": "search index"}


@check(
    id="database-schema",
    group="databases",
    codes=["KANBAN-SCHEMA", "DB-SCHEMA", "DB-NEWER"],
    by_release=["KANBAN-SCHEMA", "DB-SCHEMA"],
)
def database_schema(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every database have the structure that Hermes needs?"""
    databases = probes.databases()
    if not databases.paths and not databases.unreadable:
        raise Skip("no database yet")
    yield from map(CouldNotLook, databases.unreadable)
    for path in databases.paths:
        name = probes.home.name_of(path)
        try:
            header = probes.header(path)
            if not header.empty and header.magic:  # other checks report those
                yield from _judge(probes, path, name)
        except CouldNotLook as doubt:
            yield CouldNotLook(text("{name}: {reason}", name=name, reason=doubt))
        except FileNotFoundError:
            yield CouldNotLook(text("{name} is missing, or a symlink to nothing", name=name))


def _judge(probes: Probes, path: Path, name: str) -> Iterator[Finding]:
    structure = probes.structure(path)
    found = probes.schema(path)
    if older := _downgraded(probes, structure, found.version):
        yield _downgrade(name, older, found.version)
    elif structure.newer:
        yield Finding(
            code="DB-NEWER",
            severity=Severity.INFO,
            title=text("{name} is from a newer Hermes than hermes-doctor knows", name=name),
            subject=name,
            detail="Its structure could not be checked, and no repair changes it.",
            next="Update hermes-doctor.",
            evidence=(
                Evidence(
                    name,
                    text(
                        "schema version {schema}, application id {application}, user version "
                        "{user}",
                        schema=found.version,
                        application=found.application_id,
                        user=found.user_version,
                    ),
                ),
            ),
        )
    elif structure.missing or structure.changed:
        yield _unlike(probes, name, structure)


_SEARCH = 23
"""From this version of state.db on, older releases do not know how its search is built."""
_MOST = 10_000
"""A higher version is damage."""


def _downgraded(probes: Probes, structure: Structure, version: int | None) -> str | None:
    """Return the installed release if it is older than the one that wrote the database."""
    installed = probes.installation()
    if installed is None or version is None or not probes.is_release_known():
        return None
    if not _SEARCH <= version <= _MOST:
        return None
    known = structure.plan.version if structure.plan else None
    older = structure.newer or (known is not None and version > known)
    return installed.version if older else None


def _downgrade(name: str, release: str, version: int | None) -> Finding:
    return Finding(
        code="DB-NEWER",
        severity=Severity.WARNING,
        title=text("{name} is from a newer Hermes than {release}", name=name, release=release),
        subject=name,
        detail=(
            "The installed release ignores what the newer one added: searching and saving may "
            "fail. Probably Hermes was downgraded."
        ),
        next="Install the newer Hermes again, or restore a backup from before the upgrade.",
        evidence=(Evidence(name, f"schema version {version}"),),
    )


def _unlike(probes: Probes, name: str, structure: Structure) -> Finding:
    missing, changed = structure.missing, structure.changed
    # Leave to Hermes what it adds by itself, because it also fills it from existing data.
    ours = tuple(part for part in missing if part.if_missing != "healed")
    wrong = tuple(part for part in changed if part.breaks)
    weighed = [_weigh(probes, missing)] if missing else []
    weighed += [_weigh_changed(changed)] if changed else []
    severity = min((one for one, _ in weighed), key=lambda one: one.rank)
    detail = sentences(*(effect for _, effect in weighed))
    installed = probes.installation() is not None
    curable = (
        (structure.can_be_made(ours) or not ours)
        and bool(ours or wrong)
        and not structure.beyond
        and not (structure.alien and not installed)
    )
    kinds = [
        (_NOUNS.get(kind, kind), sorted(map(str, parts)))
        for kind, parts in groupby(missing, key=lambda part: part.kind)
    ]
    evidence = [
        Evidence(
            name,
            text("missing {kind}: {names}", kind=_plural(kind, len(names)), names=", ".join(names)),
        )
        for kind, names in kinds
    ]
    evidence += [
        Evidence(name, part.what) for part in sorted(changed, key=lambda one: not one.breaks)
    ]
    return Finding(
        code="KANBAN-SCHEMA" if name.endswith("kanban.db") else "DB-SCHEMA",
        severity=severity,
        title=_title(name, kinds, len(changed)),
        subject=name,
        detail=detail,
        next=(
            "Restore the file from a backup: the data of the missing part cannot be created again."
            if ours and not curable and not structure.beyond
            else ""
        ),
        evidence=tuple(evidence),
        fix="complete-schema" if curable else None,
        data={
            "missing": ours,
            "changed": wrong,
            "plan": structure.plan,
        },
    )


_LACKS = {
    "column": "{name} lacks the column {part}",
    "table": "{name} lacks the table {part}",
    "index": "{name} lacks the index {part}",
    "trigger": "{name} lacks the trigger {part}",
    "view": "{name} lacks the view {part}",
    "search index": "{name} lacks the search index {part}",
}


def _title(name: str, missing: list[tuple[str, list[str]]], changed: int) -> str:
    lacking = listed([_count(kind, len(names)) for kind, names in missing])
    if missing and changed:
        return text(
            "{name} lacks {missing} and has {changed} defined wrongly",
            name=name,
            missing=lacking,
            changed=count(changed, "part"),
        )
    if changed:
        return text(
            "{name} has {changed} defined wrongly", name=name, changed=count(changed, "part")
        )
    [kind, names] = missing[0]
    if len(missing) == len(names) == 1 and kind in _LACKS:
        return text(_LACKS[kind], name=name, part=names[0])
    return text("{name} lacks {missing}", name=name, missing=lacking)


def _weigh_changed(changed: tuple[Changed, ...]) -> tuple[Severity, str]:
    """Rate parts that are declared differently, and say why."""
    effects = {part.effect for part in changed}
    if "crash" in effects:
        return Severity.ERROR, "Writing to this part fails, and Hermes does not correct it itself."
    if any(part.kind == "trigger" and part.breaks for part in changed):
        return Severity.ERROR, (
            "Searching misses new messages or still finds deleted ones. Hermes does not correct it "
            "itself."
        )
    if "silent" in effects:
        return Severity.WARNING, (
            "Hermes writes rows without a needed value, or twice, and reports no error."
        )
    return Severity.INFO, "The difference does no known harm."


def _weigh(probes: Probes, missing: tuple[Missing, ...]) -> tuple[Severity, str]:
    """Rate parts that are missing, and say why."""
    fates = {part.if_missing for part in missing}
    needed = any(part.kind in ("column", "table") for part in missing)
    if fates == {"healed"} and not (needed and probes.gateways()):
        return Severity.INFO, "Hermes adds what is missing at its next start. Nothing to do."
    if fates == {"healed"}:
        return Severity.ERROR, (
            "What needs the missing part fails (`no such column` or `no such table`). Hermes adds "
            "it only when the gateway starts."
        )
    if "crash" in fates:
        return Severity.ERROR, (
            "What needs the missing part fails, for example with `no such column`. Hermes does not "
            "add it itself."
        )
    if "unknown" in fates:
        return Severity.ERROR, (
            "What needs the missing part fails with `no such column`. Newer releases add some "
            "columns at a start; which release runs here is unknown."
        )
    if all(part.kind == "trigger" for part in missing if part.if_missing == "silent"):
        return Severity.ERROR, (
            "Searching does not find new messages, and Hermes reports no error. It does not add "
            "the trigger itself."
        )
    return Severity.ERROR, (
        "Hermes does not save what belongs there, and reports no error. It does not add the "
        "missing part itself."
    )


def _count(kind: str, number: int) -> str:
    return count(number, kind, _PLURALS.get(kind, ""))


def _plural(kind: str, number: int) -> str:
    return kind if number == 1 else _PLURALS.get(kind, f"{kind}s")
