"""Find scheduled jobs that are due but do not run, or that cannot run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.stores import CronJob
from hermes_doctor.api.tools import NamedTuple, ago, clock, count

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
    jobs = probes.stores.jobs()
    yield from _scripts(probes, jobs)
    now = datetime.now(UTC)
    yield from _senseless(probes, jobs)
    for trouble in _TROUBLES:
        yield from _recorded(jobs, trouble)
    sound = (job for job in jobs if not job.senseless)
    late = [job for job in sound if job.next_run and now - job.next_run > _LATE]
    if not late:
        return
    gateways = probes.gateway.running()
    if not gateways:
        if not _looked_for(probes, now) and probes.gateway.served_by() is None:
            yield _nobody(late)
    elif now - gateways[0].running_since > _SETTLED:
        yield from _passed_over(probes, late, now)


class _Trouble(NamedTuple):
    """One way in which jobs do not run; the title has `{jobs}` for how many."""

    has: Callable[[CronJob], object]
    title: str
    detail: str
    next: str
    quote: Callable[[CronJob], str]
    since: Callable[[CronJob], datetime | None]
    severity: Severity = Severity.WARNING


_TROUBLES = (
    _Trouble(
        lambda job: job.missed and datetime.now(UTC) - job.missed > _LATE,
        "{jobs} cannot run: the time is already over",
        "The time was over before the job was planned, so Hermes never starts it.",
        "Set a new time with `hermes cron edit ID --schedule TIME`, or delete the job.",
        lambda job: text("once, at {time}", time=clock(job.missed)) if job.missed else "",
        lambda job: None,
        Severity.INFO,
    ),
    _Trouble(
        lambda job: job.failed and not job.unplanned,
        "the last run of {jobs} failed",
        "Users miss the result until a run succeeds.",
        "Correct what the error names, then start the job with `hermes cron run ID`.",
        lambda job: _last_run(job),
        lambda job: job.last_run,
    ),
    _Trouble(
        lambda job: job.skipped,
        "Hermes skipped the last run of {jobs}",
        "Users miss the result. Hermes skips each run until the reason is gone.",
        "Correct what the reason names. If the model has changed, name one in the job: "
        "`hermes cron edit ID --provider NAME --model NAME`.",
        lambda job: _last_run(job),
        lambda job: job.last_run,
    ),
    _Trouble(
        lambda job: job.not_started,
        "{jobs} did not run at the last time",
        "Users miss the result. Hermes could not start the run and recorded why.",
        "If the gateway cannot be reached, start it with its API server (API_SERVER_KEY in "
        ".env). Then run `hermes cron run ID`.",
        lambda job: _failed_start(job),
        lambda job: job.not_started and job.not_started.at,
    ),
    _Trouble(
        lambda job: job.unplanned and not job.senseless,
        "{jobs} will not run again: no next time",
        "Hermes could not calculate the next time. It usually lacks the Python package croniter.",
        "Install croniter into Hermes' environment, then restart the gateway.",
        lambda job: job.error or "state: error, no next run",
        lambda job: job.last_run,
    ),
)
"""What Hermes recorded about jobs that do not run, in the order of the findings."""


def _recorded(jobs: list[CronJob], trouble: _Trouble) -> Iterator[Finding]:
    """Report the jobs that have one kind of trouble."""
    found = [job for job in jobs if trouble.has(job)]
    if found:
        yield Finding(
            code="CRON-JOB-FAILED",
            severity=trouble.severity,
            title=text(trouble.title, jobs=_count(found)),
            subject="cron/jobs.json",
            detail=trouble.detail,
            next=trouble.next,
            evidence=tuple(
                Evidence(f"job {job.name}", trouble.quote(job)) for job in found[:_MOST]
            ),
            since=_first(trouble.since(job) for job in found),
        )


def _failed_start(job: CronJob) -> str:
    """Quote why the last start failed, and when the job last ran."""
    if not job.not_started:
        return ""
    missed, why = clock(job.not_started.at), job.not_started.why
    if not job.last_run:
        return text("{time}: {why}; no run yet", time=missed, why=why)
    return text("{time}: {why}; last run {last}", time=missed, why=why, last=ago(job.last_run))


def _last_run(job: CronJob) -> str:
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


def _senseless(probes: Probes, jobs: list[CronJob]) -> Iterator[Finding]:
    """Report jobs whose schedule has no time; in older releases a due one stops all jobs."""
    found = [job for job in jobs if job.senseless]
    installed = probes.hermes.installation()
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
    success = probes.stores.ticker().last_success
    return success is not None and now - success < _LATE


def _nobody(late: list[CronJob]) -> Finding:
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


def _passed_over(probes: Probes, late: list[CronJob], now: datetime) -> Iterator[Finding]:
    """Report due jobs that the running gateway does not start."""
    installed = probes.hermes.installation()
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
        others = _long_due(others, probes.gateway.running()[0].started_at, now)
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


def _long_due(jobs: list[CronJob], began: datetime, now: datetime) -> list[CronJob]:
    """Return jobs that are overdue for longer than another job can block the gateway."""
    since = now - _CLAIM
    return [job for job in jobs if job.next_run and job.next_run < since and began < since]


def _unseen(late: list[CronJob]) -> Finding:
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


def _under_way(job: CronJob, now: datetime) -> bool:
    return job.kind == "once" and (
        job.ran or (job.claimed is not None and now - job.claimed < _CLAIM)
    )


def _scripts(probes: Probes, jobs: list[CronJob]) -> Iterator[Finding]:
    faults = [
        (job, fault)
        for job in jobs
        if job.script and (fault := probes.stores.script_fault(job.script))
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


def _count(jobs: list[CronJob]) -> str:
    return count(len(jobs), "scheduled job")


def _evidence(late: list[CronJob]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"job {job.name}", text("due {time}", time=ago(job.next_run)))
        for job in late[:_MOST]
        if job.next_run
    )
