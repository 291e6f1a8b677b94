"""Check that the running gateway started after the last change of its code and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    clock,
    count,
    is_same_commit,
    listed,
    pattern,
    sentences,
    text,
)

_SLACK = timedelta(seconds=5)
"""A gateway may still read files this long after its start."""
_STATE = "gateway_state.json"
_OWN = timedelta(seconds=60)
"""A starting gateway migrates config.yaml to its own version within this time."""
_NAME = pattern(r"^[ \t]*(?:export[ \t]+)?([A-Z][A-Z0-9_]*)[ \t]*=", re.MULTILINE)
_AT_START = pattern(
    r"(API_SERVER|BLUEBUBBLES|DINGTALK|DISCORD|EMAIL|FEISHU|GATEWAY|HASS|MATRIX|MATTERMOST|MSGRAPH|"
    r"QQ|QQBOT|SIGNAL|SLACK|SMS|TELEGRAM|TWILIO|WEBHOOK|WECOM|WEIXIN|WHATSAPP|YUANBAO)_"
    r"(?!\w*(ALLOW|HOME_|REQUIRE|MENTION|FREE_|REACTIONS|REPLY_))\w+"
)
"""Variables that a gateway reads only at its start: platform accounts and listening ports."""
_REFERENCE = pattern(rb"\$\{[A-Z][A-Z0-9_]*\}")
_REFERENCES_FROZEN = (0, 18, 0)
"""Up to this release, ${VAR} in config.yaml keeps its value from the gateway's start."""
_FALLBACK_FROZEN = (0, 18, 2)


@check(
    id="gateway-age",
    group="gateway",
    codes=["GW-CODE-SKEW", "GW-UPDATE-NOT-RESTARTED", "GW-STALE-SETTINGS"],
)
def gateway_age(probes: Probes) -> Iterator[Finding]:
    """Does the gateway use the code and settings that are on disk?"""
    gateways = probes.gateways()
    if not gateways and (start := _unseen_start(probes)):
        yield from _settings(probes, None, start)
        return
    if not gateways:
        raise Skip("no gateway is running")
    pid, began = gateways[0].pid, gateways[0].running_since
    yield from _code(probes, pid, began)
    yield from _settings(probes, pid, began)


def _code(probes: Probes, pid: int, began: datetime) -> Iterator[Finding]:
    change, loaded = probes.code_change(), _loaded(probes, pid)
    on_disk = probes.code_commit() if loaded else None
    evidence: list[Evidence] = []
    if loaded and on_disk and loaded != on_disk:
        evidence.append(Evidence(_STATE, text("code_sha: {commit}", commit=loaded[:10])))
        evidence.append(Evidence("git", text("HEAD: {commit}", commit=on_disk[:10])))
    elif change is None or change.at <= began + _SLACK:
        return
    elif loaded and on_disk and is_same_commit(loaded, on_disk) and change.path.name == "HEAD":
        return  # git moved its HEAD and came back, as for a stash
    if change and change.at > began:
        evidence.append(Evidence(str(change.path), f"changed {clock(change.at)}"))
    update, receipt = probes.last_update(), probes.update_receipt()
    updated = bool(
        (update and update.at > began) or (receipt and receipt.pulled and receipt.at > began)
    )
    deleted = [path for path in probes.vitals(pid).deleted or () if "/site-packages/" in path]
    if deleted:
        evidence.append(
            Evidence(
                f"/proc/{pid}/maps",
                f"{count(len(deleted), 'loaded library', 'loaded libraries')} deleted",
            )
        )
    evidence.append(Evidence(f"process {pid}", f"started {clock(began)}"))
    yield Finding(
        code="GW-UPDATE-NOT-RESTARTED" if updated else "GW-CODE-SKEW",
        severity=Severity.WARNING,
        title=(
            "Hermes was updated but the gateway still runs the old code"
            if updated
            else "the code of Hermes changed while the gateway was running"
        ),
        subject="gateway",
        detail=(
            "Old and new code mix, so a later message or scheduled job can fail with `cannot "
            "import name`. A restart of the gateway fixes it."
        ),
        evidence=tuple(evidence),
        since=change.at if change and change.at > began else None,
        fix="restart-gateway",
        data={"pid": pid},
    )


def _unseen_start(probes: Probes) -> datetime | None:
    """Return when a gateway started that runs where it cannot be seen from here."""
    runtime = probes.runtime()
    if not runtime.unseen:
        return None
    alive = (life.began for life in probes.diary() if life.ended is None)
    return max((*alive, *runtime.starts), default=None)


def _loaded(probes: Probes, pid: int) -> str | None:
    """Return the commit of the code that the gateway has loaded (0.20.5 and later)."""
    runtime = probes.runtime()
    return runtime.commit if runtime.state_owner and runtime.state_owner.pid == pid else None


def _settings(probes: Probes, pid: int | None, began: datetime) -> Iterator[Finding]:
    found = probes.installation()
    release = found.release if found else ()
    env, config = probes.env(), probes.config()
    env_at = probes.modified(env.path) if env else None
    if env and env_at and env_at > began + _SLACK:
        names = sorted(set(_NAME.findall(env.text or "")))
        once = [name for name in names if _AT_START.fullmatch(name)]
        frozen = bool(config and _REFERENCE.search(config.data)) and release <= _REFERENCES_FROZEN
        yield _stale(
            pid,
            ".env",
            env_at,
            needed=bool(once) or frozen,
            detail=sentences(
                text("Hermes reads these only at its start: {names}.", names=listed(once, 4))
                if once
                else "Hermes reads provider keys again with the next message.",
                "This release also keeps the old value of ${NAME} in config.yaml."
                if frozen
                else "",
                "Removed lines stay in effect until a restart.",
            ),
            step="Restart the gateway if you removed a line.",
        )
    config_at = probes.modified(config.path) if config else None
    if config and config_at and config_at > began + _OWN:
        chain = bool(release) and release <= _FALLBACK_FROZEN
        yield _stale(
            pid,
            "config.yaml",
            config_at,
            needed=False,
            detail=(
                "Hermes reads platforms, ports, hooks, plugins and fallback models only at its "
                "start, everything else with the next message."
                if chain
                else "Hermes reads platforms, ports, hooks and plugins only at its start, "
                "everything else with the next message."
            ),
            step="Restart the gateway if you changed one of these.",
        )


def _stale(
    pid: int | None, name: str, at: datetime, *, needed: bool, detail: str, step: str = ""
) -> Finding:
    return Finding(
        code="GW-STALE-SETTINGS",
        severity=Severity.WARNING if needed else Severity.INFO,
        title=text("{name} was changed after the gateway started", name=name),
        subject=name,
        detail=detail,
        evidence=(Evidence(name, f"changed {clock(at)}"),),
        since=at,
        fix="restart-gateway" if needed and pid else None,
        data={"pid": pid},
        next=step if not needed else "" if pid else "Restart the gateway where it runs.",
    )
