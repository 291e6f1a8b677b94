"""Reduces a report, and the receipts of a home, to what the history keeps of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from hermes_doctor.backup.records.journal import Journals
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Finding, Report, Severity, Trouble
from hermes_doctor.core.redaction import clean
from hermes_doctor.diagnosis.examination.condition import Condition, condition_of
from hermes_doctor.operations.history import layout

LONGEST_TITLE, LONGEST_SUBJECT = 120, 160
"""Characters that are kept, so that a year stays small."""
OPTIONS = frozenset({"--deep", "--network"})
"""Options with which a check finds more."""
STEP = 600
"""The start of a process is derived from the clock and varies by a second, so it is rounded."""
BROKEN = "plugin:"
"""How the result of a plugin that could not be loaded is named."""

Key = tuple[str, str]


def stored_text(text: str, longest: int = LONGEST_TITLE) -> str:
    """A text as the history keeps it: what cannot be printed or stored is replaced, long is cut."""
    return clean(text)[:longest]


def stored_key(code: str, subject: str) -> Key:
    """The code and subject of a finding as the history keeps them."""
    return stored_text(code), stored_text(subject, LONGEST_SUBJECT)


class SeenFinding(NamedTuple):
    """A finding as the history keeps it."""

    severity: Severity
    title: str
    check: str


class RunningGateway(NamedTuple):
    """The gateway of a home."""

    pid: int
    started: int


class Observation(NamedTuple):
    """What one check of a home found."""

    at: int
    condition: Condition | None
    """None if only some checks ran, which says nothing about the bot as a whole."""
    findings: Mapping[Key, SeenFinding]
    loaded: frozenset[str]
    """The checks that there are, as far as they were asked for."""
    looked: frozenset[str]
    """Checks among them that ran and looked at everything."""
    codes: frozenset[str] | None
    """The codes that were looked for; None for all."""
    hermes: str | None
    gateways: tuple[RunningGateway, ...] | None
    """The one that was started last; None if the processes could not be read."""
    options: frozenset[str] = frozenset()
    """Those of OPTIONS that the check had."""
    identity: str = ""
    """Which folder the home was; it may be gone when this is written."""

    def differs(self, other: Observation) -> bool:
        """Whether anything but the time differs."""
        return self._content() != other._content()

    def digest(self) -> str:
        """A text that is equal for observations that differ only in their time."""
        import hashlib
        import json

        return hashlib.sha256(json.dumps(self._content()).encode()).hexdigest()

    def _content(self) -> list[object]:
        """Everything but the time."""
        running = None
        if self.gateways is not None:
            running = [(gateway.pid, gateway.started // STEP) for gateway in self.gateways]
        return [
            self.condition,
            sorted((*key, *seen) for key, seen in self.findings.items()),
            *(sorted(names) for names in (self.loaded, self.looked, self.options)),
            None if self.codes is None else sorted(self.codes),
            self.hermes,
            running,
            self.identity,
        ]

    def may_end(self, code: str, check: str, options: str) -> bool:
        """Whether a finding that is missing here is gone: it was looked for, and as closely."""
        wanted = self.codes is None or code in self.codes
        return wanted and check in self.looked and self.options.issuperset(options.split())

    def has_given_up(self, code: str, last_seen: int) -> bool:
        """Whether nobody looks for a code any more: it was dropped, or is skipped for a day."""
        dropped = self.condition is not None and self.codes is not None and code not in self.codes
        return dropped and self.at - last_seen > layout.DAY

    def knows(self, check: str) -> bool:
        """Whether this check still exists, as far as this observation can tell."""
        partial = self.condition is None or not self.loaded
        broken = any(id.startswith(BROKEN) for id in self.loaded)
        return partial or broken or check in self.loaded


def observe(report: Report, at: datetime, codes: frozenset[str] | None = None) -> Observation:
    """What the history keeps of a report; `codes` are those that were looked for.

    A finding that config.toml switches off is kept too: it is there, only not reported.
    """
    findings: dict[Key, SeenFinding] = {}
    off = [finding for finding in report.turned_down if codes is None or finding.code in codes]
    for finding in (*_worst_first(report.findings), *_worst_first(off)):
        seen = SeenFinding(finding.severity, stored_text(finding.title), stored_text(finding.check))
        findings.setdefault(stored_key(finding.code, finding.subject), seen)
    gateways = None
    if report.gateways is not None:
        running = sorted(report.gateways, key=lambda gateway: (gateway.started_at, gateway.pid))
        gateways = tuple(
            RunningGateway(gateway.pid, layout.to_seconds(gateway.started_at))
            for gateway in running[-1:]
        )
    return Observation(
        at=layout.to_seconds(at),
        condition=condition_of(report) if report.complete else None,
        findings=findings,
        loaded=frozenset(stored_text(check.id) for check in report.checks),
        looked=frozenset(stored_text(check.id) for check in report.checks if check.has_looked),
        codes=codes,
        hermes=stored_text(report.hermes_version) if report.hermes_version else None,
        gateways=gateways,
        options=OPTIONS.intersection(report.options.split()),
    )


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.severity.rank)


_ID = re.compile(r"\d{8}-\d{6}-\d{3}[0-9a-f]{2}")
MOST = 50
"""Runs to read at one time; there are more only after a long time without a look."""


class RepairedItem(NamedTuple):
    """One item of a run: the finding, the fix, and how it went."""

    key: Key
    fix: str
    outcome: str


class EndedRun(NamedTuple):
    """A run that has ended."""

    id: str
    at: int
    kind: str
    """fix, undo or restore."""
    items: tuple[RepairedItem, ...]
    began: int


def ended_runs(home: Home, known: Sequence[EndedRun] = ()) -> list[EndedRun]:
    """The newest runs that have ended, oldest first. Stops at the first run that has not ended yet.

    What is in `known` is not read again. A receipt that cannot be read is left out.
    """
    before = {run.id: run for run in known}
    ended = []
    try:
        ids = sorted(id for id in Journals(home).ids() if _ID.fullmatch(id))
    except (Trouble, CouldNotLook, OSError):
        ids = []
    for id in ids[-MOST:]:
        try:
            run = before.get(id) or _load(home, id)
        except Exception:  # noqa: BLE001 (whatever is in the agent's home, the history goes on)
            continue
        if run is None:
            break
        ended.append(run)
    return ended


def _load(home: Home, id: str) -> EndedRun | None:
    """One run; None if it has not ended yet."""
    from datetime import datetime

    journal = Journals(home).load(id)
    if not journal.final:
        return None
    began, ended = (
        layout.to_seconds(datetime.fromisoformat(at))
        for at in (journal.started_at, journal.ended_at or journal.started_at)
    )
    items = tuple(
        RepairedItem(
            stored_key(item.code, item.subject), stored_text(item.fix), stored_text(item.outcome)
        )
        for item in journal.items
    )
    return EndedRun(id, ended, journal.kind, items, began)
