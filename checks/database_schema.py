"""Find parts of a database schema that are missing or differ from what Hermes declares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.database import ChangedPart, MissingPart, Structure
from hermes_doctor.api.tools import NamedTuple, count, listed, sentences

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
    databases = probes.databases.files()
    if not databases.paths and not databases.unreadable:
        raise Skip("no database yet")
    yield from map(CouldNotLook, databases.unreadable)
    for path in databases.paths:
        name = probes.home.name_of(path)
        try:
            header = probes.databases.header(path)
            if not header.empty and header.magic:  # other checks report those
                yield from _judge(probes, path, name)
        except CouldNotLook as doubt:
            yield CouldNotLook("{name}: {reason}", name=name, reason=doubt)
        except FileNotFoundError:
            yield CouldNotLook("{name} is missing, or a symlink to a missing file", name=name)


def _judge(probes: Probes, path: Path, name: str) -> Iterator[Finding]:
    structure = probes.databases.structure(path)
    schema = probes.databases.schema(path)
    if older := _downgraded(probes, structure, schema.version):
        yield _downgrade(name, older, schema.version)
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
                        schema=schema.version,
                        application=schema.application_id,
                        user=schema.user_version,
                    ),
                ),
            ),
        )
    elif (structure.missing or structure.changed) and not _is_unreadable(probes, path, structure):
        yield _unlike(probes, path, name, structure)


def _is_unreadable(probes: Probes, path: Path, structure: Structure) -> bool:
    """Whether a table only looks missing, because the database is damaged; reported elsewhere."""
    tables = any(part.kind == "table" for part in structure.missing)
    return tables and probes.databases.condition(path).damage is not None


_SEARCH = 23
"""From this version of state.db on, older releases do not know how its search is built."""
_MOST = 10_000
"""A higher version is damage."""


def _downgraded(probes: Probes, structure: Structure, version: int | None) -> str | None:
    """Return the installed release if it is older than the one that wrote the database."""
    installed = probes.hermes.installation()
    if installed is None or version is None or not probes.hermes.is_release_known():
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


class _Cure(NamedTuple):
    """Who can put right what is missing or differs."""

    missing: tuple[MissingPart, ...]
    """What the fix adds."""
    changed: tuple[ChangedPart, ...]
    """What the fix corrects."""
    by_hermes: tuple[MissingPart, ...]
    """What only Hermes can add, when it starts."""
    possible: bool
    """Whether the fix can do its part."""
    lost: bool
    """Whether data is lost that no fix can create again."""


def _cure(probes: Probes, path: Path, structure: Structure, copies: int) -> _Cure:
    ours = tuple(
        missing_part
        for missing_part in structure.missing
        if _can_be_made(probes, path, structure, missing_part)
    )
    rest = tuple(one for one in structure.missing if one not in ours)
    wrong = tuple(part for part in structure.changed if part.breaks)
    lost = bool(copies) or any(one.if_missing != "healed" for one in rest)
    guessed = structure.alien and probes.hermes.installation() is None
    possible = not (lost or guessed or structure.beyond)
    return _Cure(ours, wrong, rest, possible, lost)


def _can_be_made(probes: Probes, path: Path, structure: Structure, part: MissingPart) -> bool:
    query = structure.duplicates_query(part)
    if query is None:
        return structure.can_be_made(part)
    return not probes.databases.query(path, query).rows


def _unlike(probes: Probes, path: Path, name: str, structure: Structure) -> Finding:
    missing, changed = structure.missing, structure.changed
    queries = filter(None, map(structure.copies_query, structure.missing))
    answers = [probes.databases.query(path, query).rows for query in queries]
    copies = sum(rows[0][0] for rows in answers if rows)
    weighed = [_weigh_copies(copies)] if copies else []
    weighed += [_weigh(probes, missing)] if missing and not copies else []
    weighed += [_weigh_changed(changed)] if changed else []
    severity = min((one for one, _ in weighed), key=lambda one: one.rank)
    cure = _cure(probes, path, structure, copies)
    kinds = [
        (_NOUNS.get(kind, kind), sorted(map(str, parts)))
        for kind, parts in groupby(missing, key=lambda part: part.kind)
    ]
    return Finding(
        code="KANBAN-SCHEMA" if name.endswith("kanban.db") else "DB-SCHEMA",
        severity=severity,
        title=_title(name, kinds, len(changed)),
        subject=name,
        detail=sentences(*(effect for _, effect in weighed)),
        next=(
            "Restore the file from a backup: the data of the missing part cannot be created again."
            if cure.lost
            else ""
        ),
        evidence=tuple(_evidence(name, kinds, changed)),
        fix="complete-schema" if _is_offered(probes, cure) else None,
        data={
            "missing": cure.missing,
            "changed": cure.changed,
            "by_hermes": cure.by_hermes,
            "plan": structure.plan,
        },
    )


def _is_offered(probes: Probes, cure: _Cure) -> bool:
    """Whether the fix has something to do; what only Hermes can add needs a gateway to restart."""
    if not cure.possible:
        return False
    return bool(cure.missing or cure.changed or (cure.by_hermes and probes.gateway.running()))


def _evidence(
    name: str, missing: list[tuple[str, list[str]]], changed: tuple[ChangedPart, ...]
) -> Iterator[Evidence]:
    for kind, names in missing:
        listing = ", ".join(names)
        yield Evidence(
            name, text("missing {kind}: {names}", kind=_plural(kind, len(names)), names=listing)
        )
    for part in sorted(changed, key=lambda one: not one.breaks):
        yield Evidence(name, part.what)


_LACKS = {
    "column": "{name} lacks the column {part}",
    "table": "{name} lacks the table {part}",
    "index": "{name} lacks the index {part}",
    "trigger": "{name} lacks the trigger {part}",
    "view": "{name} lacks the view {part}",
    "search index": "{name} lacks the search index {part}",
}


def _title(name: str, missing: list[tuple[str, list[str]]], changed: int) -> str:
    lacking = listed([count(len(names), kind, _PLURALS.get(kind, "")) for kind, names in missing])
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


def _weigh_changed(changed: tuple[ChangedPart, ...]) -> tuple[Severity, str]:
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


def _weigh_copies(copies: int) -> tuple[Severity, str]:
    """Rate a missing table whose texts are still in the search index."""
    return Severity.ERROR, text(
        "Its rows are lost. The search index has the last copy of {texts}; Hermes may empty it "
        "at its next start.",
        texts=count(copies, "text"),
    )


def _weigh(probes: Probes, missing: tuple[MissingPart, ...]) -> tuple[Severity, str]:
    """Rate parts that are missing, and say why."""
    fates = {part.if_missing for part in missing}
    if fates == {"healed"}:
        return _weigh_healed(probes, {part.kind for part in missing})
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


def _weigh_healed(probes: Probes, kinds: set[str]) -> tuple[Severity, str]:
    """Rate parts that Hermes adds when it starts: a gateway that is running fails without them."""
    if kinds == {"index"}:
        return Severity.INFO, (
            "Hermes works without it, but more slowly, and adds it at its next start."
        )
    running = bool(probes.gateway.running())
    if running and kinds <= {"index", "trigger"}:
        return Severity.ERROR, (
            "Searching does not find new messages. Hermes adds the trigger only when the gateway "
            "starts."
        )
    if running:
        return Severity.ERROR, (
            "What needs the missing part fails (`no such column` or `no such table`). Hermes adds "
            "it only when the gateway starts."
        )
    if kinds & {"column", "table"}:
        return Severity.WARNING, (
            "Hermes adds what is missing at its next start, as after each update."
        )
    return Severity.INFO, "Hermes adds what is missing at its next start."


def _plural(kind: str, number: int) -> str:
    return kind if number == 1 else _PLURALS.get(kind, f"{kind}s")
