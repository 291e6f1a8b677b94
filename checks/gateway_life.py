"""Check how long the gateway runs and how its last run ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import Gateway, Runtime, is_same_commit
from hermes_doctor.api.tools import clock, count, listed, pattern, sentences

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
    gateways = probes.gateway.running()
    if not gateways and (start := _unseen_start(probes)):
        yield from _settings(probes, None, start)
        return
    if not gateways:
        raise Skip("no gateway is running")
    pid, began = gateways[0].pid, gateways[0].running_since
    yield from _code(probes, pid, began)
    yield from _settings(probes, pid, began)


def _code(probes: Probes, pid: int, began: datetime) -> Iterator[Finding]:
    change, loaded = probes.hermes.code_change(), _loaded(probes, pid)
    on_disk = probes.hermes.code_commit() if loaded else None
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
    update, receipt = probes.hermes.last_update(), probes.hermes.update_receipt()
    updated = bool(
        (update and update.at > began) or (receipt and receipt.pulled and receipt.at > began)
    )
    deleted = [
        path for path in probes.machine.vitals(pid).deleted or () if "/site-packages/" in path
    ]
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
    runtime = probes.gateway.runtime()
    if not runtime.unseen:
        return None
    alive = (life.began for life in probes.gateway.diary() if life.ended is None)
    return max((*alive, *runtime.starts), default=None)


def _loaded(probes: Probes, pid: int) -> str | None:
    """Return the commit of the code that the gateway has loaded (0.20.5 and later)."""
    runtime = probes.gateway.runtime()
    return runtime.commit if runtime.state_owner and runtime.state_owner.pid == pid else None


def _settings(probes: Probes, pid: int | None, began: datetime) -> Iterator[Finding]:
    installation = probes.hermes.installation()
    release = installation.release if installation else ()
    env, config = probes.settings.env(), probes.settings.config()
    env_at = probes.files.modified(env.path) if env else None
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
    config_at = probes.files.modified(config.path) if config else None
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


_CODES = ["GW-DIED", "GW-OOM", "GW-LOOP-BLOCKED", "GW-DRAIN-HANG", "GW-STARTUP-SLOW"]
_LEDGER = "state/gateway.lifecycle.json"
_RECENT = timedelta(hours=6)
_RECENT_OOM = timedelta(days=1)
_SAME_MOMENT = timedelta(seconds=2)
_ENDS = {
    "loop_liveness_watchdog": (
        "GW-LOOP-BLOCKED",
        "the gateway froze and ended itself",
        "Nobody gets an answer, and nothing has started it again. Its own watchdog ended it "
        "because it did not respond.",
        "Read logs/gateway_faulthandler.log, which shows what blocked it.",
    ),
    "startup_liveness_watchdog": (
        "GW-STARTUP-SLOW",
        "the gateway ended itself before its start was finished",
        "Nobody gets an answer, and nothing has started it again. Its start took too long without "
        "progress.",
        "Read logs/gateway-startup-watchdog.log, which shows where the start hangs.",
    ),
    "shutdown_watchdog": (
        "GW-DRAIN-HANG",
        "the gateway hung while it shut down and was killed",
        "Unfinished answers can be lost. Its own watchdog killed it.",
        "Read logs/gateway-shutdown-watchdog.log, which shows where it hung.",
    ),
}
"""Code, title, detail and next step for each watchdog that ends a gateway."""


@check(id="gateway-last-life", group="gateway", codes=_CODES, needs="last life")
def gateway_last_life(probes: Probes) -> Iterator[Finding]:
    """Did the last gateway end in order?"""
    runtime = probes.gateway.runtime()
    ledger = runtime.ledger
    assert ledger is not None
    if gateways := probes.gateway.running():
        if not ledger.after_death:
            raise Skip("a gateway is running")
        yield from _died_before(probes, runtime, gateways[0])
        return
    if runtime.unseen:
        raise CouldNotLook(runtime.unseen)
    if any(life.pid == ledger.pid for life in probes.gateway.diary()) and not ledger.low_memory:
        raise Skip("the exit log records how this gateway ended, and another check reads it")
    if ledger.phase == "running":
        yield from _died(probes, runtime)
    elif ledger.reason in _ENDS:
        code, title, detail, step = _ENDS[ledger.reason]
        yield Finding(
            code=code,
            severity=Severity.WARNING if code == "GW-DRAIN-HANG" else Severity.ERROR,
            title=title,
            subject="gateway",
            detail=detail,
            evidence=(Evidence(_LEDGER, f"exit_reason: {ledger.reason}"),),
            since=ledger.at,
            data={"pid": ledger.pid},
            next=step,
        )


def _died_before(probes: Probes, runtime: Runtime, gateway: Gateway) -> Iterator[Finding]:
    """Report the sudden end of the life before that of the running gateway.

    The ledger has no time for it; log lines and the exit log tell more, but they can be gone.
    """
    ledger = runtime.ledger
    assert ledger is not None
    low = ledger.after_low_memory
    if (
        ledger.at is None
        or ledger.at < gateway.started_at - _SAME_MOMENT  # the ledger of another gateway
        or datetime.now(UTC) - ledger.at > (_RECENT_OOM if low else _RECENT)
        or gateway.started_at <= probes.records.proved_at()
    ):
        return
    yield Finding(
        code="GW-OOM" if low else "GW-DIED",
        severity=Severity.WARNING,
        title=(
            "the gateway was killed, probably out of memory"
            if low
            else "the gateway died suddenly and was started again"
        ),
        subject="gateway",
        detail=(
            "Answers in progress were lost. The machine had almost no free memory, so it can "
            "happen again."
            if low
            else "Answers in progress were lost. It logged no error: something killed it, Python "
            "crashed, or the machine went down."
        ),
        evidence=(
            Evidence(_LEDGER, text("the life before the start at {time}", time=clock(ledger.at))),
        ),
        since=ledger.at,
        data={"pid": ledger.pid},
        next=(
            "Give the machine or the service more memory, or use fewer agents at once."
            if low
            else "Look at that time in the kernel log and in logs/gateway_faulthandler.log."
        ),
    )


def _died(probes: Probes, runtime: Runtime) -> Iterator[Finding]:
    """Report a process that is gone but still listed as running."""
    ledger = runtime.ledger
    assert ledger is not None
    seen = [at for at in (ledger.at, runtime.beat and runtime.beat.at) if at]
    if seen and probes.machine.rebooted_since(max(seen)):
        raise Skip("the machine restarted since then")
    what = text("process {pid} is listed as running but is gone", pid=ledger.pid)
    evidence = [Evidence(_LEDGER, what)]
    if runtime.beat and runtime.beat.pid == ledger.pid:
        beat = text("last heartbeat {time}", time=clock(runtime.beat.at))
        evidence.append(Evidence("state/gateway.heartbeat", beat))
    low = ledger.low_memory
    yield Finding(
        code="GW-OOM" if low else "GW-DIED",
        severity=Severity.ERROR,
        title=(
            "the gateway was killed, probably out of memory" if low else "the gateway died suddenly"
        ),
        subject="gateway",
        detail=(
            "Nobody gets an answer. The machine had almost no free memory shortly before."
            if low
            else "Nobody gets an answer. It logged no error. The cause is probably SIGKILL, lack "
            "of memory or a crash of Python."
        ),
        evidence=tuple(evidence),
        since=max(seen, default=None),
        data={"pid": ledger.pid},
        next="Give the machine or the service more memory, or use fewer agents." if low else "",
    )
