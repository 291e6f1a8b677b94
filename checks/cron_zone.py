"""Find scheduled jobs that may run in another time zone than their owner expects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hermes_doctor.api import Evidence, Finding, Job, Probes, Severity, Skip, check, count, text


@check(id="cron-zone", group="cron", codes=["CRON-TZ"], by_release=True, needs="jobs")
def cron_zone(probes: Probes) -> Iterator[Finding]:
    """Do scheduled jobs use the right time zone?"""
    jobs = [job for job in probes.jobs() if job.kind == "cron"]
    if not jobs:
        raise Skip("no scheduled job has a time of day")
    settings = probes.settings()
    where, name = "HERMES_TIMEZONE", settings.value("HERMES_TIMEZONE")
    if not name:
        written = settings.config.get("timezone")
        where, name = "config.yaml", written.strip() if isinstance(written, str) else ""
    if name and not probes.zone_known(name):
        yield Finding(
            code="CRON-TZ",
            severity=Severity.WARNING,
            title=text("unknown time zone in {place}", place=where),
            subject="timezone",
            detail="Scheduled jobs run by the clock of this machine instead.",
            next="Set a zone such as Europe/Berlin or Asia/Shanghai, then restart the gateway.",
            evidence=(Evidence(where, "the time zone is unknown"),),
        )
    elif name:
        yield from _moved(jobs, name, where)
    elif not settings.unreadable and probes.clock_in_utc():
        yield Finding(
            code="CRON-TZ",
            severity=Severity.INFO,
            title="scheduled jobs run in UTC: no time zone is set",
            subject="timezone",
            detail="A job that is planned for 08:00 runs at 08:00 UTC.",
            next=(
                "If you want another zone, run `hermes config set timezone AREA/CITY` and restart "
                "the gateway."
            ),
            evidence=(
                Evidence(
                    "config.yaml",
                    text(
                        "no timezone; {jobs} with a time of day",
                        jobs=count(len(jobs), "scheduled job"),
                    ),
                ),
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
            title=text("{jobs} planned in an old time zone", jobs=count(len(odd), "scheduled job")),
            subject="cron/jobs.json",
            detail=(
                "The next run is at the wrong hour, because a gateway keeps the time zone from "
                "its start."
            ),
            next="Restart the gateway; each of these jobs still runs once at the old hour.",
            evidence=(
                Evidence(where, f"timezone: {name}"),
                *(
                    Evidence(f"job {job.name}", f"next run at {job.next_run:%H:%M %z}")
                    for job in odd[:5]
                ),
            ),
        )


def _differs(planned: datetime, zone: object) -> bool:
    return planned.utcoffset() != planned.astimezone(zone).utcoffset()  # type: ignore[arg-type]
