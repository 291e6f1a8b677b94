"""Make a timeline of the events in a home, in chronological order.

Restarts, incidents, edits, updates, backups and repairs are recorded in different places; on one
timeline they often explain each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.hermes.processes.runtime_files import NAME as EXIT_DIARY

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.processes.runtime_files import GatewayLife

_EDITED = ("config.yaml", ".env", "gateway.json", "SOUL.md")
_ENDS = {
    "clean": "ended in order",
    "failed": "ended with an error",
    "restart": "ended to be started again",
    "gone": "disappeared without a log line",
}


class TimelineEvent(NamedTuple):
    """One event of the timeline."""

    at: datetime
    kind: str
    """start, end, incident, recovery, edit, update, backup, fix, undo or restore."""
    what: str
    where: str = ""
    severity: str = ""
    code: str = ""
    times: int = 1
    until: datetime | None = None
    """When it was last seen, or ended."""


class Timeline(NamedTuple):
    """The events since a given time, oldest first, and which sources could not be read."""

    since: datetime
    events: tuple[TimelineEvent, ...]
    unknown: tuple[str, ...]


def make_timeline(probes: Probes, rules: Sequence[Rule], since: datetime) -> Timeline:
    """Collect the events of all sources; a source that cannot be read does not hide the others."""
    doubts: list[str] = []
    events: list[TimelineEvent] = []
    sources: list[Callable[[], Iterator[TimelineEvent]]] = [
        lambda: _lives(probes),
        lambda: _incidents(probes, rules, since, doubts),
        lambda: _edits(probes),
        lambda: _updates(probes),
        lambda: _backups(probes, doubts),
        lambda: _runs(probes, doubts),
    ]
    for source in sources:
        try:
            events += source()
        except (CouldNotLook, Trouble) as doubt:
            doubts.append(str(doubt))
    kept = [event for event in events if max(event.at, event.until or event.at) >= since]
    return Timeline(since, tuple(sorted(kept, key=lambda one: one.at)), tuple(doubts))


def _lives(probes: Probes) -> Iterator[TimelineEvent]:
    lives = probes.gateway.diary()
    for life, later in zip(lives, [*lives[1:], None], strict=False):
        yield TimelineEvent(life.began, "start", f"gateway started, process {life.pid}", EXIT_DIARY)
        if life.how != "alive":
            yield _end(life, later)


def _end(life: GatewayLife, later: GatewayLife | None) -> TimelineEvent:
    how = _ENDS.get(life.how, life.how)
    if life.ended is None:
        at = later.began if later else life.began
        return TimelineEvent(at, "end", f"process {life.pid} {how}", EXIT_DIARY, "error")
    code = f" (exit {life.exit_code})" if life.exit_code else ""
    kind = f": {life.error}" if life.error else ""
    severity = "error" if life.how == "failed" else ""
    what = f"gateway {how}{code}{kind}, process {life.pid}"
    return TimelineEvent(life.ended, "end", what, EXIT_DIARY, severity)


def _incidents(
    probes: Probes, rules: Sequence[Rule], since: datetime, doubts: list[str]
) -> Iterator[TimelineEvent]:
    from hermes_doctor.diagnosis.plugins.log_rules.ask_logs import ask
    from hermes_doctor.diagnosis.plugins.log_rules.findings import moment, title

    span = max(0.0, time.time() - since.timestamp())
    known = (rule for rule in rules if not rule.unknown)
    stretched = [rule._replace(window=max(rule.window, span)) for rule in known]
    asked = ask(probes, stretched)
    for incident in asked.incidents:
        rule = incident.rule
        yield TimelineEvent(
            moment(incident.first),
            "incident",
            title(incident),
            asked.where(incident.quotes[0].entry),
            rule.severity,
            rule.code,
            incident.number,
            moment(incident.last),
        )
        if incident.cleared_at is not None:
            over = moment(incident.cleared_at)
            yield TimelineEvent(over, "recovery", f"over: {title(incident)}", code=rule.code)
    doubts += [f"{source}: {why}" for source, why, _ in asked.unread]


def _edits(probes: Probes) -> Iterator[TimelineEvent]:
    """The last edit of each file; earlier ones are not recorded anywhere."""
    for name in _EDITED:
        if at := probes.files.modified(probes.home / name):
            yield TimelineEvent(at, "edit", f"{name} was written last", name)


def _updates(probes: Probes) -> Iterator[TimelineEvent]:
    installed = probes.hermes.installation()
    if (code := probes.hermes.code_change()) and installed:
        yield TimelineEvent(
            code.at,
            "update",
            f"Hermes {installed.version} was installed",
            "" if code.path.name == "RECORD" else code.path.name,  # the installer's list of files
        )
    if done := probes.hermes.last_update():
        yield TimelineEvent(
            done.at, "update", "`hermes update` ended", probes.home.name_of(done.path)
        )


def _backups(probes: Probes, doubts: list[str]) -> Iterator[TimelineEvent]:
    from hermes_doctor.backup.vault.vault import Vault

    try:
        vault = Vault(probes.home)
    except Trouble as doubt:
        doubts.append(f"backups: {doubt}")
        return
    for id in filter(vault.began, vault.ids()):
        try:
            backup = vault.load(id)
        except (CouldNotLook, Trouble) as doubt:
            doubts.append(f"backup {id}: {doubt}")
            continue
        yield TimelineEvent(backup.created_at, "backup", f"backup: {backup.reason}", id)


def _runs(probes: Probes, doubts: list[str]) -> Iterator[TimelineEvent]:
    from hermes_doctor.backup.records.journal import DONE, UNDONE, Journals

    journals = Journals(probes.home)
    for id in journals.ids():
        try:
            run = journals.load(id)
            at = datetime.fromisoformat(run.started_at)
        except (CouldNotLook, Trouble, ValueError) as doubt:
            doubts.append(f"run {id}: {doubt}")
            continue
        cured = ", ".join(dict.fromkeys(item.code for item in run.items if item.code))
        until = datetime.fromisoformat(run.ended_at) if run.ended_at else None
        severity = "" if run.state in (DONE, UNDONE) else "warning"
        what = f"{run.kind}{f' of {cured}' if cured else ''}: {run.state}"
        yield TimelineEvent(at, run.kind, what, id, severity, until=until)
