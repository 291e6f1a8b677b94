"""Describe the four parts of a bot in one line each: gateway, platforms, model, data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG

from hermes_doctor.examination import asked, model_state
from hermes_doctor.examination.part_problems import PartProblems, silences
from hermes_doctor.lazy import pattern
from hermes_doctor.message import clock, count, duration, text
from hermes_doctor.model import (
    ACCESS,
    DATA,
    GATEWAY,
    MODEL,
    NO_PLATFORM,
    PLATFORM,
    START,
    UNSEEN,
    CouldNotLook,
    Effect,
    Finding,
    Gateway,
    Mark,
    Part,
    PartState,
    Rung,
    RungState,
    Severity,
    Trouble,
)
from hermes_doctor.preferences import effective
from hermes_doctor.probes import next_start
from hermes_doctor.probes.probes import Probes
from hermes_doctor.settings.platforms import Platform
from hermes_doctor.system.files import list_folder, read_head, reason, size
from hermes_doctor.system.once import limited

_CREATED = pattern(rb'"created_at": "([0-9T:.+-]+)"')
_BACKUP = pattern(r"\d{8}-\d{6}-[0-9a-f]{5}")
_WHOLE = b'"whole": true'
_HEAD = 4096
"""Bytes at the start of a manifest that say when the backup was made, and of what."""
DISK = 2.0
"""Seconds within which the disk must answer."""


def describe(
    probes: Probes,
    ladder: Sequence[Rung],
    findings: Sequence[Finding],
    effects: Mapping[str, Effect],
    unchecked: Set[str] = frozenset(),
    left_out: Set[str] = frozenset(),
) -> tuple[PartState, ...]:
    """The state of each part, from what was observed and from the problems that were found.

    `unchecked` has the codes of database checks that could not look, and `left_out` the codes of
    checks that the operator left out.
    """
    problems = PartProblems(findings, effects)
    parts: tuple[tuple[str, Callable[[], Iterable[Part]]], ...] = (
        (GATEWAY, lambda: _gateway(probes, ladder, problems)),
        ("platforms", lambda: _platforms(probes, ladder, problems)),
        (MODEL, lambda: (*model_state.parts(probes, problems), *asked.parts(probes))),
        (DATA, lambda: _data(probes, problems, unchecked, left_out)),
    )
    return tuple(PartState(name, _observed(look)) for name, look in parts)


def _observed(look: Callable[[], Iterable[Part]]) -> tuple[Part, ...]:
    try:
        return tuple(look())
    except CouldNotLook as doubt:
        return (Part(Mark.UNKNOWN, f"{UNSEEN}{doubt}"),)


def _gateway(probes: Probes, ladder: Sequence[Rung], problems: PartProblems) -> Iterable[Part]:
    if not ladder:
        raise CouldNotLook("the processes could not be read")
    process, rungs = ladder[0], {rung.name: rung for rung in ladder}
    due = probes.next_start()
    if process.hold is RungState.FAILED:
        stopped = _stopped(process, problems)
        then = due.what if due else next_start.not_enabled(probes)
        yield stopped._replace(text=f"{stopped.text}; {then}") if then else stopped
        return
    if process.hold is RungState.UNKNOWN:
        raise CouldNotLook(process.what)
    if not probes.gateways():  # another home's gateway serves it
        yield Part(Mark.GOOD, process.what)
        return
    runs = text(
        "starting ({process})" if due else "running for {period} ({process})",
        period=_since(process.since),
        process=process.what,
    )
    problem, later = problems.of(GATEWAY, ACCESS), problems.of(START)
    if due and due.seconds is not None:
        words = problems.words(problem) if problem else "does not stay up"
        yield Part(Mark.BAD, f"{words}; {due.what}")
        return
    if later and due and not problem:
        problem = later
    elif later and silences(later) and not (problem and silences(problem)):
        yield Part(Mark.LIMITED, f"{runs}, but its next start will fail")
        return
    if problem:
        mark = Mark.BAD if silences(problem) else Mark.LIMITED
        yield Part(mark, f"{runs}, but {problems.words(problem)}")
        return
    supervised = rungs.get("supervised")
    if supervised is None or supervised.hold is RungState.UNKNOWN:
        yield Part(Mark.GOOD, runs)
    elif supervised.hold is RungState.OK:
        found = probes.supervision()
        keeper = found.keeper.name if found.keeper else "its supervisor"
        manager = found.owner.manager_name if found.owner else keeper
        yield Part(Mark.GOOD, f"{runs}, restarted by {manager}")
    else:
        yield Part(Mark.LIMITED, f"{runs}; nothing restarts it")


def _stopped(process: Rung, problems: PartProblems) -> Part:
    down = problems.down()
    if down is not None and down.data.get("never"):
        return Part(Mark.BAD, "has never run here")
    since = (down and down.since) or process.since
    stopped = down is not None and down.severity is Severity.INFO
    if since is None:
        return Part(Mark.NONE if stopped or down is None else Mark.BAD, "not running")
    if stopped:
        return Part(Mark.NONE, text("stopped on purpose at {time}", time=clock(since)))
    return Part(Mark.BAD, text("not running since {time}", time=clock(since)))


def _since(moment: datetime | None) -> str:
    return duration((datetime.now(UTC) - moment).total_seconds()) if moment else "some time"


def _platforms(probes: Probes, ladder: Sequence[Rung], problems: PartProblems) -> Iterable[Part]:
    platforms = probes.platforms()
    if not platforms and (unreadable := probes.settings().unreadable):
        raise CouldNotLook(unreadable[0])
    if not platforms:
        yield Part(Mark.NONE, NO_PLATFORM)
        return
    runs = bool(ladder) and ladder[0].hold is RungState.OK
    stuck = any(rung.name == "event loop" and rung.hold is RungState.FAILED for rung in ladder)
    states = probes.runtime().platforms if runs else {}
    gateways = probes.gateways() if runs else []
    for platform in platforms:
        problem = problems.of(PLATFORM, platform=platform.name)
        if problem:
            mark = Mark.BAD if silences(problem) else Mark.LIMITED
            yield Part(mark, f"{platform.label}: {problems.words(problem)}")
            continue
        state = states.get(platform.name)
        if state is None:
            yield Part(Mark.NONE if not runs else Mark.UNKNOWN, platform.label)
        elif state.state == "connected" and stuck:
            yield Part(Mark.UNKNOWN, platform.label)
        elif state.state == "connected":
            yield _connected(probes, platform, gateways)
        else:
            yield Part(Mark.BAD, f"{platform.label}: {state.state}")


def _connected(probes: Probes, platform: Platform, gateways: Sequence[Gateway]) -> Part:
    """A platform that the gateway calls connected; its log may show that it is not."""
    proof = probes.platform_proof(gateways[0], platform.name) if gateways else None
    if proof is None or proof.connected:
        return Part(Mark.GOOD, platform.label)
    if proof.is_reconnecting:
        return Part(Mark.LIMITED, f"{platform.label}: connecting")
    return Part(Mark.BAD, f"{platform.label}: not connected")


def _data(
    probes: Probes, problems: PartProblems, unchecked: Set[str], left_out: Set[str]
) -> Iterable[Part]:
    problem = problems.of(DATA)
    end = probes.end + 1
    try:
        said = [limited("size of the history", DISK, lambda: _history(probes, bool(problem)), end)]
    except CouldNotLook:
        if problem is None:
            raise
        said = []
    try:
        jobs = probes.jobs()
        if jobs:
            said.append(count(len(jobs), "scheduled job"))
    except CouldNotLook:
        pass
    try:
        said.append(limited("backups", DISK, lambda: _newest_backup(probes), end))
    except CouldNotLook:
        said.append("age of the backup unknown")
    shown = ", ".join(filter(None, said))
    if problem:
        mark = Mark.BAD if silences(problem) else Mark.LIMITED
        yield Part(mark, problems.words(problem))
        yield Part(Mark.NONE, shown)
    elif problems.any_of(DATA, unchecked):
        yield Part(Mark.UNKNOWN, "could not check all of it")
        yield Part(Mark.NONE, shown)
    else:
        yield Part(Mark.NONE if problems.any_of(DATA, left_out) else Mark.GOOD, shown)


def _history(probes: Probes, broken: bool) -> str:
    """The size of the message history; "" if it is missing and a problem says so."""
    history = probes.home.path / "state.db"
    try:
        st = history.stat()
    except FileNotFoundError:
        if history.is_symlink():
            raise CouldNotLook("state.db is a link that leads nowhere") from None
        return "" if broken else "no history yet"
    except OSError as error:
        raise CouldNotLook(reason(error, history)) from error
    if not S_ISREG(st.st_mode):
        raise CouldNotLook("state.db is not a file")
    if not os.access(history, os.R_OK):
        raise CouldNotLook("state.db: permission denied")
    return text("history {size}", size=size(st.st_size))


def _vault(probes: Probes) -> Path:
    """Where the backups of the home are."""
    try:
        return effective.load().vault(probes.home.path) or probes.home.vault
    except Trouble as trouble:
        raise CouldNotLook(str(trouble)) from None


def _newest_backup(probes: Probes) -> str:
    """How old the newest backup of the whole home is."""
    vault, home = _vault(probes), json.dumps(str(probes.home.path)).encode()
    try:
        names = sorted(filter(_BACKUP.fullmatch, list_folder(vault)), reverse=True)
    except CouldNotLook as why:
        return text("the backups could not be checked ({reason})", reason=why)
    for name in names[:20]:
        try:
            head, _ = read_head(vault / name / "manifest.json", _HEAD)
        except (CouldNotLook, OSError):
            continue
        made = _CREATED.search(head)
        own = vault == probes.home.vault or b'"home": ' + home in head
        if made and own and _WHOLE in head:
            try:
                when = datetime.fromisoformat(made[1].decode())
                return text("backup {age} old", age=_since(when))
            except ValueError:
                continue
    return "no full backup"
