"""Find scheduled jobs whose results cannot be delivered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Job, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Target

_JOBS = "cron/jobs.json"
_MOST = 5


@check(id="cron-targets", group="cron", codes=["CRON-DELIVERY"], by_release=True)
def cron_targets(probes: Probes) -> Iterator[Finding]:
    """Does what every job finds out reach somebody?"""
    jobs = [job for job in probes.jobs() if set(job.deliver) != {"local"}]
    if not jobs:
        raise Skip("no job delivers anything, or their list cannot be read")
    lost: dict[Target, list[Job]] = {}
    for job, target in probes.undeliverable():
        lost.setdefault(target, []).append(job)
    for target, hit in lost.items():
        yield _nowhere(probes, target, hit)
    known = {job.id for hit in lost.values() for job in hit}
    failed = [job for job in jobs if job.undelivered and job.id not in known]
    if failed:
        yield Finding(
            code="CRON-DELIVERY",
            severity=Severity.WARNING,
            title=text("the last results of {count} could not be delivered", count=_count(failed)),
            subject=_JOBS,
            detail="`hermes cron list` says why; the results themselves are in cron/output.",
            evidence=tuple(
                Evidence(f"job {job.name}", "last_delivery_error is set") for job in failed[:_MOST]
            ),
        )


def _nowhere(probes: Probes, target: Target, hit: list[Job]) -> Finding:
    chat = _only_user(probes, target.what) if target.variable else None
    where = {"origin": "where they were made, which is not known"}.get(target.what, target.what)
    return Finding(
        code="CRON-DELIVERY",
        severity=Severity.WARNING,
        title=text(
            "the results of {count} go to {where}, and nobody gets them",
            count=_count(hit),
            where=where,
        ),
        subject=target.what,
        detail=(
            "They are only kept in cron/output. Write `/sethome` in the chat that is to get them"
            + (
                text(
                    ", or set {variable} in .env and restart the gateway", variable=target.variable
                )
                if target.variable
                else ""
            )
            + "; or name another one: `hermes cron edit ID --deliver PLATFORM:CHAT`."
        ),
        evidence=(
            Evidence(_JOBS, f"deliver: {target.what}, of {', '.join(_named(hit))}"),
            Evidence(target.what, target.why),
        ),
        fix="set-home-channel" if chat else None,
        data={"variable": target.variable, "chat": chat},
    )


def _only_user(probes: Probes, platform: str) -> str | None:
    """Return the id of Telegram's only allowed user, which is also the id of their chat."""
    if platform != "telegram":
        return None
    found = probes.resolved().platforms
    users = next((one.users for one in found if one.name == platform), None)
    listed = [one.strip() for one in ((users and users.value) or "").split(",") if one.strip()]
    return listed[0] if len(listed) == 1 and listed[0].isdigit() else None


def _named(jobs: list[Job]) -> list[str]:
    more = [f"{len(jobs) - _MOST} more"] if len(jobs) > _MOST else []
    return [job.name for job in jobs[:_MOST]] + more


def _count(jobs: list[Job]) -> str:
    return "a job" if len(jobs) == 1 else f"{len(jobs)} jobs"
