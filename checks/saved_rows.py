"""Check for rows saved from a deleted write-ahead log that are missing in the database."""

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="saved-rows", group="databases", codes=["DB-SAVED-ROWS"], limit=10)
def saved_rows(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does the database have the rows that were saved from a deleted log?"""
    if not probes.saved_logs():
        raise Skip("no rows of a deleted write-ahead log (-wal) wait in a backup")
    for one in probes.unrestored():
        if isinstance(one, CouldNotLook):
            yield one
            continue
        name = one.database.rpartition("/")[2]
        evidence = Evidence(
            f"backup {one.backup}",
            f"{one.database} with its deleted log, saved {one.saved_at.astimezone():%b %d %H:%M}",
        )
        drop = f"`hermes-doctor backup prune {one.backup} {one.options}`"
        if one.addable:
            yield Finding(
                code="DB-SAVED-ROWS",
                severity=Severity.WARNING,
                title=_title(one.addable, one.noun, name),
                subject=f"{one.backup}/{one.database}",
                detail=(
                    text(
                        "Backup {backup} has them. If you did not delete them yourself, "
                        "let the fix add them. If you do not want them: {drop}.",
                        backup=one.backup,
                        drop=drop,
                    )
                ),
                evidence=(evidence,),
                since=one.saved_at,
                fix="add-saved-rows",
                data={"backup": one.backup, "database": one.database},
            )
        if one.not_addable:
            restore = f"`hermes-doctor backup restore {one.backup} {one.database} {one.options}`"
            why = (
                "The conversation went on without them, so they cannot be added in order."
                if one.noun == "message"
                else "Hermes might run an added task again, so none is added."
            )
            yield Finding(
                code="DB-SAVED-ROWS",
                severity=Severity.WARNING,
                title=_title(one.not_addable, one.noun, name),
                subject=f"{one.backup}/{one.database} (cannot be added)",
                detail=text(
                    "{why} {restore} compares and asks. To keep {name} as it is: {drop}.",
                    why=why,
                    restore=restore,
                    name=name,
                    drop=drop,
                ),
                evidence=(evidence,),
                since=one.saved_at,
                data={"backup": one.backup, "database": one.database},
            )


def _title(count: int, noun: str, name: str) -> str:
    what = f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
    return f"{what} saved from a deleted log {'is' if count == 1 else 'are'} not in {name}"
