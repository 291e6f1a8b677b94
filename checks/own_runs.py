"""Check for repairs and updates by this tool that were interrupted, and for rows they saved."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.tools import clock, count


@check(id="unfinished-runs", group="doctor", codes=["RUN-CUTOFF"])
def unfinished_runs(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Did every repair of hermes-doctor finish?"""
    for run in probes.records.unfinished_runs():
        if run.state == "unreadable":
            yield CouldNotLook("could not read the journal of run {run}", run=run.id)
            continue
        if run.running:
            continue
        yield Finding(
            code="RUN-CUTOFF",
            severity=Severity.ERROR,
            title=(
                "a repair asked the gateway to stop and did not restart it"
                if run.waits_for_gateway
                else "a repair by hermes-doctor was interrupted"
            ),
            subject=run.id,
            detail=(
                "When the gateway has finished its answer, it stops and stays stopped."
                if run.waits_for_gateway
                else "Files may be changed only in part. The next command that changes this home "
                "finishes the repair or rolls it back, and says which."
            ),
            evidence=(Evidence(f"backups/doctor/runs/{run.id}", f"last state: {run.state}"),),
            since=run.started_at,
            next=(
                "Run hermes-doctor with `fix --apply` to start the gateway again."
                if run.waits_for_gateway
                else "Run hermes-doctor with `fix --apply` to finish it, or with `undo` to undo it."
            ),
        )


@check(id="unfinished-updates", group="doctor", codes=["UPD-CUTOFF"], needs="guarded update")
def unfinished_updates(probes: Probes) -> Iterator[Finding]:
    """Did every update of Hermes finish?"""
    update = probes.records.guarded_update()
    assert update is not None
    if not update.is_cut_off(probes.hermes.installation()):
        return
    back = update.stage == "going-back"
    yield Finding(
        code="UPD-CUTOFF",
        severity=Severity.ERROR,
        title=(
            "the rollback to the previous Hermes was interrupted"
            if back
            else "an update of Hermes was interrupted and not verified"
        ),
        subject=update.id,
        detail=(
            "Hermes and its data may have different versions."
            if back
            else "Hermes may be updated only in part, and its gateway may be stopped."
        ),
        next=(
            "Run `hermes-doctor rollback` to finish it."
            if back
            else "Run `hermes-doctor hook run post-update` to finish it, or `hermes-doctor "
            "rollback` to go back."
        ),
        evidence=(Evidence(f"backups/doctor/updates/{update.id}.json", f"stage: {update.stage}"),),
        since=update.began,
    )


@check(id="saved-rows", group="databases", codes=["DB-SAVED-ROWS"], limit=10, needs="saved log")
def saved_rows(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does the database have all rows saved in a backup?"""
    for one in probes.stores.unrestored():
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
