"""Check whether the gateway of this home is running, and if not, how its last run ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    snapshot,
    text,
)
from hermes_doctor.api.gateway import GatewayLife, NextStart, OtherGateway, Runtime, Unit
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import NamedTuple, clock, known_or, listed, shorten

_CODES = [
    *("GW-DOWN", "GW-DIED", "GW-OOM", "GW-CLEAN-EXIT-DEAD", "GW-DRAIN-HANG", "GW-NOT-ENABLED"),
]
_EXIT_LOG = "logs/gateway-exit-diag.log"
_STATE = "gateway_state.json"
_SILENT = "Nobody gets an answer, and nothing has started it again."
_FAILED = "Nobody gets an answer. It stopped with an error; see the end of logs/errors.log."
_ENDED = "Nobody gets an answer. It exited by itself; see the end of logs/errors.log."
_NO_RESTART = "the gateway exited for a restart that did not happen"
_LONG = 200
"""Characters of a reason that are shown."""
_STOPPED = "It stays stopped until you start it."
_LEFT = "gateway: left-stopped"
_UP = ("running", "starting", "degraded", "draining")
_CLEAN = Evidence(".clean_shutdown", "it shut down cleanly")
_TRACES = ("logs/gateway.log", "gateway_state.json", "gateway.pid", "gateway.lock")
"""Files that a gateway leaves, whatever they contain."""
_REBOOT = timedelta(minutes=10)
"""A gateway that ended this long before a boot, or less, ran until the shutdown."""
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
    title: str = ""
    step: str = ""
    ours: bool = False
    """This tool stopped it."""
    blocked: bool = False
    """Hermes does not start a gateway here until the operator has done the next step."""


@check(id="gateway-running", group="gateway", codes=_CODES)
def gateway_running(probes: Probes) -> Iterator[Finding]:
    """Is the gateway of this home running?"""
    gateways, runtime = probes.gateway.running(), probes.gateway.runtime()
    if gateways:
        yield from _draining(runtime, [gateway.pid for gateway in gateways])
        return
    if runtime.unseen:
        raise CouldNotLook(runtime.unseen)
    if server := probes.gateway.served_by():
        raise Skip(
            "the gateway of the root home (process {pid}) serves this profile", pid=server.pid
        )
    lives = probes.gateway.diary()
    _elsewhere(probes)
    if due := probes.health.next_start():
        yield _between_starts(due, probes.health.last_worked())
        return
    wanted = _wanted(probes, runtime)
    if not (runtime.ever or lives or wanted):
        yield _never_ran(probes)
        return
    last = max(lives, key=lambda life: life.ended or _last_sign(runtime, life), default=None)
    copied = probes.health.copied_from()
    if copied and (last is None or last.pid == copied.pid):
        end = _copied(copied)
    else:
        copied = None
        end = _by_us(probes, runtime, lives) or _end(probes, runtime, last, wanted)
    if end.cause:
        yield end.cause
    since = end.cause.since if end.cause else probes.health.last_worked() or runtime.updated_at
    calm = end.purpose and (not wanted or _rests(probes))
    ran = bool(wanted or ((last or runtime.state in _UP) and not end.orderly))
    ran = ran and not calm and not (last and _is_forgotten(probes, runtime, last))
    yield Finding(
        code="GW-DOWN",
        severity=Severity.INFO if calm else Severity.ERROR,
        title=(
            "the gateway was stopped on purpose"
            if calm
            else end.title or "the gateway is not running"
        ),
        subject="gateway",
        detail=end.detail,
        evidence=end.evidence + ((Evidence(*wanted),) if wanted else ()),
        since=None if copied else since,
        caused_by=end.cause.code if end.cause else None,
        fix=None if end.blocked else "start-gateway",
        data={"pid": last.pid if last and not copied else None, "ran": ran, "on_purpose": calm}
        | ({"ours": True} if end.ours else {}),
        next=end.step,
    )


def _between_starts(due: NextStart, since: datetime | None) -> Finding:
    """Report a gateway that is down for a moment because it fails again and again."""
    return Finding(
        code="GW-DOWN",
        severity=Severity.ERROR,
        title="the gateway is not running at the moment",
        subject="gateway",
        detail=text("Nobody gets an answer until it stays up: {next}.", next=due.what),
        since=since,
        data={"pid": None, "ran": True, "next": due.what},
        next="Repair what stops it each time.",
    )


def _draining(runtime: Runtime, running: list[int]) -> Iterator[Finding]:
    """Report a running gateway that refuses messages because it is draining."""
    owner, since = runtime.state_owner, runtime.updated_at
    if runtime.state != "draining" or owner is None or owner.pid not in running or since is None:
        return
    requested = ".drain_request.json" in runtime.markers
    late = datetime.now(UTC) - since > _DRAIN
    if not requested and not late:
        return
    yield Finding(
        code="GW-DRAIN-HANG",
        severity=Severity.ERROR if late else Severity.WARNING,
        title=(
            "the gateway refuses messages: it was asked to drain"
            if requested
            else "the gateway hangs while it shuts down"
        ),
        subject="gateway",
        detail=(
            "The dashboard or an update wrote .drain_request.json; the gateway refuses every "
            "message until that file is deleted."
            if requested
            else "It refuses every message while it waits for a job or a platform that does not "
            "stop."
        ),
        evidence=(Evidence(_STATE, f"draining since {clock(since)}"),),
        since=since,
        fix=None if requested else "restart-gateway",
        data={"pid": owner.pid},
        next="Delete .drain_request.json if no update is running." if requested else "",
    )


def _elsewhere(probes: Probes) -> None:
    """Raise Skip if a gateway elsewhere answers, CouldNotLook if that is unclear."""
    try:
        pulse = probes.health.pulse()
    except CouldNotLook:
        return
    if pulse.running:
        raise Skip("the gateway runs elsewhere and answers: {answer}", answer=pulse.what)
    if pulse.running is None:
        raise CouldNotLook(
            "no gateway runs here; could not reach one elsewhere: {reason}", reason=pulse.what
        )


def _wanted(probes: Probes, runtime: Runtime) -> tuple[str, str] | None:
    """Return what asks for the gateway to run, as evidence; None if nothing does."""
    supervision = known_or(None, probes.gateway.supervision)
    for unit in supervision.units if supervision else ():
        enabled = unit.settings.get("UnitFileState") == "enabled"
        if enabled or unit.state in ("failed", "activating"):
            return unit.name, f"should run the gateway but is {unit.state}"
    if supervision and supervision.owner and supervision.revives:
        return supervision.owner.name, "should run the gateway"
    if runtime.desired_state == "running":
        return _STATE, "desired_state: running"
    return None


def _rests(probes: Probes) -> bool:
    """Return whether every service that should run the gateway was stopped by a command."""
    units = _units(probes)
    return bool(units) and all(unit.was_stopped for unit in units)


def _is_forgotten(probes: Probes, runtime: Runtime, last: GatewayLife) -> bool:
    """Return whether systemd no longer knows if its unit was stopped by a command.

    It forgets a unit that is inactive and not enabled, at the latest when the machine restarts.
    """
    if probes.machine.rebooted_since(last.ended or _last_sign(runtime, last)):
        return False
    return any(
        unit.state == "inactive" and unit.settings.get("InactiveEnterTimestampMonotonic") == "0"
        for unit in _units(probes)
    )


def _units(probes: Probes) -> tuple[Unit, ...]:
    """Return every service or container for this home, as far as they can be seen."""
    return known_or((), lambda: probes.gateway.supervision().units)


def _never_ran(probes: Probes) -> Finding:
    """Report a home with platforms whose gateway left no sign of a run; Skip without platforms."""
    platforms = known_or(
        [],
        lambda: [
            platform for platform in probes.settings.platforms() if platform.link != "listening"
        ],
    )
    if not platforms:
        raise Skip("no platform is set up, and no gateway has run here")
    traces = [name for name in _TRACES if snapshot(probes.home / name).kind != "absent"]
    log = probes.logs.gateway_log()
    setting = Evidence(
        platforms[0].because,
        text("sets up {names}", names=listed([one.label for one in platforms])),
    )
    return Finding(
        code="GW-DOWN",
        severity=Severity.ERROR,
        title=("the gateway is not running" if traces or log else "the gateway has never run here"),
        subject="gateway",
        detail=(
            "Nobody gets an answer. The files of the last gateway do not show how it ended."
            if traces or log
            else "Nobody gets an answer until it runs."
        ),
        evidence=(
            setting,
            *(Evidence(name, "is left from an earlier run") for name in traces[:1]),
            *((Evidence(log, "has lines of a gateway"),) if log and not traces else ()),
        ),
        fix="start-gateway",
        data={"pid": None, "ran": False, "never": not (traces or log)},
    )


def _last_sign(runtime: Runtime, life: GatewayLife) -> datetime:
    """Return the last time at which there is evidence that this run was alive."""
    signs = [life.began]
    if runtime.state_owner and runtime.state_owner.pid == life.pid and runtime.updated_at:
        signs.append(runtime.updated_at)
    if runtime.beat and runtime.beat.pid == life.pid:
        signs.append(runtime.beat.at)
    return max(signs)


def _end(
    probes: Probes, runtime: Runtime, last: GatewayLife | None, wanted: tuple[str, str] | None
) -> End:
    if last is None:
        return _by_state(runtime)
    diary = Evidence(_EXIT_LOG, _history(last))
    by_itself = runtime.exit_reason or runtime.restart_requested
    if not by_itself and runtime.state != "startup_failed" and _rests(probes):
        return _by_command(probes, diary)
    killed = last.how in ("gone", "alive")
    if killed or (last.how == "failed" and runtime.clean_shutdown):
        sign = last.ended or _last_sign(runtime, last)
        if probes.machine.rebooted_since(sign):
            return _rebooted(probes, sign, diary, orderly=not killed)
    if killed:
        return _killed(probes, runtime, last, diary)
    if last.how == "restart" or (last.how == "clean" and runtime.restart_requested):
        what = "It exited so that its supervisor starts it again, but nothing did."
        cause = _left_dead(_NO_RESTART, what, diary, since=last.ended, pid=last.pid)
        return End(cause, _SILENT)
    if runtime.state == "startup_failed" and _is_of(runtime, last):
        return _start_failed(runtime, diary)
    stopped = "stopped" in (runtime.state, runtime.desired_state)
    if last.how == "clean" and stopped:
        if runtime.exit_reason is None and not wanted:
            return End(None, _STOPPED, (diary,), purpose=True)
        why = "It exited without an error, so its supervisor left it stopped."
        title = "the gateway exited and was not started again"
        evidence = (diary, *_reason(runtime))
        return End(_left_dead(title, why, *evidence, since=last.ended, pid=last.pid), _SILENT)
    if runtime.clean_shutdown:
        return End(
            None,
            "Nobody gets an answer. SIGTERM stopped it, not `hermes gateway stop`: a shutdown, a "
            "logout or another process.",
            (diary, _CLEAN),
            orderly=True,
        )
    if last.error:
        detail = text(
            "Nobody gets an answer. It stopped with an error ({error}); see the end of "
            "logs/errors.log.",
            error=last.error,
        )
        return End(None, detail, (diary, *_reason(runtime)))
    return End(None, _FAILED if last.exit_code else _ENDED, (diary, *_reason(runtime)))


def _by_state(runtime: Runtime) -> End:
    """Explain an end of which only gateway_state.json is left."""
    if runtime.state == "startup_failed":
        return _start_failed(runtime)
    state = Evidence(_STATE, f"gateway_state: {runtime.state}")
    stopped = "stopped" in (runtime.state, runtime.desired_state)
    if stopped and runtime.restart_requested:
        what = "It exited so that its supervisor starts it again, but nothing did."
        asked = Evidence(_STATE, "restart_requested: true")
        return End(_left_dead(_NO_RESTART, what, asked, since=runtime.updated_at), _SILENT)
    if stopped and runtime.exit_reason:
        what = "Nobody gets an answer. It stopped by itself and was not started again."
        return End(None, what, _reason(runtime))
    if stopped:
        return End(None, _STOPPED, (Evidence(_STATE, "gateway_state: stopped"),), purpose=True)
    what = "Nobody gets an answer. Its files do not show how it ended."
    return End(None, what, (state,) if runtime.state in _UP else ())


def _start_failed(runtime: Runtime, *more: Evidence) -> End:
    """Explain a start that Hermes gave up, with its reason and the platforms that failed."""
    return End(
        None,
        "Nobody gets an answer. Its last start failed, and the next one fails too if nothing "
        "changed.",
        (*_reason(runtime), *_fatal(runtime), *more),
        title="the gateway could not start",
        step="Fix the reason that gateway_state.json gives, then start the gateway.",
    )


def _reason(runtime: Runtime) -> tuple[Evidence, ...]:
    """Return the reason for the exit that the gateway wrote, as evidence."""
    if not runtime.exit_reason:
        return ()
    return (
        Evidence(
            _STATE,
            f"{runtime.state}: {shorten(redact_log_text(runtime.exit_reason[:2000]), _LONG)}",
        ),
    )


def _fatal(runtime: Runtime) -> Iterator[Evidence]:
    """Yield the platforms that failed for good, as far as the reason does not name them."""
    for name, platform_state in runtime.platforms.items():
        words = platform_state.error_message or platform_state.error_code or ""
        if platform_state.state == "fatal" and f"{name}:" not in (runtime.exit_reason or ""):
            yield Evidence(
                _STATE, f"{name}: fatal, {shorten(redact_log_text(words[:2000]), _LONG)}"
            )


def _is_of(runtime: Runtime, last: GatewayLife) -> bool:
    owner = runtime.state_owner
    return owner is not None and owner.pid == last.pid


def _copied(other: OtherGateway) -> End:
    """Explain the files of a home that was copied while the gateway of the original was running."""
    evidence = (Evidence(_STATE, f"process {other.pid} is the gateway of {other.home}"),)
    what = (
        "Nobody gets an answer from this home. It is probably a copy: its files name the running "
        "gateway of another home."
    )
    step = (
        "Move gateway_state.json, gateway.pid and gateway.lock out of this home; until then Hermes "
        "does not start here. Do not use --replace: it stops the other gateway."
    )
    return End(None, what, evidence, step=step if other.blocks else "", blocked=other.blocks)


def _by_us(probes: Probes, runtime: Runtime, lives: list[GatewayLife]) -> End | None:
    """Return an end caused by this tool, if it stopped the gateway and left it down."""
    run = probes.records.left_down()
    starts = [*runtime.starts, *(life.began for life in lives)]
    if run is None or any(start > run.ended_at for start in starts):
        return None
    what, word = (
        ("Nobody gets an answer. hermes-doctor undid a repair: it did not run before.", _LEFT)
        if run.undo
        else (
            "Nobody gets an answer. hermes-doctor stopped it for a repair and could not start it "
            "again.",
            "gateway: stopped",
        )
    )
    evidence = (Evidence(f"backups/doctor/runs/{run.id}", word),)
    return End(None, what, evidence, orderly=not run.wanted, ours=True)


def _history(last: GatewayLife) -> str:
    start = f"process {last.pid} started {clock(last.began)}"
    if last.ended is None:
        return f"{start}, no exit recorded"
    if last.exit_code is None:
        return f"{start}, exited {clock(last.ended)}"
    return f"{start}, exited {clock(last.ended)} with code {last.exit_code}"


def _left_dead(
    title: str, detail: str, *evidence: Evidence, since: datetime | None, pid: int | None = None
) -> Finding:
    return Finding(
        code="GW-CLEAN-EXIT-DEAD",
        severity=Severity.ERROR,
        title=title,
        subject="gateway",
        detail=detail,
        evidence=evidence,
        since=since,
        data={"pid": pid},
    )


def _by_command(probes: Probes, diary: Evidence) -> End:
    """Explain a gateway whose service or container was stopped by a command."""
    unit = probes.gateway.supervision().units[0]
    what = text(
        "A command stopped {unit}, so {manager} leaves it stopped.",
        unit=text("the container {name}", name=unit.name) if unit.kind == "docker" else unit.name,
        manager=unit.manager_name,
    )
    return End(None, what, (diary,), purpose=True)


def _rebooted(probes: Probes, ended: datetime, diary: Evidence, *, orderly: bool) -> End:
    """Explain a gateway that ended before the machine was started, perhaps with its shutdown."""
    off = [unit for unit in _units(probes) if unit.systemd and unit.starts_at_boot is False]
    cause = None
    if off and len(off) == len(_units(probes)):
        cause = Finding(
            code="GW-NOT-ENABLED",
            severity=Severity.ERROR,
            title=text("{unit} is not enabled, so it did not start", unit=off[0].name),
            subject=off[0].name,
            detail="Nobody gets an answer. After a reboot systemd starts only enabled services.",
            evidence=(Evidence(off[0].name, off[0].settings.get("UnitFileState", "")), diary),
            since=ended,
            fix="enable-service" if off[0].can_be_enabled else None,
            data={"unit": off[0]},
        )
    what = "Nobody gets an answer. The machine restarted, and nothing started the gateway again."
    earlier = orderly and probes.machine.rebooted_since(ended + _REBOOT)
    return End(cause, what, (diary,), orderly=earlier)


def _killed(probes: Probes, runtime: Runtime, last: GatewayLife, diary: Evidence) -> End:
    """Explain an end without an exit record: a kill, lack of memory, a reboot or a crash."""
    since = _last_sign(runtime, last)
    kill = probes.machine.kill(last.pid, last.began)
    if kill:
        cause = Finding(
            code="GW-OOM",
            severity=Severity.CRITICAL,
            title="the kernel killed the gateway: out of memory",
            subject="gateway",
            detail="It happens again unless the gateway needs less memory or may use more.",
            evidence=(Evidence(kill.where, f"killed process {kill.pid} ({kill.name})"), diary),
            since=kill.at,
            data={"pid": last.pid},
            next="Raise its memory limit, or stop other programs that need much memory.",
        )
        return End(cause, _SILENT)
    hung = probes.gateway.cut_off().get(last.pid)
    if hung and hung >= last.began:
        cause = Finding(
            code="GW-DRAIN-HANG",
            severity=Severity.ERROR,
            title="the gateway hung while it shut down and was killed",
            subject="gateway",
            detail="Its own watchdog killed it; the stack dump in that file shows where it hung.",
            evidence=(Evidence("logs/gateway-shutdown-watchdog.log", f"process {last.pid}"), diary),
            since=hung,
            data={"pid": last.pid},
        )
        return End(cause, _SILENT)
    evidence: tuple[Evidence, ...] = (
        diary,
        Evidence(_STATE, f"gateway_state: {runtime.state}"),
    )
    if probes.machine.memory_kills():
        evidence += (Evidence("cgroup", "processes were killed here: out of memory"),)
    cause = Finding(
        code="GW-DIED",
        severity=Severity.ERROR,
        title="the gateway died suddenly",
        subject="gateway",
        detail=(
            "It did not shut down. The cause is probably SIGKILL, lack of memory or a crash of "
            "Python."
        ),
        evidence=evidence,
        since=since,
        data={"pid": last.pid},
    )
    return End(cause, _SILENT)
