"""Check for a run of hermes-doctor that was interrupted or waits for the gateway to stop."""

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, text


@check(id="unfinished-runs", group="doctor", codes=["RUN-CUTOFF"])
def unfinished_runs(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Did every repair of hermes-doctor finish?"""
    for run in probes.unfinished_runs():
        if run.state == "unreadable":
            yield CouldNotLook(text("could not read the journal of run {run}", run=run.id))
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
