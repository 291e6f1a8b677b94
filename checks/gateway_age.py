"""Check that the running gateway started after the last change of its code and settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, pattern, text

_SLACK = timedelta(seconds=5)
"""A gateway may still read files this long after its start."""
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
    """Does the gateway run the code and the settings that are on disk?"""
    gateways = probes.gateways()
    if not gateways:
        raise Skip("no gateway is seen to run")
    pid, began = gateways[0].pid, gateways[0].started_at
    yield from _code(probes, pid, began)
    yield from _settings(probes, pid, began)


def _code(probes: Probes, pid: int, began: datetime) -> Iterator[Finding]:
    change = probes.code_change()
    if change is None or change.at <= began + _SLACK:
        return
    update = probes.last_update()
    updated = update is not None and update.at > began
    evidence = [Evidence(str(change.path), f"written {_time(change.at)}")]
    deleted = [path for path in probes.vitals(pid).deleted or () if "/site-packages/" in path]
    if deleted:
        evidence.append(Evidence(f"/proc/{pid}/maps", f"{len(deleted)} libraries are deleted"))
    evidence.append(Evidence(f"process {pid}", f"began {_time(began)}"))
    yield Finding(
        code="GW-UPDATE-NOT-RESTARTED" if updated else "GW-CODE-SKEW",
        severity=Severity.WARNING,
        title=(
            "Hermes was updated, and the gateway still runs the old one"
            if updated
            else "the code of Hermes was changed under the running gateway"
        ),
        subject="gateway",
        detail=(
            "What it has not loaded yet it loads from the new code: `cannot import name …` at "
            "some later message or scheduled job. It needs a restart."
        ),
        evidence=tuple(evidence),
        since=change.at,
        fix="restart-gateway",
        data={"pid": pid},
    )


def _settings(probes: Probes, pid: int, began: datetime) -> Iterator[Finding]:
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
            detail=(
                (
                    text("Read at a start only: {some}. ", some=_some(once))
                    if once
                    else "Keys of model providers are read anew with the next message. "
                )
                + (
                    "This release also keeps the old value wherever config.yaml says ${NAME}. "
                    if frozen
                    else ""
                )
                + "A line that was taken out keeps its effect until a restart."
            ),
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
                text(
                    "Model and agent settings are read anew with the next message; "
                    "platforms, ports, hooks and plugins{value} at a start only.",
                    value=", and the fallback models" if chain else "",
                )
            ),
        )


def _stale(pid: int, name: str, at: datetime, *, needed: bool, detail: str) -> Finding:
    return Finding(
        code="GW-STALE-SETTINGS",
        severity=Severity.WARNING if needed else Severity.INFO,
        title=text("{name} was changed after the gateway had started", name=name),
        subject=name,
        detail=detail,
        evidence=(Evidence(name, f"written {_time(at)}"),),
        since=at,
        fix="restart-gateway" if needed else None,
        data={"pid": pid},
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
