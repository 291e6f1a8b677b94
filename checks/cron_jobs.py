"""Find scheduled jobs that are due but do not run, or that cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import Evidence, Finding, Job, Probes, Severity, Skip, check, text

_LATE = timedelta(minutes=10)
_SETTLED = timedelta(minutes=5)
"""How long a gateway that has just started may take to catch up."""
_CLAIM = timedelta(hours=2)
"""How long a run of a one-time job may take."""
_SIGNS = (0, 18)
"""The first release whose ticker stores the times at which it looked for jobs."""
_CONTAINED = (0, 19)
"""The first release in which a job that makes Hermes fail does not stop other jobs."""
_CLAIMS_FROM_THE_FUTURE = ((0, 18, 1), (0, 18, 2))
_MOST = 6


@check(
    id="cron-jobs",
    group="cron",
    codes=["CRON-NO-GATEWAY", "CRON-JOB-FAILED", "CRON-SCRIPT-MISSING"],
)
def cron_jobs(probes: Probes) -> Iterator[Finding]:
    """Do the jobs run that are due, and can they?"""
    jobs = probes.jobs()
    if not jobs:
        raise Skip("there are no jobs, or their list cannot be read")
    yield from _scripts(probes, jobs)
    now = datetime.now(UTC)
    yield from _never(jobs, now)
    yield from _senseless(probes, jobs)
    sound = (job for job in jobs if not job.senseless)
    late = [job for job in sound if job.next_run and now - job.next_run > _LATE]
    if not late:
        return
    gateways = probes.gateways()
    if not gateways:
        if not _looked_for(probes, now) and probes.served_by() is None:
            yield _nobody(late)
    elif now - gateways[0].started_at > _SETTLED:
        yield from _passed_over(probes, late, now)


def _never(jobs: list[Job], now: datetime) -> Iterator[Finding]:
    """Report one-time jobs whose time had already passed when they were planned."""
    found = [job for job in jobs if job.missed and now - job.missed > _LATE]
    if found:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.INFO,
            title=text(
                "{count} never begun: the time had passed when it was planned", count=_count(found)
            ),
            subject="cron/jobs.json",
            detail="Give it another time, `hermes cron edit ID --schedule TIME`, or remove it.",
            evidence=tuple(
                Evidence(
                    f"job {job.name}", f"once, {job.missed.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
                )
                for job in found[:_MOST]
                if job.missed
            ),
        )


def _senseless(probes: Probes, jobs: list[Job]) -> Iterator[Finding]:
    """Report jobs whose schedule gives no time; in older releases a due one stops all jobs."""
    found = [job for job in jobs if job.senseless]
    installed = probes.installation()
    if found:
        stops = installed is not None and installed.release < _CONTAINED
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text("{count} never begun: Hermes cannot read the schedule", count=_count(found)),
            subject="cron/jobs.json",
            detail=(
                ("From the time when it is due on, no job at all runs. " if stops else "")
                + "Give it another one: `hermes cron edit ID --schedule SCHEDULE`."
            ),
            evidence=tuple(
                Evidence(
                    f"job {job.name}", f"a schedule of the kind {job.kind}, which tells no time"
                )
                for job in found[:_MOST]
            ),
        )


def _looked_for(probes: Probes, now: datetime) -> bool:
    """Whether somebody looks for jobs, with or without a gateway."""
    success = probes.ticker().last_success
    return success is not None and now - success < _LATE


def _nobody(late: list[Job]) -> Finding:
    first = min(job.next_run for job in late if job.next_run)
    return Finding(
        code="CRON-NO-GATEWAY",
        severity=Severity.WARNING,
        title=text("{count} due, and no gateway runs that would begin them", count=_count(late)),
        subject="cron/jobs.json",
        detail=(
            "Jobs are begun by a running gateway only. `hermes gateway install` makes it a "
            "service; `hermes gateway run` runs it in this terminal."
        ),
        evidence=_evidence(late),
        since=first,
    )


def _passed_over(probes: Probes, late: list[Job], now: datetime) -> Iterator[Finding]:
    """Report due jobs that the running gateway does not start."""
    installed = probes.installation()
    release = installed.release if installed else ()
    wedged = [
        job
        for job in late
        if job.kind == "once" and job.claimed and job.claimed > now + timedelta(minutes=1)
    ]
    if wedged and _CLAIMS_FROM_THE_FUTURE[0] <= release <= _CLAIMS_FROM_THE_FUTURE[1]:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text(
                "{count} never begun: a mark says that a run of it is under way",
                count=_count(wedged),
            ),
            subject="cron/jobs.json",
            detail=(
                "The mark is of the future, since the clock or the time zone was set back. This "
                "release waits for it; 0.19.0 does not."
            ),
            evidence=_evidence(wedged),
            fix="release-runs",
            data={"jobs": [job.id for job in wedged]},
        )
    names = {job.id for job in wedged}
    others = [job for job in late if job.id not in names and not _under_way(job, now)]
    if release and release < _SIGNS:
        others = _long_due(others, probes.gateways()[0].started_at, now)
        if others:
            yield _unseen(others)
    elif others and _looked_for(probes, now):
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text(
                "{count} due, and the running gateway does not begin them", count=_count(others)
            ),
            subject="cron",
            detail="It looks for jobs, and passes over these. agent.log says why.",
            evidence=_evidence(others),
            since=min(job.next_run for job in others if job.next_run),
        )


def _long_due(jobs: list[Job], began: datetime, now: datetime) -> list[Job]:
    """Return jobs that are overdue for longer than another job can block the gateway."""
    since = now - _CLAIM
    return [job for job in jobs if job.next_run and job.next_run < since and began < since]


def _unseen(late: list[Job]) -> Finding:
    return Finding(
        code="CRON-JOB-FAILED",
        severity=Severity.WARNING,
        title=text(
            "{count} due for hours, and the running gateway does not begin them", count=_count(late)
        ),
        subject="cron",
        detail=(
            "This release leaves no sign of whether it looks for jobs, and begins or plans anew "
            "whatever is due when it does. agent.log may say why; a restart begins to look again."
        ),
        evidence=_evidence(late),
        since=min(job.next_run for job in late if job.next_run),
    )


def _under_way(job: Job, now: datetime) -> bool:
    return job.kind == "once" and (
        job.ran or (job.claimed is not None and now - job.claimed < _CLAIM)
    )


def _scripts(probes: Probes, jobs: list[Job]) -> Iterator[Finding]:
    faults = [
        (job, fault) for job in jobs if job.script and (fault := probes.script_fault(job.script))
    ]
    if faults:
        yield Finding(
            code="CRON-SCRIPT-MISSING",
            severity=Severity.WARNING,
            title=text(
                "{count} without the script that it runs", count=_count([job for job, _ in faults])
            ),
            subject="cron/jobs.json",
            detail=(
                "Scripts of jobs lie in the folder `scripts` of the home. Put it there, or name "
                "another one: `hermes cron edit ID --script NAME`."
            ),
            evidence=tuple(Evidence(f"job {job.name}", fault) for job, fault in faults[:_MOST]),
        )


def _count(jobs: list[Job]) -> str:
    return "1 job is" if len(jobs) == 1 else f"{len(jobs)} jobs are"


def _evidence(late: list[Job]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"job {job.name}", f"due {job.next_run.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
        for job in late[:_MOST]
        if job.next_run
    )
