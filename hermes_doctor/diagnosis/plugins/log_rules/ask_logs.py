"""Apply log rules to the logs of a home, which are read once in order of time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.core.system.files import MEGABYTE, read
from hermes_doctor.diagnosis.plugins.log_causes.reading import Reader
from hermes_doctor.diagnosis.plugins.log_rules.incident import Incident
from hermes_doctor.diagnosis.plugins.log_rules.incident_tracker import IncidentTracker
from hermes_doctor.diagnosis.plugins.log_rules.needed_entries import LOGS
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.hermes.logs.entry import LogEntry, Unread
from hermes_doctor.hermes.logs.stream import COMPLETE_LOG, GATEWAY, QUICK

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.probes import Probes

FURTHER = 16 * MEGABYTE
"""Bytes of a log to read when the quick pass does not reach back far enough."""
SESSIONS, MOST_SESSIONS = "sessions/sessions.json", 8 * MEGABYTE
RECENT = 1.5 * 3600.0
"""Seconds before now since when also lines are read that can only end something.

Most of what goes on began recently, and then the logs need not be read a second time.
"""
LIVED = 30.0
"""Seconds a process must have lived to count as a start; a second gateway is refused at once."""


class LogAnswer(NamedTuple):
    """The incidents found in the logs, and the logs that could not be read."""

    incidents: tuple[Incident, ...]
    """Including those that are over."""
    where: Callable[[LogEntry], str]
    unread: tuple[Unread, ...]
    ends_since: float
    """Since when a skipped line could have ended an open incident; infinity if none is open."""
    until: float = math.inf
    """When the answer may change although nothing is written into a log."""


def ask(
    probes: Probes,
    rules: Sequence[Rule],
    reader: Reader | None = None,
    symptoms: Collection[str] = (),
) -> LogAnswer:
    """Read the logs as far back as the rules need; read more if the quick pass is unclear."""
    made = partial(
        IncidentTracker,
        rules,
        release=known_or(None, probes.hermes.release),
        starts=_starts(probes),
        handled=probes.records.handled(),
        chats=lru_cache(lambda: _chats(probes)),
        reader=reader,
        symptoms=symptoms,
    )
    if probes.deep:
        return _once(probes, made, None)
    recently = time.time() - RECENT
    asked = _once(probes, made, QUICK, ends_since=recently)
    until = asked.until
    if asked.ends_since < recently:
        asked = _once(probes, made, QUICK, ends_since=asked.ends_since)
        until = min(until, asked.until)
        if any(incident.doubtful for incident in asked.incidents):
            asked = _once(probes, made, FURTHER)
            until = min(until, asked.until)
    return asked._replace(until=until)


def _once(
    probes: Probes,
    made: Callable[..., IncidentTracker],
    most: int | None,
    *,
    ends_since: float = -math.inf,
) -> LogAnswer:
    """Read the logs once. Skip lines before `ends_since` that can only end an incident.

    In the log of a healthy gateway most lines could end something that never began. Skipping them
    saves about a tenth of a check.
    """
    ledger = made(now=time.time())
    needed = ledger.needed
    reading = probes.logs.entries(
        needed.since(*LOGS),
        needed.wanted,
        wanted_since=needed.wanted_since(ends_since),
        records_since=needed.since(),
        errors_since=needed.since_days(),
        most=most,
    )
    for entry in reading:
        ledger.add_entry(entry)
    unread = list(reading.unread)
    if ledger.dropped:
        unread.append(Unread("logs", "there are too many different incidents to show all", True))
    incidents = tuple(
        _doubted(incident, reading.covered)
        for incident in ledger.incidents()
        if _counts(probes, incident)
    )
    until = ledger.next_change.at
    if any(incident.doubtful for incident in incidents):  # it says when the log starts
        until = ledger.now
    return LogAnswer(incidents, reading.where, tuple(unread), ledger.ends_since(), until)


def _counts(probes: Probes, incident: Incident) -> bool:
    """Tell whether the rule counts for the platform of its incident, if it is about one."""
    platform = incident.key.get("platform")
    if not incident.rule.only_set_up or platform is None:
        return True
    return known_or(
        True, lambda: platform in {one.name.lower() for one in probes.settings.platforms()}
    )


def _doubted(incident: Incident, covered: Mapping[str, float]) -> Incident:
    """Mark an incident if the log that would record its end does not reach back to it.

    Warnings are also in a log of their own that goes back further.
    """
    if incident.cleared_at is not None or incident.rule.source != "log":
        return incident
    logs = {log for line in incident.rule.cleared_by for log in _logs(line)}
    begin = max((covered.get(log, 0.0) for log in logs), default=0.0)
    return incident._replace(doubtful=begin) if incident.last < begin else incident


def _logs(line: LinePattern) -> Iterable[str]:
    """Yield the logs that contain such a line, unless it is a warning."""
    if line.level not in ("DEBUG", "INFO"):
        return
    own = [name for name in line.loggers if name.startswith(GATEWAY)]
    if own or not line.loggers:
        yield "logs/gateway.log"
    if len(own) < len(line.loggers) or not line.loggers:
        yield f"logs/{COMPLETE_LOG}"


def _chats(probes: Probes) -> dict[str, str]:
    """Map each session of the gateway to its chat: the last part of the session's key."""
    import json

    try:
        said = json.loads(read(probes.home / SESSIONS, MOST_SESSIONS)[0])
        named = [(one["session_id"], key) for key, one in said.items() if isinstance(one, dict)]
    except (OSError, CouldNotLook, ValueError, KeyError, AttributeError, RecursionError):
        return {}
    return {id: key.rpartition(":")[2] for id, key in named if isinstance(id, str)}


def _starts(probes: Probes) -> list[float]:
    """Return when processes of the gateway started, without those that stopped at once."""
    found: list[datetime] = []
    try:
        lives = probes.gateway.diary()
        later = [life.began for life in lives[1:]]
        for life, after in zip(lives, [*later, None], strict=False):
            ended = life.ended or after
            if life.how == "alive" or (
                ended is not None and (ended - life.began).total_seconds() > LIVED
            ):
                found.append(life.began)
        found += [gateway.started_at for gateway in probes.gateway.running()]
    except CouldNotLook:
        pass
    return sorted({at.timestamp() for at in found})
