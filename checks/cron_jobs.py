"""Find scheduled jobs that are due but do not run, or that cannot run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import (
    Evidence,
    Finding,
    Job,
    Probes,
    Severity,
    ago,
    check,
    clock,
    count,
    text,
)

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
    needs="jobs",
)
def cron_jobs(probes: Probes) -> Iterator[Finding]:
    """Do scheduled jobs run when they are due?"""
    jobs = probes.jobs()
    yield from _scripts(probes, jobs)
    now = datetime.now(UTC)
    yield from _never(jobs, now)
    yield from _senseless(probes, jobs)
    yield from _failed([job for job in jobs if job.failed and not job.unplanned])
    yield from _skipped([job for job in jobs if job.skipped])
    yield from _not_started(jobs)
    yield from _unplanned([job for job in jobs if job.unplanned and not job.senseless])
    sound = (job for job in jobs if not job.senseless)
    late = [job for job in sound if job.next_run and now - job.next_run > _LATE]
    if not late:
        return
    gateways = probes.gateways()
    if not gateways:
        if not _looked_for(probes, now) and probes.served_by() is None:
            yield _nobody(late)
    elif now - gateways[0].running_since > _SETTLED:
        yield from _passed_over(probes, late, now)


def _never(jobs: list[Job], now: datetime) -> Iterator[Finding]:
    """Report one-time jobs whose time had already passed when they were planned."""
    found = [job for job in jobs if job.missed and now - job.missed > _LATE]
    if found:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.INFO,
            title=text("{jobs} cannot run: the time is already over", jobs=_count(found)),
            subject="cron/jobs.json",
            detail="The time was over before the job was planned, so Hermes never starts it.",
            next="Set a new time with `hermes cron edit ID --schedule TIME`, or delete the job.",
            evidence=tuple(
                Evidence(f"job {job.name}", text("once, at {time}", time=clock(job.missed)))
                for job in found[:_MOST]
                if job.missed
            ),
        )


def _failed(found: list[Job]) -> Iterator[Finding]:
    """Report jobs whose last run failed, as Hermes recorded it."""
    if found:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text("the last run of {jobs} failed", jobs=_count(found)),
            subject="cron/jobs.json",
            detail="Users miss the result until a run succeeds.",
            next="Correct what the error names, then start the job with `hermes cron run ID`.",
            evidence=_last_runs(found),
            since=_first(job.last_run for job in found),
        )


def _skipped(found: list[Job]) -> Iterator[Finding]:
    """Report jobs whose last run Hermes skipped before it called the model."""
    if found:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text("Hermes skipped the last run of {jobs}", jobs=_count(found)),
            subject="cron/jobs.json",
            detail="Users miss the result. Hermes skips each run until the reason is gone.",
            next=(
                "Correct what the reason names. If the model has changed, name one in the job: "
                "`hermes cron edit ID --provider NAME --model NAME`."
            ),
            evidence=_last_runs(found),
            since=_first(job.last_run for job in found),
        )


def _not_started(jobs: list[Job]) -> Iterator[Finding]:
    """Report jobs whose last start failed, so that there was no run."""
    found = [(job, missed) for job in jobs if (missed := job.not_started)]
    if found:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text("{jobs} did not run at the last time", jobs=_count([j for j, _ in found])),
            subject="cron/jobs.json",
            detail="Users miss the result. Hermes could not start the run and recorded why.",
            next=(
                "If the gateway cannot be reached, start it with its API server (API_SERVER_KEY in "
                ".env). Then run `hermes cron run ID`."
            ),
            evidence=tuple(
                Evidence(
                    f"job {job.name}",
                    text(
                        "{time}: {why}; last run {last}",
                        time=clock(missed.at),
                        why=missed.why,
                        last=ago(job.last_run),
                    )
                    if job.last_run
                    else text("{time}: {why}; no run yet", time=clock(missed.at), why=missed.why),
                )
                for job, missed in found[:_MOST]
            ),
            since=min(missed.at for _, missed in found),
        )


def _unplanned(found: list[Job]) -> Iterator[Finding]:
    """Report repeating jobs that have no next time, because Hermes could not calculate it."""
    if found:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text("{jobs} will not run again: no next time", jobs=_count(found)),
            subject="cron/jobs.json",
            detail=(
                "Hermes could not calculate the next time. It usually lacks the Python package "
                "croniter."
            ),
            next="Install croniter into Hermes' environment, then restart the gateway.",
            evidence=tuple(
                Evidence(f"job {job.name}", job.error or "state: error, no next run")
                for job in found[:_MOST]
            ),
            since=_first(job.last_run for job in found),
        )


def _last_runs(found: list[Job]) -> tuple[Evidence, ...]:
    """Quote the last run of each job with its time, and how many failed in a row."""
    return tuple(Evidence(f"job {job.name}", _last_run(job)) for job in found[:_MOST])


def _last_run(job: Job) -> str:
    if job.last_run is None:
        return job.error
    if job.streak < 2:
        return text("{time}: {error}", time=clock(job.last_run), error=job.error)
    return text(
        "{time}: {error}; {count} runs in a row",
        time=clock(job.last_run),
        error=job.error,
        count=job.streak,
    )


def _first(times: Iterable[datetime | None]) -> datetime | None:
    return min((time for time in times if time), default=None)


def _senseless(probes: Probes, jobs: list[Job]) -> Iterator[Finding]:
    """Report jobs whose schedule has no time; in older releases a due one stops all jobs."""
    found = [job for job in jobs if job.senseless]
    installed = probes.installation()
    if found:
        stops = installed is not None and installed.release < _CONTAINED
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=Severity.WARNING,
            title=text("{jobs} cannot run: Hermes cannot read the schedule", jobs=_count(found)),
            subject="cron/jobs.json",
            detail=(
                "As soon as such a job is due, this release runs no scheduled job any more."
                if stops
                else "Hermes skips such a job; other jobs run."
            ),
            next="Set a new schedule with `hermes cron edit ID --schedule SCHEDULE`.",
            evidence=tuple(
                Evidence(f"job {job.name}", text('schedule "{kind}" without a time', kind=job.kind))
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
        title=text("{jobs} overdue: no gateway is running", jobs=_count(late)),
        subject="cron/jobs.json",
        detail="Only a running gateway starts scheduled jobs.",
        next="Start the gateway; `hermes gateway install` makes it a service.",
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
            title=text("{jobs} blocked by a start time in the future", jobs=_count(wedged)),
            subject="cron/jobs.json",
            detail=(
                "Hermes believes that the job is running, because the clock or the time zone was "
                "set back. Hermes 0.19.0 corrects this itself."
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
            title=text("{jobs} overdue: the gateway does not start them", jobs=_count(others))
            if len(others) > 1
            else text("{jobs} overdue: the gateway does not start it", jobs=_count(others)),
            subject="cron",
            detail="The gateway runs and looks for due jobs, but skips these.",
            next="Look into agent.log for the reason.",
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
        title=text("{jobs} overdue for more than 2 hours", jobs=_count(late)),
        subject="cron",
        detail=(
            "The running gateway does not start them. This release does not record whether it "
            "still looks for due jobs."
        ),
        next="Restart the gateway; if jobs still do not run, look into agent.log.",
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
            title=text("{jobs} without a usable script", jobs=_count([job for job, _ in faults])),
            subject="cron/jobs.json",
            detail="Such a job fails at each run. Hermes runs only files in scripts/ of this home.",
            next=(
                "Put the script there, or name another one with `hermes cron edit ID --script "
                "NAME`."
            ),
            evidence=tuple(Evidence(f"job {job.name}", fault) for job, fault in faults[:_MOST]),
        )


def _count(jobs: list[Job]) -> str:
    return count(len(jobs), "scheduled job")


def _evidence(late: list[Job]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"job {job.name}", text("due {time}", time=ago(job.next_run)))
        for job in late[:_MOST]
        if job.next_run
    )
