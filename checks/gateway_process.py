"""Check the running gateway's process: its event loop, its resources and what it left behind."""

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
from hermes_doctor.api.gateway import ProcessDetails
from hermes_doctor.api.tools import clock, count, duration, read_json, size

_CODES = {"mcp": "MCP-ORPHANS", "browser": "BROWSER-ORPHANS"}


@check(id="gateway-orphans", group="gateway", codes=["MCP-ORPHANS", "BROWSER-ORPHANS"])
def gateway_orphans(probes: Probes) -> Iterator[Finding]:
    """Have MCP servers and browsers of old gateways ended?"""
    orphans = probes.gateway.orphans()
    for kind, code in _CODES.items():
        mine = [orphan for orphan in orphans if orphan.kind == kind]
        if not mine:
            continue
        browser = kind == "browser"
        noun = "browser" if browser else "MCP server"
        yield Finding(
            code=code,
            severity=Severity.WARNING,
            title=text(
                "{orphans} of an earlier gateway still running", orphans=count(len(mine), noun)
            ),
            subject="browsers" if browser else "MCP servers",
            detail=(
                "No gateway uses such a browser any more, but it takes hundreds of megabytes."
                if browser
                else "No gateway uses such a server any more, but it takes memory and may hold "
                "a port or a file."
            ),
            evidence=tuple(
                Evidence(f"process {one.pid} ({one.name})", f"belongs to this home: {one.proof}")
                for one in mine
            ),
            since=min(one.started_at for one in mine),
            data={"pids": tuple(one.pid for one in mine)},
            next=text("Run `kill {pids}`.", pids=" ".join(str(one.pid) for one in mine)),
        )


MANY, MOST = 0.7, 0.97
TIGHT, TIGHTEST = 0.85, 0.95
LEAK = 60
"""Descriptors open on one database; a busy gateway has about twenty."""
LARGE = 2 * 1024**3


@check(
    id="gateway-resources", group="gateway", codes=["GW-FD-EXHAUST", "GW-MEMORY"], needs="gateway"
)
def gateway_resources(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Has the gateway enough file descriptors and memory?"""
    gateways = probes.gateway.running()
    for gateway in gateways:
        vitals = probes.machine.vitals(gateway.pid)
        if vitals.files is None or vitals.kinds is None:
            yield CouldNotLook(
                "could not read the open files of process {pid}: permission denied", pid=vitals.pid
            )
        else:
            yield from _descriptors(probes, vitals, vitals.files)
        yield from _memory(vitals)


def _descriptors(probes: Probes, vitals: ProcessDetails, used: int) -> Iterator[Finding]:
    limit = vitals.files_limit
    share = used / limit if limit else 0.0
    kinds = sorted((vitals.kinds or {}).items(), key=lambda one: one[1], reverse=True)
    leaks = [(name, count) for name, count in kinds if name.endswith(".db") and count > LEAK]
    if share < MANY and not leaks:
        return
    most = ", ".join(f"{count} {name}" for name, count in (leaks or kinds)[:3])
    yield Finding(
        code="GW-FD-EXHAUST",
        severity=Severity.CRITICAL if share >= MOST else Severity.WARNING,
        title=(
            text("the gateway uses {share:.0%} of its file descriptors", share=share)
            if share >= MANY
            else text("the gateway opens {name} too often", name=leaks[0][0])
        ),
        subject="gateway",
        detail=(
            "At the limit (`Too many open files`) the bot cannot answer or save anything. A "
            "restart frees them; a higher limit only delays it."
        ),
        evidence=(
            Evidence(
                f"/proc/{vitals.pid}/fd", f"{used} open, limit {limit or 'none'}; most: {most}"
            ),
        ),
        fix="raise-limit" if _by_systemd(probes) else "restart-gateway",
        data={"pid": vitals.pid, "used": used, "limit": limit},
    )


def _by_systemd(probes: Probes) -> bool:
    try:
        owner = probes.gateway.supervision().owner
    except CouldNotLook:
        return False
    return owner is not None and owner.kind.startswith("systemd")


def _memory(vitals: ProcessDetails) -> Iterator[Finding]:
    used, limit = vitals.memory_used, vitals.memory_limit
    share = used / limit if used and limit else 0.0
    if share < TIGHT and vitals.memory < LARGE:
        return
    tight = share >= TIGHT
    what = f"process {vitals.pid}: {size(vitals.memory)}"
    if used and limit and tight:
        what += f"; its control group: {size(used)} of {size(limit)}"
    yield Finding(
        code="GW-MEMORY",
        severity=(
            (Severity.ERROR if share >= TIGHTEST else Severity.WARNING) if tight else Severity.INFO
        ),
        title=(
            text("the gateway uses {share:.0%} of the memory it may use", share=share)
            if tight
            else text("the gateway uses {size} of memory", size=size(vitals.memory))
        ),
        subject="gateway",
        detail=(
            "At the limit the kernel kills the gateway. A restart frees memory; a higher MemoryMax "
            "or container limit only delays it."
            if tight
            else "Most gateways need less than 0.5 GB. A restart frees it."
        ),
        evidence=(Evidence("cgroup" if tight else f"/proc/{vitals.pid}/status", what),),
        fix="restart-gateway" if tight else None,
        data={"pid": vitals.pid},
    )


@check(
    id="gateway-loop",
    group="gateway",
    codes=["GW-LOOP-BLOCKED", "GW-SUSPENDED"],
    limit=10,
    needs="gateway",
)
def gateway_loop(probes: Probes) -> Iterator[Finding]:
    """Does the gateway respond?"""
    if due := probes.health.next_start():
        raise Skip(due.what)
    pulse = probes.health.pulse()
    if pulse.running:
        return
    if pulse.running is None:
        raise CouldNotLook(pulse.what)
    data = {"pid": pulse.pid, "certain": pulse.certain, "halted": pulse.halted}
    where = f"process {pulse.pid}"
    if pulse.halted:
        yield Finding(
            code="GW-SUSPENDED",
            severity=Severity.CRITICAL,
            title="the gateway is suspended",
            subject="gateway",
            detail=(
                "Nobody gets an answer until it continues. Ctrl-Z, a debugger, `kill -STOP` or a "
                "paused container suspends a process."
            ),
            evidence=(Evidence(where, pulse.what),),
            since=pulse.since,
            fix="restart-gateway",
            data=data,
            next=text("Let it continue with `kill -CONT {pid}`, or restart it.", pid=pulse.pid),
        )
        return
    evidence = [Evidence(where, pulse.what)]
    if pulse.waiting:
        evidence.append(Evidence(where, f"{count(pulse.waiting, 'connection')} not accepted"))
    waits = probes.machine.vitals(pulse.pid).waits_in if pulse.pid else ""
    if waits:
        evidence.append(Evidence(f"/proc/{pulse.pid}/wchan", waits))
    yield Finding(
        code="GW-LOOP-BLOCKED",
        severity=Severity.CRITICAL if pulse.certain else Severity.WARNING,
        title=(
            "the gateway is frozen"
            if pulse.certain
            else "the gateway does not respond at the moment"
        ),
        subject="gateway",
        detail=(
            "Nobody gets an answer, and it ignores SIGTERM. Usually a plugin, a hook or a slow "
            "disk blocks it."
            if pulse.certain
            else "It may be busy; after 2 minutes without a response it is frozen. The fix waits "
            "that long before it restarts the gateway."
            if pulse.mute
            else "It may be busy; after 2 minutes without a response it is frozen."
        ),
        evidence=tuple(evidence),
        since=pulse.since,
        fix="restart-gateway" if pulse.certain or pulse.mute else None,
        data=data,
        next="" if pulse.certain or pulse.mute else "Check again in 2 minutes.",
    )


_FILE = "gateway/restart_loop.json"
_MOST = 64 * 1024
_LIMIT, _GAP, _RECENT = 3, timedelta(minutes=5), timedelta(hours=1)
"""So many starts, each within the gap of the one before, trip the breaker."""


@check(id="restart-loop", group="gateway", codes=["GW-CRASH-LOOP"])
def restart_loop(probes: Probes) -> Iterator[Finding]:
    """Has Hermes counted no loop of restarts?"""
    counted = _boots(probes)
    if not counted:
        raise Skip("Hermes has counted no interrupting restart")
    boots = [boot for boot in counted if boot > probes.records.proved_at()]
    if not boots:
        return
    chain = boots[-1:]
    for boot in reversed(boots[:-1]):
        if chain[0] - boot > _GAP:
            break
        chain.insert(0, boot)
    if len(chain) < _LIMIT or datetime.now(UTC) - chain[-1] > _RECENT:
        return
    yield Finding(
        code="GW-CRASH-LOOP",
        severity=Severity.ERROR,
        title=text("{number} restarts in a row interrupted answers", number=len(chain)),
        subject="gateway",
        detail="Users lose answers. To end the loop, Hermes does not continue them after a start.",
        evidence=(
            Evidence(
                _FILE,
                text(
                    "{number} starts from {first} to {last}",
                    number=len(chain),
                    first=clock(chain[0]),
                    last=clock(chain[-1]),
                ),
            ),
        ),
        since=chain[0],
        next="Read in the log what stopped the gateway each time.",
    )


def _boots(probes: Probes) -> list[datetime]:
    """Return the counted starts, oldest first."""
    try:
        json = read_json(probes.home / _FILE, _MOST)
        boots = json.get("boots") if isinstance(json, dict) else None
        numbers = [float(boot) for boot in boots[-100:]] if isinstance(boots, list) else []
        return sorted(datetime.fromtimestamp(number, UTC) for number in numbers)
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, OverflowError, OSError):
        raise CouldNotLook("{file}: could not be read", file=_FILE) from None


_NOTABLE = timedelta(minutes=2)


@check(id="clock-step", group="gateway", codes=["CLOCK-STEP"], needs="gateway")
def clock_step(probes: Probes) -> Iterator[Finding]:
    """Has the clock been steady since the gateway started?"""
    gateway = probes.gateway.running()[0]
    written = datetime.fromtimestamp(snapshot(probes.home / "gateway.pid").mtime_ns / 1e9, UTC)
    back = written - datetime.now(UTC)
    step = max(gateway.clock_step, back)
    if step < _NOTABLE:
        return
    span = duration(step.total_seconds())
    yield Finding(
        code="CLOCK-STEP",
        severity=Severity.INFO,
        title=(
            text("the clock was set back by {span} after the start", span=span)
            if step == back
            else text("the clock jumped forward by {span} after the start", span=span)
        ),
        subject="clock",
        detail=(
            "Times in logs from before and after the jump do not match. Most often the clock was "
            "corrected, or the machine was paused."
        ),
        evidence=(
            Evidence("gateway.pid", text("written {time}, at the start", time=clock(written))),
            Evidence(
                text("process {pid}", pid=gateway.pid),
                text("started {time} by the present clock", time=clock(gateway.running_since)),
            ),
        ),
        next="Compare `date` with another clock. If the time is right, there is nothing to do.",
        data={"step": round(step.total_seconds())},
    )
