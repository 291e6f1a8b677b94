"""Find scheduled jobs whose results cannot be delivered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Evidence,
    Finding,
    Job,
    Probes,
    Severity,
    Skip,
    check,
    count,
    listed,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Target

_JOBS = "cron/jobs.json"
_MOST = 5


@check(id="cron-targets", group="cron", codes=["CRON-DELIVERY"], needs="jobs")
def cron_targets(probes: Probes) -> Iterator[Finding]:
    """Can the results of scheduled jobs be delivered?"""
    jobs = [job for job in probes.jobs() if set(job.deliver) != {"local"}]
    if not jobs:
        raise Skip("no scheduled job delivers results, or their list cannot be read")
    lost: dict[Target, list[Job]] = {}
    for job, target in probes.undeliverable() if probes.newer() is None else ():
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


def _nowhere(probes: Probes, target: Target, hit: list[Job]) -> Finding:
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
    found = probes.resolved().platforms
    users = next((one.users for one in found if one.name == platform), None)
    listed = [one.strip() for one in ((users and users.value) or "").split(",") if one.strip()]
    return listed[0] if len(listed) == 1 and listed[0].isdigit() else None


def _next(target: Target) -> str:
    if target.variable:
        return text(
            "Send /sethome in the chat that should get them, or set {variable} in .env and restart "
            "the gateway.",
            variable=target.variable,
        )
    if target.why == "this platform is not set up":
        return "Choose another chat with `hermes cron edit ID --deliver PLATFORM:CHAT`."
    return "Send /sethome in the chat that should get them."


def _count(jobs: list[Job]) -> str:
    return count(len(jobs), "scheduled job")
