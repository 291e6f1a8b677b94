"""Describe the four parts of a bot in one line each: gateway, platforms, model, data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from stat import S_ISREG

from hermes_doctor.core import redaction
from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.message import clock, count, duration, text
from hermes_doctor.core.model import (
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
    known_or,
)
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system.cached_calls import limited
from hermes_doctor.core.system.files import list_folder, read_head, reason, size
from hermes_doctor.diagnosis.examination import liveness
from hermes_doctor.diagnosis.examination.ranking import PartProblems, breaks_whole_part
from hermes_doctor.diagnosis.probes import next_start
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.settings.platforms import Platform

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
        (MODEL, lambda: (*model_parts(probes, problems), *liveness.last_ask_parts(probes))),
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
    due = probes.health.next_start()
    if process.hold is RungState.FAILED:
        stopped = _stopped(process, problems)
        then = due.what if due else next_start.not_enabled(probes.gateway)
        yield stopped._replace(text=f"{stopped.text}; {then}") if then else stopped
        return
    if process.hold is RungState.UNKNOWN:
        raise CouldNotLook(process.what)
    if not probes.gateway.running():  # another home's gateway serves it
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
    elif later and breaks_whole_part(later) and not (problem and breaks_whole_part(problem)):
        yield Part(Mark.LIMITED, f"{runs}, but its next start will fail")
        return
    if problem:
        mark = Mark.BAD if breaks_whole_part(problem) else Mark.LIMITED
        yield Part(mark, f"{runs}, but {problems.words(problem)}")
        return
    supervised = rungs.get("supervised")
    if supervised is None or supervised.hold is RungState.UNKNOWN:
        yield Part(Mark.GOOD, runs)
    elif supervised.hold is RungState.OK:
        supervision = probes.gateway.supervision()
        keeper = supervision.keeper.name if supervision.keeper else "its supervisor"
        manager = supervision.owner.manager_name if supervision.owner else keeper
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
    platforms = probes.settings.platforms()
    if not platforms and (unreadable := probes.settings.effective().unreadable):
        raise CouldNotLook(unreadable[0])
    if not platforms:
        yield Part(Mark.NONE, NO_PLATFORM)
        return
    runs = bool(ladder) and ladder[0].hold is RungState.OK
    stuck = any(rung.name == "event loop" and rung.hold is RungState.FAILED for rung in ladder)
    states = probes.gateway.runtime().platforms if runs else {}
    gateways = probes.gateway.running() if runs else []
    for platform in platforms:
        problem = problems.of(PLATFORM, platform=platform.name)
        if problem:
            mark = Mark.BAD if breaks_whole_part(problem) else Mark.LIMITED
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
    proof = probes.health.platform_proof(gateways[0], platform.name) if gateways else None
    if proof is None or proof.connected:
        return Part(Mark.GOOD, platform.label)
    if proof.is_reconnecting:
        return Part(Mark.LIMITED, f"{platform.label}: connecting")
    return Part(Mark.BAD, f"{platform.label}: not connected")


def _data(
    probes: Probes, problems: PartProblems, unchecked: Set[str], left_out: Set[str]
) -> Iterable[Part]:
    problem = problems.of(DATA)
    end = probes.cache.end + 1
    try:
        said = [limited("size of the history", DISK, lambda: _history(probes, bool(problem)), end)]
    except CouldNotLook:
        if problem is None:
            raise
        said = []
    if jobs := known_or([], probes.stores.jobs):
        said.append(count(len(jobs), "scheduled job"))
    newest = partial(limited, "backups", DISK, lambda: _newest_backup(probes), end)
    said.append(known_or("age of the backup unknown", newest))
    shown = ", ".join(filter(None, said))
    if problem:
        mark = Mark.BAD if breaks_whole_part(problem) else Mark.LIMITED
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


def _newest_backup(probes: Probes) -> str:
    """How old the newest backup of the whole home is."""
    home = json.dumps(str(probes.home.path)).encode()
    try:
        vault = effective.load().vault(probes.home.path) or probes.home.vault
    except Trouble as trouble:
        raise CouldNotLook(str(trouble)) from None
    try:
        names = sorted(filter(_BACKUP.fullmatch, list_folder(vault)), reverse=True)
    except CouldNotLook as why:
        return text("the backups could not be checked ({reason})", reason=why)
    for name in names[:20]:
        try:
            head, _ = read_head(vault / name / "manifest.json", _HEAD)
        except (CouldNotLook, OSError):
            continue
        match = _CREATED.search(head)
        own = vault == probes.home.vault or b'"home": ' + home in head
        if match and own and _WHOLE in head:
            try:
                when = datetime.fromisoformat(match[1].decode())
                return text("backup {age} old", age=_since(when))
            except ValueError:
                continue
    return "no full backup"


def model_parts(probes: Probes, problems: PartProblems) -> Iterable[Part]:
    """The model that answers, or why it does not, and what is known of its fallback."""
    resolved = probes.settings.resolved()
    if resolved.world.document.fault:
        yield Part(Mark.BAD, "unknown, config.yaml cannot be read")
        return

    def shown(value: str | None) -> str:
        return redaction.redact_words(value or "")

    route = resolved.used or resolved.main
    called = route.operators_name or (route.provider or route.requested).value
    provider = shown(called) or "no provider"
    model = shown(route.model.value)
    name = f"{provider}, {model}" if model else provider
    problem = problems.of(MODEL)
    if resolved.used is not None and resolved.used.path != MODEL:
        wrong = problems.words(problem) if problem else "not usable"
        wanted = shown(resolved.main.requested.value) or "the main provider"
        mark = Mark.BAD if problem and breaks_whole_part(problem) else Mark.LIMITED
        yield Part(mark, f"{wanted}: {wrong}; the fallback {name} is used")
        return
    if problem:
        mark = Mark.BAD if breaks_whole_part(problem) else Mark.LIMITED
        fallback, spare = problem.data.get("fallback"), problems.of_fallback()
        told = name if problem == spare else f"{name}: {problems.words(problem)}"
        rest = f"; the fallback {fallback} answers" if fallback else ""
        if spare:
            rest = f"; fallback {spare.data['about_fallback']}: {problems.words(spare)}"
        yield Part(mark, f"{told}{rest}")
        return
    if resolved.used is None:
        wants = (route.requested.value or "auto").lower()
        said = "no provider is set up" if wants == "auto" else f"{name}: cannot be used"
        yield Part(Mark.BAD, said)
        return
    spares = [shown(one.requested.value) for one in resolved.fallback if one.trouble is None]
    rest = f"; fallback {spares[0]}" if spares else "; no fallback"
    yield Part(Mark.GOOD, name + rest)
