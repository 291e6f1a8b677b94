"""Check for a guarded update of Hermes, or a rollback, that was interrupted."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check


@check(id="unfinished-updates", group="doctor", codes=["UPD-CUTOFF"], needs="guarded update")
def unfinished_updates(probes: Probes) -> Iterator[Finding]:
    """Did every update of Hermes finish?"""
    update = probes.guarded_update()
    assert update is not None
    if not update.is_cut_off(probes.installation()):
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
