"""Jobs whose results nobody would get."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check

_MOST = 6


@check(id="cron-targets", group="cron", codes=["CRON-DELIVERY"])
def cron_targets(probes: Probes) -> Iterator[Finding]:
    """Does what every job finds out reach somebody?"""
    jobs = [job for job in probes.jobs() if set(job.deliver) != {"local"}]
    if not jobs:
        raise Skip("no job delivers anything")
    lost = probes.undeliverable()
    if lost:
        yield Finding(
            code="CRON-DELIVERY",
            severity=Severity.WARNING,
            title=f"the results of {_count(len(lost))} go nowhere",
            subject="cron/jobs.json",
            detail=(
                "They run, and what comes of it is only kept. `/sethome` in the chat that is to "
                "get it, or name one: `hermes cron edit ID --deliver PLATFORM:CHAT`."
            ),
            evidence=tuple(
                Evidence(f"job {job.name}", f"{target.what}: {target.why}")
                for job, target in lost[:_MOST]
            ),
        )
    known = {job.id for job, _ in lost}
    failed = [job for job in jobs if job.undelivered and job.id not in known]
    if failed:
        yield Finding(
            code="CRON-DELIVERY",
            severity=Severity.WARNING,
            title=f"the last results of {_count(len(failed))} could not be delivered",
            subject="cron",
            detail="`hermes cron list` says why; the results themselves are in cron/output.",
            evidence=tuple(
                Evidence(f"job {job.name}", "last_delivery_error is set") for job in failed[:_MOST]
            ),
        )


def _count(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
