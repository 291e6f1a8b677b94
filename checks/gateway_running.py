"""Check whether the gateway of this home is running, and if not, how its last run ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    NamedTuple,
    Probes,
    Severity,
    Skip,
    check,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Life, Runtime, Supervision

_CODES = ["GW-DOWN", "GW-DIED", "GW-OOM", "GW-CLEAN-EXIT-DEAD", "GW-DRAIN-HANG"]
_DIARY = "logs/gateway-exit-diag.log"
_STATE = "gateway_state.json"
_UP = ("running", "starting", "degraded", "draining")
_STAYS = "It stays stopped until you start it."
_IN_ORDER = Evidence(".clean_shutdown", "it had time to shut down")
_DRAIN = timedelta(minutes=5)
"""Releases before 0.19 wait up to three minutes for answers in progress."""


class End(NamedTuple):
    """How the last run ended, as far as that is known."""

    cause: Finding | None
    detail: str
    evidence: tuple[Evidence, ...] = ()
    purpose: bool = False
    """It was stopped intentionally."""
    orderly: bool = False
    """It received a signal to stop and did so; the sender is unknown."""


@check(id="gateway-running", group="gateway", codes=_CODES)
def gateway_running(probes: Probes) -> Iterator[Finding]:
    """Is the gateway of this home running?"""
    gateways, runtime = probes.gateways(), probes.runtime()
    if gateways:
        yield from _draining(runtime, [gateway.pid for gateway in gateways])
        return
    if runtime.unseen:
        raise CouldNotLook(runtime.unseen)
    if server := probes.served_by():
        raise Skip(
            text("the gateway of the root home serves this profile (process {pid})", pid=server.pid)
        )
    lives = probes.diary()
    _elsewhere(probes)
    wanted = _wanted(probes, runtime)
    if not (runtime.ever or lives or wanted):
        yield _never(probes)
        return
    last = _last(runtime, lives)
    end = _by_us(probes, runtime, lives) or _end(probes, runtime, last, wanted)
    if end.cause:
        yield end.cause
    since = end.cause.since if end.cause else (last and last.ended) or runtime.updated_at
    calm = end.purpose and (not wanted or _rests(probes))
    ran = bool(wanted or ((last or runtime.state in _UP) and not end.orderly)) and not calm
    yield Finding(
        code="GW-DOWN",
        severity=Severity.INFO if calm else Severity.ERROR,
        title="the gateway was stopped on purpose" if calm else "the gateway is not running",
        subject="gateway",
        detail=end.detail,
        evidence=end.evidence + ((Evidence(*wanted),) if wanted else ()),
        since=since,
        caused_by=end.cause.code if end.cause else _blocked(runtime),
        fix="start-gateway",
        data={"pid": last.pid if last else None, "ran": ran},
    )


def _draining(runtime: Runtime, running: list[int]) -> Iterator[Finding]:
    """Report a running gateway that refuses messages because it is draining."""
    owner, since = runtime.state_owner, runtime.updated_at
    if runtime.state != "draining" or owner is None or owner.pid not in running or since is None:
        return
    told = ".drain_request.json" in runtime.markers
    spent = datetime.now(UTC) - since
    if told or spent > _DRAIN:
        yield Finding(
            code="GW-DRAIN-HANG",
            severity=Severity.WARNING if told else Severity.ERROR,
            title=(
                "the gateway was told to take no more messages"
                if told
                else "the gateway wants to end and does not come to it"
            ),
            subject="gateway",
            detail=(
                "The dashboard, or what prepares an update, left .drain_request.json; every "
                "message is refused until that file is gone."
                if told
                else "It waits for a job or a platform that does not let go, and refuses messages."
            ),
            evidence=(Evidence(_STATE, f"says draining since {since:%Y-%m-%d %H:%M} UTC"),),
            since=since,
            fix=None if told else "restart-gateway",
            data={"pid": owner.pid},
        )


def _elsewhere(probes: Probes) -> None:
    """Raise Skip if a gateway elsewhere answers, CouldNotLook if that is unclear."""
    try:
        pulse = probes.pulse()
    except CouldNotLook:
        return
    if pulse.running:
        raise Skip(
            text("the gateway runs elsewhere and answers ({pulse_what})", pulse_what=pulse.what)
        )
    if pulse.running is None:
        raise CouldNotLook(
            text("no gateway runs here, and of one elsewhere: {pulse_what}", pulse_what=pulse.what)
        )


def _wanted(probes: Probes, runtime: Runtime) -> tuple[str, str] | None:
    """Return what asks for the gateway to run, as evidence; None if nothing does."""
    try:
        supervision: Supervision | None = probes.supervision()
    except CouldNotLook:
        supervision = None
    for unit in supervision.units if supervision else ():
        enabled = unit.settings.get("UnitFileState") == "enabled"
        if enabled or unit.state in ("failed", "activating"):
            return unit.name, f"should run it, and is {unit.state}"
    if supervision and supervision.owner and supervision.revives:
        return supervision.owner.name, "should run it"
    if runtime.desired_state == "running":
        return _STATE, "the operator wants it to run (desired_state)"
    return None


def _rests(probes: Probes) -> bool:
    """Return whether every service that should run the gateway was stopped by a command."""
    try:
        supervision = probes.supervision()
    except CouldNotLook:
        return False
    return bool(supervision.units) and all(unit.was_stopped for unit in supervision.units)


def _never(probes: Probes) -> Finding:
    """Report that platforms are configured but no gateway has run; Skip without platforms."""
    try:
        platforms = [one for one in probes.platforms() if one.link != "listening"]
    except CouldNotLook:
        platforms = []
    if not platforms:
        raise Skip("no gateway was ever started on this home")
    names = ", ".join(one.label for one in platforms[:6])
    return Finding(
        code="GW-DOWN",
        severity=Severity.INFO,
        title="no gateway was ever started on this home",
        subject="gateway",
        detail=text("Platforms are set up. {STAYS}", STAYS=_STAYS),
        evidence=(Evidence(platforms[0].because, f"{names} would be started"),),
        fix="start-gateway",
        data={"pid": None, "ran": False},
    )


def _last(runtime: Runtime, lives: list[Life]) -> Life | None:
    """Return the run that ended last."""
    return max(lives, key=lambda life: life.ended or _last_sign(runtime, life), default=None)


def _last_sign(runtime: Runtime, life: Life) -> datetime:
    """Return the last time at which there is evidence that this run was alive."""
    signs = [life.began]
    if runtime.state_owner and runtime.state_owner.pid == life.pid and runtime.updated_at:
        signs.append(runtime.updated_at)
    if runtime.beat and runtime.beat.pid == life.pid:
        signs.append(runtime.beat.at)
    return max(signs)


def _blocked(runtime: Runtime) -> str | None:
    return "GW-STALE-PID" if runtime.lock_holder else None


def _end(
    probes: Probes, runtime: Runtime, last: Life | None, wanted: tuple[str, str] | None
) -> End:
    if last is None:
        claims = runtime.state in _UP
        seen = (Evidence(_STATE, f"still says {runtime.state}"),) if claims else ()
        if runtime.desired_state == "stopped" or runtime.state == "stopped":
            seen = (Evidence(_STATE, "says stopped"),)
            return End(None, f"Its state says that it was stopped. {_STAYS}", seen, purpose=True)
        return End(None, "Nothing tells how it ended.", seen)
    diary = Evidence(_DIARY, _told(last))
    if last.how in ("gone", "alive"):
        return _killed(probes, runtime, last, diary)
    if last.how == "restart" or (last.how == "clean" and runtime.restart_requested):
        what = "It ended to be started again (exit code 75), and nobody started it."
        return End(_left_dead(last, "a restart was asked for and never came", what), what)
    stopped = "stopped" in (runtime.state, runtime.desired_state)
    if last.how == "clean" and stopped:
        if runtime.exit_reason is None and (not wanted or _rests(probes)):
            return End(None, f"It was stopped in order. {_STAYS}", (diary,), purpose=True)
        why = "It ended in order by itself, and whoever supervises it let it be."
        return End(_left_dead(last, "it ended in order and was not started again", why), why)
    if runtime.clean_shutdown and _rests(probes):
        what = "Its service was told to stop, and systemd leaves it stopped."
        return End(None, what, (diary, _IN_ORDER), purpose=True)
    if runtime.clean_shutdown:
        return End(
            None,
            "Something told it to end (SIGTERM) that was not `hermes gateway stop`: a shutdown, "
            "the end of a login, another process. It shut down in order.",
            (diary, _IN_ORDER),
            orderly=True,
        )
    error = f" ({last.error})" if last.error else ""
    why = f"It ended with an error of its own{error}; logs/errors.log has its last words."
    return End(None, why, (diary,))


def _by_us(probes: Probes, runtime: Runtime, lives: list[Life]) -> End | None:
    """Return an end caused by this tool, if it stopped the gateway and could not restart it."""
    run = probes.left_down()
    starts = [*runtime.starts, *(life.began for life in lives)]
    if run is None or any(start > run.ended_at for start in starts):
        return None
    what = "hermes-doctor stopped it for a repair and could not start it again."
    return End(None, what, (Evidence(f"backups/doctor/runs/{run.id}", "left it stopped"),))


def _told(last: Life) -> str:
    began = f"process {last.pid} began {last.began:%Y-%m-%d %H:%M} UTC"
    if last.ended is None:
        return f"{began} and left no last word"
    code = f" with exit code {last.exit_code}" if last.exit_code is not None else ""
    return f"{began} and ended {last.ended:%Y-%m-%d %H:%M} UTC{code}"


def _left_dead(last: Life, title: str, detail: str) -> Finding:
    return Finding(
        code="GW-CLEAN-EXIT-DEAD",
        severity=Severity.ERROR,
        title=title,
        subject="gateway",
        detail=detail,
        evidence=(Evidence(_DIARY, _told(last)),),
        since=last.ended,
        data={"pid": last.pid},
    )


def _killed(probes: Probes, runtime: Runtime, last: Life, diary: Evidence) -> End:
    """Explain an end without an exit record: a kill, lack of memory, a reboot or a crash."""
    since = _last_sign(runtime, last)
    if probes.rebooted_since(since):
        return End(
            None,
            "The machine was restarted while it ran, and nobody started it after that.",
            (diary,),
        )
    kill = probes.kill(last.pid, last.began)
    if kill:
        cause = Finding(
            code="GW-OOM",
            severity=Severity.CRITICAL,
            title="the kernel killed the gateway for want of memory",
            subject="gateway",
            detail="It will happen again unless it needs less or may use more.",
            evidence=(Evidence(kill.where, f"killed process {kill.pid} ({kill.name})"), diary),
            since=kill.at,
            data={"pid": last.pid},
        )
        return End(cause, "It was killed for want of memory.")
    hung = probes.cut_off().get(last.pid)
    if hung and hung >= last.began:
        cause = Finding(
            code="GW-DRAIN-HANG",
            severity=Severity.ERROR,
            title="the gateway hung while it shut down and was cut off",
            subject="gateway",
            detail="Its own watchdog ended it; the dump in that file shows where it hung.",
            evidence=(Evidence("logs/gateway-shutdown-watchdog.log", f"process {last.pid}"), diary),
            since=hung,
            data={"pid": last.pid},
        )
        return End(cause, "It was cut off while it shut down, and nobody started it again.")
    evidence: tuple[Evidence, ...] = (diary, Evidence(_STATE, f"still says {runtime.state}"))
    if probes.memory_kills():
        evidence += (Evidence("cgroup", "processes here were killed for want of memory"),)
    cause = Finding(
        code="GW-DIED",
        severity=Severity.ERROR,
        title="the gateway died at once, without a last word",
        subject="gateway",
        detail="SIGKILL, want of memory or a crash of Python itself ends a process so.",
        evidence=evidence,
        since=since,
        data={"pid": last.pid},
    )
    return End(cause, "It died and nobody started it again.")
