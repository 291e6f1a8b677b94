"""Check for rows saved from a deleted write-ahead log that are missing in the database."""

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    clock,
    count,
    text,
)


@check(id="saved-rows", group="databases", codes=["DB-SAVED-ROWS"], limit=10, needs="saved log")
def saved_rows(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does the database have all rows saved in a backup?"""
    for one in probes.unrestored():
        if isinstance(one, CouldNotLook):
            yield one
            continue
        name = one.database.rpartition("/")[2]
        evidence = Evidence(
            f"backup {one.backup}",
            text(
                "{database} and its deleted write-ahead log (-wal), saved {time}",
                database=one.database,
                time=clock(one.saved_at),
            ),
        )
        drop = f"`hermes-doctor backup prune {one.backup} {one.options}`"
        if one.addable:
            yield Finding(
                code="DB-SAVED-ROWS",
                severity=Severity.WARNING,
                title=_title(one.addable, one.noun, name),
                subject=f"{one.backup}/{one.database}",
                detail="The bot does not remember them. They are only in a backup.",
                evidence=(evidence,),
                since=one.saved_at,
                next=text(
                    "If you deleted them on purpose, remove the backup: {command}.", command=drop
                ),
                fix="add-saved-rows",
                data={"backup": one.backup, "database": one.database},
            )
        if one.not_addable:
            restore = f"`hermes-doctor backup restore {one.backup} {one.database} {one.options}`"
            yield Finding(
                code="DB-SAVED-ROWS",
                severity=Severity.WARNING,
                title=_title(one.not_addable, one.noun, name),
                subject=f"{one.backup}/{one.database} (cannot be added)",
                detail=(
                    "The conversation continued without them, so no fix can add them in order."
                    if one.noun == "message"
                    else "No fix adds them, because Hermes might run them again."
                ),
                evidence=(evidence,),
                since=one.saved_at,
                next=text(
                    "Run {restore} to compare and decide, or {prune} if you do not need them.",
                    restore=restore,
                    prune=drop,
                ),
                data={"backup": one.backup, "database": one.database},
            )


def _title(number: int, noun: str, name: str) -> str:
    return text("{name} lacks {rows} saved in a backup", name=name, rows=count(number, noun))
