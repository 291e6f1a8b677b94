"""Jobs that run by themselves tell their results somewhere, if that somewhere is set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    read_json,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Resolved

_JOBS = "cron/jobs.json"
_HOMES = {
    "matrix": "MATRIX_HOME_ROOM",
    "email": "EMAIL_HOME_ADDRESS",
    **{
        name: f"{name.upper()}_HOME_CHANNEL"
        for name in (
            *("telegram", "discord", "slack", "signal", "mattermost", "sms", "dingtalk", "feishu"),
            *("wecom", "weixin", "bluebubbles", "qqbot", "whatsapp", "whatsapp_cloud"),
        )
    },
}
"""The chat that results go to, by the variable that names it."""
_OLDER = {"QQBOT_HOME_CHANNEL": "QQ_HOME_CHANNEL"}


@check(id="job-delivery", group="platforms", codes=["CRON-DELIVERY"])
def job_delivery(probes: Probes) -> Iterator[Finding]:
    """Has every job a chat that its result goes to?"""
    jobs = list(_jobs(probes))
    if not jobs:
        raise Skip("no job is set up")
    found = probes.resolved()
    lost: dict[str, list[str]] = {}
    for job in jobs:
        for target in _targets(job):
            if not _arrives(found, job, target):
                lost.setdefault(target, []).append(str(job.get("id") or "?"))
    for target, ids in lost.items():
        yield _finding(found, target, ids)


def _jobs(probes: Probes) -> Iterator[dict[str, Any]]:
    """The jobs that are going to run."""
    try:
        said = read_json(probes.home / _JOBS)
    except FileNotFoundError:
        return
    except ValueError:
        raise CouldNotLook(f"{_JOBS}: is no JSON") from None
    listed = said.get("jobs") if isinstance(said, dict) else said
    for job in listed if isinstance(listed, list) else ():
        if isinstance(job, dict) and job.get("enabled", True) and job.get("state") != "completed":
            yield job


def _targets(job: dict[str, Any]) -> list[str]:
    said = job.get("deliver")
    words = (
        [str(one) for one in said] if isinstance(said, list) else str(said or "local").split(",")
    )
    return [word.strip() for word in words if word.strip()]


def _arrives(found: Resolved, job: dict[str, Any], target: str) -> bool:
    """Whether a result gets anywhere; what names a chat itself is not judged."""
    if target in ("local", "all") or ":" in target:
        return True
    origin = job.get("origin")
    came = origin.get("platform") if isinstance(origin, dict) and origin.get("chat_id") else None
    if target == "origin":
        return bool(came) or any(_home(found, name) for name in _HOMES)
    return came == target or target not in _HOMES or _home(found, target)


def _home(found: Resolved, platform: str) -> bool:
    variable = _HOMES[platform]
    older = _OLDER.get(variable)
    return bool(found.world.getenv(variable) or (older and found.world.getenv(older)))


def _finding(found: Resolved, target: str, ids: list[str]) -> Finding:
    plain = [one for one in ids if one.isalnum() and len(one) <= 32]
    count = "a job" if len(ids) == 1 else f"{len(ids)} jobs"
    variable = _HOMES.get(target)
    label = next((one.label for one in found.platforms if one.name == target), target)
    chat = _only_user(found, target)
    return Finding(
        code="CRON-DELIVERY",
        severity=Severity.WARNING,
        title=(
            f"the results of {count} go to {label}, where no chat is set for them"
            if variable
            else f"the results of {count} go to where they were made, which is not known"
        ),
        subject=target,
        detail=(
            "Nobody hears of them; they are only kept in cron/output. Write `/sethome` in the chat "
            "that is to get them"
            + (f", or set {variable} in .env and restart the gateway." if variable else ".")
        ),
        evidence=(
            Evidence(_JOBS, f"deliver: {target}, of {', '.join(plain[:5]) or count}"),
            Evidence(".env", f"no {variable}" if variable else "no home channel of any platform"),
        ),
        fix="set-home-channel" if chat else None,
        data={"variable": variable, "chat": chat},
    )


def _only_user(found: Resolved, target: str) -> str | None:
    """Telegram's chat with a user has the user's number: with one user there is no doubt."""
    if target != "telegram":
        return None
    users = next((one.users for one in found.platforms if one.name == target), None)
    listed = [one.strip() for one in ((users and users.value) or "").split(",") if one.strip()]
    return listed[0] if len(listed) == 1 and listed[0].isdigit() else None
