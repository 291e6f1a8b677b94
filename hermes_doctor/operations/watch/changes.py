"""Compares a round with the previous one: which findings are new, worse, better or gone.

A finding is gone only when its check ran and did not report it. While the check has no answer, its
last finding is kept. A problem that keeps coming and going causes one notice, and one when it has
settled, unless it gets worse than reported before; the events of each change are still printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Finding, Report, Severity, Status
from hermes_doctor.diagnosis.examination.condition import is_doubtful
from hermes_doctor.operations.watch.events import PRESENT, EventKind, Key, WatchEvent

STATES = 21
STARTS, SETTLES = 20.0, 5.0
"""Percent."""
OLDEST, NEWEST = 0.75, 1.25
"""How much a change counts."""


class Flapping(NamedTuple):
    """The last states of one problem, one character each, oldest first."""

    states: str
    flaps: bool = False
    title: str = ""
    """How the problem was last called, which matters when it is gone."""
    check: str = ""
    muted: bool = False
    reported: str = ""
    """The worst state that was reported since it flaps; empty if none was."""

    @property
    def changes(self) -> int:
        """How often the state changed."""
        return sum(
            state != other for state, other in zip(self.states, self.states[1:], strict=False)
        )

    @property
    def is_steady(self) -> bool:
        """Whether there is nothing to remember: it does not flap and never changed."""
        return not self.flaps and not self.changes


def percent(states: str) -> float:
    """How much the states change, weighted by age, in percent."""
    recent = states[-STATES:].rjust(STATES, states[:1] or " ")
    weights = (OLDEST + (NEWEST - OLDEST) * place / (STATES - 2) for place in range(STATES - 1))
    pairs = zip(recent, recent[1:], weights, strict=False)
    return 100 * sum(weight for state, other, weight in pairs if state != other) / (STATES - 1)


def flapping_after(known: Flapping | None, before: str, now: str) -> Flapping:
    """Add a state; without known states, the problem was in the state `before` all the time."""
    states = known.states if known else before * STATES
    recent = (states + now)[-STATES:]
    share = percent(recent)
    was = known.flaps if known else False
    flaps = share > SETTLES if was else share >= STARTS
    return (known or Flapping(""))._replace(states=recent, flaps=flaps)


BLIND_AFTER = 3
"""Rounds without an answer before the watch reports it: a busy machine may be slow once."""


class CurrentFinding(NamedTuple):
    """A current finding, and in how many rounds it was seen."""

    severity: Severity
    title: str
    check: str
    rounds: int
    """Rounds in a row as a problem, or as an info; 0 while its check has no answer."""
    error_rounds: int = 0
    """Rounds in a row in which it was an error or worse."""
    muted: bool = False


class RoundChanges(NamedTuple):
    """The result of comparing one round with the previous one."""

    current: dict[Key, CurrentFinding]
    unanswered: dict[str, int]
    """By check: for how many rounds in a row it has had no answer."""
    events: list[WatchEvent]


def compare(
    before: Mapping[Key, CurrentFinding],
    unanswered: Mapping[str, int],
    report: Report,
    at: datetime,
    max_rounds: int,
) -> RoundChanges:
    """Compare a report with the previous round; the counts of rounds stop at `max_rounds`."""
    found = _by_key(report.findings)
    doubtful = {c.id for c in report.checks if is_doubtful(c)}
    asked = {c.id for c in report.checks}
    after: dict[Key, CurrentFinding] = {}
    events: list[WatchEvent] = []
    for key, finding in found.items():
        old = before.get(key)
        after[key] = _counted(old, finding, max_rounds)
        kind = _kind(old, finding)
        if kind is not None:
            events.append(finding_event(report, finding, kind, at, old.severity if old else None))
    for key, old in before.items():
        if key in found:
            continue
        if old.check in doubtful or old.check not in asked:
            after[key] = old._replace(rounds=0, error_rounds=0)
        else:
            code, subject = key
            events.append(
                WatchEvent(
                    EventKind.GONE,
                    at,
                    old.title,
                    code=code,
                    subject=subject,
                    was=old.severity,
                    muted=old.muted,
                )
            )
    open_now = [c for c in report.checks if c.status in (Status.UNKNOWN, Status.CRASHED)]
    counts = {c.id: min(unanswered.get(c.id, 0) + 1, BLIND_AFTER) for c in open_now}
    for check in open_now:
        if counts[check.id] == BLIND_AFTER and unanswered.get(check.id, 0) < BLIND_AFTER:
            text = f"could not check {check.id}: {check.reason}"
            if check.status is Status.CRASHED:
                text = f"the check {check.id} crashed: {check.reason}"
            events.append(WatchEvent(EventKind.BLIND, at, text))
    for id, count in unanswered.items():
        if count >= BLIND_AFTER and id not in counts:
            events.append(WatchEvent(EventKind.SEES, at, f"the check {id} works again"))
    return RoundChanges(after, counts, events)


def finding_event(
    report: Report,
    finding: Finding,
    kind: EventKind,
    at: datetime,
    previous_severity: Severity | None = None,
) -> WatchEvent:
    offer = report.offer(finding)
    return WatchEvent(
        kind,
        at,
        finding.title,
        severity=finding.severity,
        code=finding.code,
        subject=finding.subject,
        was=previous_severity if previous_severity is not finding.severity else None,
        since=finding.since,
        command=offer.command if offer else f"hermes-doctor explain {finding.code}",
        muted=finding.muted,
    )


def _by_key(findings: Iterable[Finding]) -> dict[Key, Finding]:
    found: dict[Key, Finding] = {}
    for finding in sorted(findings, key=lambda one: one.severity.rank):
        found.setdefault(finding.key, finding)
    return found


def _counted(old: CurrentFinding | None, finding: Finding, max_rounds: int) -> CurrentFinding:
    """Count this round; a change between warning and error does not restart the count."""
    worth = finding.severity is not Severity.INFO
    before = old is not None and (old.severity is not Severity.INFO) is worth
    seen = min(max_rounds, (old.rounds if old and before else 0) + 1)
    grave = (
        min(max_rounds, (old.error_rounds if old else 0) + 1) if is_grave(finding.severity) else 0
    )
    return CurrentFinding(
        finding.severity, finding.title, finding.check, seen, grave, finding.muted
    )


def is_grave(severity: Severity) -> bool:
    """Whether the finding is severe enough to start or stop the gateway for it."""
    return severity.rank <= Severity.ERROR.rank


def _kind(old: CurrentFinding | None, finding: Finding) -> EventKind | None:
    if old is None:
        return EventKind.NEW
    if old.muted and not finding.muted and finding.severity.rank >= old.severity.rank:
        return EventKind.UNMUTED
    if finding.muted and not old.muted:
        return EventKind.MUTED
    if finding.severity is old.severity:
        return None
    return EventKind.WORSE if finding.severity.rank < old.severity.rank else EventKind.BETTER


ABSENT = "-"
_LETTERS = {severity: severity.value[0] for severity in Severity}
_SEVERITIES = {letter: severity for severity, letter in _LETTERS.items()}
_CHANGES = (*PRESENT, EventKind.GONE)
MOST = 1000
"""Problems whose states are kept."""


def follow(
    known: dict[Key, Flapping],
    before: Mapping[Key, CurrentFinding],
    round_changes: RoundChanges,
    at: datetime,
) -> list[WatchEvent]:
    """Add the states of this round; return an event for each that starts or stops flapping."""
    events = []
    for key in list(dict.fromkeys((*known, *before, *round_changes.current))):
        now, old = round_changes.current.get(key), known.get(key)
        if now is not None:
            unknown = not now.rounds
        else:
            unknown = old is not None and old.check in round_changes.unanswered
        if unknown:
            continue
        made = flapping_after(old, _state(before.get(key)), _state(now))
        seen = now or before.get(key)
        if seen is not None:
            made = made._replace(title=seen.title, check=seen.check, muted=seen.muted)
        made = made._replace(reported=_reported(old, made, before.get(key)))
        if made.flaps != (old is not None and old.flaps):
            events.append(_event(key, made, now, at)._replace(muted=made.muted))
        if made.is_steady or (old is None and len(known) >= MOST):
            known.pop(key, None)
        else:
            known[key] = made
    return events


def is_quiet(known: Mapping[Key, Flapping], event: WatchEvent) -> bool:
    """Whether no notice is sent for this event: its problem flaps and is not worse than before."""
    flapping = known.get(event.key)
    if event.kind not in _CHANGES or flapping is None or not flapping.flaps:
        return False
    reported = _SEVERITIES.get(flapping.reported)
    return event.severity is None or (reported is not None and event.severity.rank >= reported.rank)


def restored(
    states: str,
    flaps: bool,
    title: str = "",
    check: str = "",
    muted: bool = False,
    reported: str | None = None,
) -> Flapping:
    """The states of a problem as they were stored; an older watch stored only the first two."""
    if reported not in ("", *_SEVERITIES):
        reported = _worst(states) if flaps else ""
    return Flapping(states, flaps, title, check, muted, reported or "")


def is_valid(states: str) -> bool:
    """Whether a stored text can be the last states of a problem."""
    return 0 < len(states) <= STATES and set(states) <= {ABSENT, *_SEVERITIES}


def _state(finding: CurrentFinding | None) -> str:
    return ABSENT if finding is None else _LETTERS[finding.severity]


def _reported(old: Flapping | None, made: Flapping, before: CurrentFinding | None) -> str:
    """The worst state that was reported before this round, or is reported as it starts to flap."""
    if not made.flaps:
        return ""
    if old is None or not old.flaps:
        return "" if made.muted else _worst(made.states)
    told = before is not None and not before.muted
    return _worst(old.reported + (_state(before) if told else ""))


def _worst(states: str) -> str:
    """The worst of some states; empty if the problem was in none of them."""
    seen = [state for state in states if state in _SEVERITIES]
    return min(seen, key=lambda one: _SEVERITIES[one].rank, default="")


def _event(key: Key, made: Flapping, now: CurrentFinding | None, at: datetime) -> WatchEvent:
    worst = _SEVERITIES.get(_worst(made.states), Severity.WARNING)
    name = f"{made.title}; it" if made.title else "it"
    page = f"hermes-doctor explain {key[0]}"
    if made.flaps:
        text = (
            f"{name} keeps coming and going: {made.changes} changes in the last {STATES} checks. "
            "No more notices until it settles"
        )
        return WatchEvent(
            EventKind.FLAPS, at, text, severity=worst, code=key[0], subject=key[1], command=page
        )
    if now is None:
        text = f"{name} has settled and is gone"
        return WatchEvent(EventKind.STABLE, at, text, code=key[0], subject=key[1], was=worst)
    return WatchEvent(
        EventKind.STABLE,
        at,
        f"{name} has settled and is still there",
        severity=now.severity,
        code=key[0],
        subject=key[1],
        was=worst if worst is not now.severity else None,
        command=page,
    )
