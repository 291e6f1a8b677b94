"""Check for a guarded update of Hermes, or a rollback, that was interrupted."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check


@check(id="unfinished-updates", group="doctor", codes=["UPD-CUTOFF"])
def unfinished_updates(probes: Probes) -> Iterator[Finding]:
    """Was every guarded update looked at afterwards?"""
    update = probes.guarded_update()
    if update is None:
        raise Skip("no update was made with the guard")
    if not update.is_cut_off(probes.installation()):
        return
    back = update.stage == "going-back"
    yield Finding(
        code="UPD-CUTOFF",
        severity=Severity.ERROR,
        title=(
            "going back to the Hermes of before was cut off"
            if back
            else "an update of Hermes was cut off, and nobody looked at what became of it"
        ),
        subject=update.id,
        detail=(
            "Hermes and its data may be of two versions. `hermes-doctor rollback` goes on with it."
            if back
            else "`hermes-doctor hook run post-update` looks at everything and brings the gateway "
            "up; `hermes-doctor rollback` goes back to what was there before."
        ),
        evidence=(Evidence(f"backups/doctor/updates/{update.id}.json", f"stage: {update.stage}"),),
        since=update.began,
    )
