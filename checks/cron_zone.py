"""Find scheduled jobs that may run in another time zone than their owner expects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hermes_doctor.api import Evidence, Finding, Job, Probes, Severity, Skip, check, text


@check(id="cron-zone", group="cron", codes=["CRON-TZ"], by_release=True)
def cron_zone(probes: Probes) -> Iterator[Finding]:
    """Do jobs run at the hour that their owner means?"""
    jobs = [job for job in probes.jobs() if job.kind == "cron"]
    if not jobs:
        raise Skip("no job has a time of day")
    settings = probes.settings()
    where, name = "HERMES_TIMEZONE", settings.value("HERMES_TIMEZONE")
    if not name:
        written = settings.config.get("timezone")
        where, name = "config.yaml", written.strip() if isinstance(written, str) else ""
    if name and not probes.zone_known(name):
        yield Finding(
            code="CRON-TZ",
            severity=Severity.WARNING,
            title="the time zone that is set does not exist, so jobs go by the machine's clock",
            subject="timezone",
            detail="Name one as `Europe/Berlin` or `Asia/Shanghai`, and restart the gateway.",
            evidence=(Evidence(where, "names a time zone that is not known"),),
        )
    elif name:
        yield from _moved(jobs, name, where)
    elif not settings.unreadable and probes.clock_in_utc():
        yield Finding(
            code="CRON-TZ",
            severity=Severity.INFO,
            title="no time zone is set, so the times of jobs are in UTC",
            subject="timezone",
            detail="If that is not meant: `hermes config set timezone AREA/CITY`, then restart.",
            evidence=(
                Evidence("config.yaml", f"no timezone; {len(jobs)} jobs with a time of day"),
            ),
        )


def _moved(jobs: list[Job], name: str, where: str) -> Iterator[Finding]:
    """Report jobs planned in another zone, because a gateway keeps the zone it started with."""
    try:
        from zoneinfo import ZoneInfo

        zone = ZoneInfo(name)
    except Exception:  # noqa: BLE001 (a zone that only Hermes' own tables know)
        return
    odd = [job for job in jobs if job.offset and job.next_run and _differs(job.next_run, zone)]
    if odd:
        yield Finding(
            code="CRON-TZ",
            severity=Severity.WARNING,
            title=text(
                "{number} jobs are planned in another time zone than the one that is set",
                number=len(odd),
            ),
            subject="cron/jobs.json",
            detail=(
                "A gateway keeps the time zone that it started with: restart it. Jobs that were "
                "planned before run once more by the old one."
            ),
            evidence=(
                Evidence(where, f"says {name}"),
                *(Evidence(f"job {job.name}", f"next: {job.next_run:%H:%M %z}") for job in odd[:5]),
            ),
        )


def _differs(planned: datetime, zone: object) -> bool:
    return planned.utcoffset() != planned.astimezone(zone).utcoffset()  # type: ignore[arg-type]
