"""Check what all scheduled jobs need: a ticker, a time zone and somewhere to deliver."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, snapshot, text
from hermes_doctor.api.gateway import Gateway
from hermes_doctor.api.stores import CronJob
from hermes_doctor.api.tools import ago, count, listed

if TYPE_CHECKING:
    from hermes_doctor.api.stores import UndeliverableTarget


_SILENT = timedelta(seconds=300)
"""The ticker looks once a minute; Hermes itself considers it late after 200 seconds."""
_SIGNS = (0, 18)
"""The first release whose ticker stores the times at which it looked, first at its start."""
_BUILT_IN = ("", "builtin", "in-process", "inprocess")
_BEAT = "cron/ticker_heartbeat"


@check(id="cron-ticker", group="cron", codes=["CRON-TICKER-DEAD"], needs="gateway")
def cron_ticker(probes: Probes) -> Iterator[Finding]:
    """Does the gateway look for scheduled jobs that are due?"""
    gateways = probes.gateway.running()
    block = probes.settings.effective().config.get("cron")
    provider = block.get("provider") if isinstance(block, dict) else None
    if str(provider or "").strip() not in _BUILT_IN:
        raise Skip("another provider starts the scheduled jobs")
    ticker, began = probes.stores.ticker(), gateways[0].started_at
    # A sign from before a jump of the clock is younger than it looks.
    now = datetime.now(UTC) - gateways[0].clock_step
    if _never_began(probes, gateways[0], now):
        yield _never(probes, began)
        return
    if ticker.last_tick is None or now - began < _SILENT:
        raise Skip("the gateway has just started, or this release does not record it")
    dead = now - ticker.last_tick > _SILENT
    last = ticker.last_tick if dead else ticker.last_success
    if not dead and (last is None or now - last < _SILENT):
        return
    assert last is not None
    name = _BEAT if dead else "cron/ticker_last_success"
    yield Finding(
        code="CRON-TICKER-DEAD",
        severity=_severity(probes),
        title=(
            "scheduled jobs do not run: the job scheduler has stopped"
            if dead
            else "scheduled jobs do not run: the job scheduler fails"
        ),
        subject="cron",
        detail=(
            "The rest of the gateway still runs. A restart of the gateway starts the scheduler."
            if dead
            else "Each search for due jobs fails. A restart helps only after the cause is removed."
        ),
        next="" if dead else "Look into errors.log for `Cron tick error`.",
        evidence=(Evidence(name, text("last written {time}", time=ago(last))),),
        since=max(last, began),
        fix="restart-gateway" if dead else None,
        data={"pid": gateways[0].pid},
    )


def _severity(probes: Probes) -> Severity:
    return Severity.ERROR if probes.stores.jobs() else Severity.WARNING


def _never_began(probes: Probes, gateway: Gateway, now: datetime) -> bool:
    """Whether a gateway that has run for some time never wrote the ticker's first heartbeat.

    A gateway that was updated but not restarted may be of a release without heartbeats.
    """
    installed = probes.hermes.installation()
    if (
        now - gateway.started_at < 2 * _SILENT
        or installed is None
        or not installed.running
        or installed.release < _SIGNS
        or snapshot(probes.home / _BEAT).kind != "absent"
        or probes.gateway.runtime().state not in ("running", "degraded")
    ):
        return False
    change = probes.hermes.code_change()
    return change is None or change.at <= gateway.started_at


def _never(probes: Probes, began: datetime) -> Finding:
    return Finding(
        code="CRON-TICKER-DEAD",
        severity=_severity(probes),
        title="scheduled jobs do not run: the job scheduler did not start",
        subject="cron",
        detail=(
            "Probable causes: a damaged cron/executions.db (Hermes 0.19), or a folder cron/ that "
            "the gateway cannot write to."
        ),
        next="Look into the gateway's error output for `Exception in thread cron-scheduler`.",
        evidence=(
            Evidence(
                _BEAT, text("missing; the gateway has been running since {time}", time=ago(began))
            ),
        ),
        since=began,
    )


@check(id="cron-zone", group="cron", codes=["CRON-TZ"], by_release=True, needs="jobs")
def cron_zone(probes: Probes) -> Iterator[Finding]:
    """Do scheduled jobs use the right time zone?"""
    jobs = [job for job in probes.stores.jobs() if job.kind == "cron"]
    if not jobs:
        raise Skip("no scheduled job has a time of day")
    settings = probes.settings.effective()
    where, name = "HERMES_TIMEZONE", settings.value("HERMES_TIMEZONE")
    if not name:
        written = settings.config.get("timezone")
        where, name = "config.yaml", written.strip() if isinstance(written, str) else ""
    if name and not probes.stores.is_zone_known(name):
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
    elif not settings.unreadable and probes.stores.is_clock_in_utc():
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


def _moved(jobs: list[CronJob], name: str, where: str) -> Iterator[Finding]:
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


_JOBS = "cron/jobs.json"
_MOST = 5


@check(id="cron-targets", group="cron", codes=["CRON-DELIVERY"], needs="jobs")
def cron_targets(probes: Probes) -> Iterator[Finding]:
    """Can the results of scheduled jobs be delivered?"""
    jobs = [job for job in probes.stores.jobs() if set(job.deliver) != {"local"}]
    if not jobs:
        raise Skip("no scheduled job delivers results, or their list cannot be read")
    lost: dict[UndeliverableTarget, list[CronJob]] = {}
    for job, target in probes.stores.undeliverable() if probes.newer() is None else ():
        lost.setdefault(target, []).append(job)
    for target, hit in lost.items():
        yield _nowhere(probes, target, hit)
    known = {job.id for hit in lost.values() for job in hit}
    failed = [job for job in jobs if job.undelivered and job.id not in known]
    if failed:
        yield Finding(
            code="CRON-DELIVERY",
            severity=Severity.WARNING,
            title=text("the last results of {jobs} were not delivered", jobs=_count(failed)),
            subject=_JOBS,
            detail="The results are stored in cron/output.",
            next="Run `hermes cron list` to see the reason.",
            evidence=tuple(
                Evidence(f"job {job.name}", "last_delivery_error is set") for job in failed[:_MOST]
            ),
        )


def _nowhere(probes: Probes, target: UndeliverableTarget, hit: list[CronJob]) -> Finding:
    chat = _only_user(probes, target.what) if target.variable else None
    return Finding(
        code="CRON-DELIVERY",
        severity=Severity.WARNING,
        title=(
            text("results of {jobs} do not reach the chat of origin", jobs=_count(hit))
            if target.what == "origin"
            else text("results of {jobs} do not reach {place}", jobs=_count(hit), place=target.what)
        ),
        subject=target.what,
        detail="People do not see them; Hermes only stores them in cron/output.",
        next="" if chat else _next(target),
        evidence=(
            Evidence(
                _JOBS,
                text(
                    "deliver: {place} (jobs: {jobs})",
                    place=target.what,
                    jobs=listed([job.name for job in hit], _MOST),
                ),
            ),
            Evidence(target.what, target.why),
        ),
        fix="set-home-channel" if chat else None,
        data={"variable": target.variable, "chat": chat},
    )


def _only_user(probes: Probes, platform: str) -> str | None:
    """Return the id of Telegram's only allowed user, which is also the id of their chat."""
    if platform != "telegram":
        return None
    platforms = probes.settings.resolved().platforms
    users = next((access.users for access in platforms if access.name == platform), None)
    listed = [one.strip() for one in ((users and users.value) or "").split(",") if one.strip()]
    return listed[0] if len(listed) == 1 and listed[0].isdigit() else None


def _next(target: UndeliverableTarget) -> str:
    if target.variable:
        return text(
            "Send /sethome in the chat that should get them, or set {variable} in .env and restart "
            "the gateway.",
            variable=target.variable,
        )
    if target.why == "this platform is not set up":
        return "Choose another chat with `hermes cron edit ID --deliver PLATFORM:CHAT`."
    return "Send /sethome in the chat that should get them."


def _count(jobs: list[CronJob]) -> str:
    return count(len(jobs), "scheduled job")
