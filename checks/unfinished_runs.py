"""Check for a run of hermes-doctor that was interrupted or waits for the gateway to stop."""

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, text


@check(id="unfinished-runs", group="doctor", codes=["RUN-CUTOFF"])
def unfinished_runs(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Did every run of hermes-doctor come to its end?"""
    for run in probes.unfinished_runs():
        if run.state == "unreadable":
            yield CouldNotLook(text("the journal of run {run_id} cannot be read", run_id=run.id))
            continue
        if run.running:
            continue
        yield Finding(
            code="RUN-CUTOFF",
            severity=Severity.ERROR,
            title=(
                "a run of hermes-doctor waits for the gateway to end"
                if run.waits_for_gateway
                else "a run of hermes-doctor was cut off"
            ),
            subject=run.id,
            detail=(
                "It asked the gateway to end, which was at a long answer. The next `fix --apply`, "
                "`undo` or `backup restore` on this home starts the gateway again."
                if run.waits_for_gateway
                else "It was killed, or the power failed. The next `fix --apply`, `undo` or "
                "`backup restore` on this home ends it: it is finished or taken back, and says "
                "which."
            ),
            evidence=(Evidence(f"backups/doctor/runs/{run.id}", f"it stopped while {run.state}"),),
            since=run.started_at,
        )
