"""Define the plain values that all packages share: severity, finding, check result, report."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.message import text


class Severity(enum.StrEnum):
    """How bad a finding is, worst first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst, so that sorting by rank puts the worst first."""
        return list(Severity).index(self)


class Status(enum.StrEnum):
    """How a check ended."""

    OK = "ok"
    PROBLEM = "problem"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    CRASHED = "crashed"


class Safety(enum.StrEnum):
    """What a fix needs from the operator before it may run."""

    SAFE = "safe"
    CONFIRM = "confirm"
    MANUAL = "manual"


class Explained(Exception):
    """Its text is for people: a text as it is, or a template with named values, as in `text`."""

    def __init__(self, template: str = "", /, **values: object) -> None:
        super().__init__(text(template, **values) if values else template)


class CouldNotLook(Explained):
    """Says what could not be read, and why; raised by probes, and sometimes yielded by checks."""


T = TypeVar("T")
D = TypeVar("D")


def known_or(default: D, ask: Callable[[], T]) -> T | D:
    """What `ask` returns; the default if it cannot look."""
    try:
        return ask()
    except CouldNotLook:
        return default


class Partly(NamedTuple):
    """What a check left out, as it reads a bounded amount; yielded if the part it read is sound."""

    what: str


class Skip(Explained):
    """Says why a check does not apply to this home; raised by checks."""


class CannotFix(Explained):
    """Says why a fix refuses a finding; raised by fixes while they plan."""


class Trouble(Explained):
    """An expected failure of a command; its text says what failed, where and what to do."""


class Evidence(NamedTuple):
    """One piece of proof for a finding: a place and what was seen there, without secrets."""

    where: str
    what: str


class Finding(NamedTuple):
    """One problem that a check found in a home."""

    code: str
    severity: Severity
    title: str
    subject: str = ""
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    since: datetime | None = None
    caused_by: str | None = None
    fix: str | None = None
    """The id of the fix that can repair this finding; None when there is none."""
    data: Mapping[str, Any] = EMPTY
    """What the fix needs to know. Never shown."""
    check: str = ""
    """The id of the check that found it; set by the check run."""
    next: str = ""
    """What the operator should do, as an imperative sentence; "" if a fix does it all."""
    muted: bool = False
    """Whether the operator muted it; set after the check run."""

    @property
    def sound(self) -> bool:
        """Whether every field has its declared type; a plugin may pass anything."""
        texts = (self.code, self.title, self.subject, self.detail, self.next)
        maybe = (self.caused_by, self.fix)
        return (
            isinstance(self.severity, Severity)
            and all(isinstance(text, str) for text in texts)
            and all(text is None or isinstance(text, str) for text in maybe)
            and (self.since is None or isinstance(self.since, datetime))
            and isinstance(self.data, Mapping)
            and isinstance(self.evidence, tuple)
            and all(
                isinstance(evidence, Evidence)
                and isinstance(evidence.where, str)
                and isinstance(evidence.what, str)
                for evidence in self.evidence
            )
        )

    @property
    def is_problem(self) -> bool:
        """Whether it is more than a note, and not muted."""
        return self.severity is not Severity.INFO and not self.muted

    @property
    def key(self) -> tuple[str, str]:
        """The code and subject; equal keys mean the same finding in two check runs."""
        return self.code, self.subject


class CheckResult(NamedTuple):
    """How one check ended."""

    id: str
    group: str
    status: Status
    seconds: float = 0.0
    reason: str | None = None
    unjudged: str = ""
    """Why codes were not judged although they apply: Hermes is too new, or an option is missing."""

    @property
    def has_looked(self) -> bool:
        """Whether it looked at everything, so that what it does not report is not there."""
        return self.status in (Status.OK, Status.PROBLEM) and self.reason is None


class FixOffer(NamedTuple):
    """The fix that a report offers for a finding."""

    id: str
    safety: Safety
    command: str


class Gateway(NamedTuple):
    """One running gateway process that belongs to the home."""

    pid: int
    started_at: datetime
    """When it started, by the clock of that moment, as in its files and logs."""
    python: str | None = None
    clock_step: timedelta = timedelta(0)
    """By how much the clock has jumped forward since then."""

    @property
    def running_since(self) -> datetime:
        """When it started, by the present clock; only this tells how long it has been running."""
        return self.started_at + self.clock_step


class RungState(enum.StrEnum):
    """The state of one rung of the liveness ladder."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Rung(NamedTuple):
    """One rung of the liveness ladder: its state, what was seen, and since when."""

    name: str
    hold: RungState
    what: str
    since: datetime | None = None


class Effect(NamedTuple):
    """What a problem does to the bot: the part that it breaks, and how, in a few words."""

    part: str
    words: str


def effect_of(finding: Finding, effects: Mapping[str, Effect]) -> Effect | None:
    """What a finding does to the bot: what it says itself, or what a code stands for."""
    own = finding.data.get("effect")
    if isinstance(own, tuple) and len(own) == 2:
        return Effect(*own)
    return effects.get(finding.data.get("effect_of") or finding.code)


def part_of(finding: Finding, effects: Mapping[str, Effect]) -> str:
    """The part of the bot that a finding breaks; empty if it breaks none."""
    effect = effect_of(finding, effects)
    return effect.part if effect else ""


GATEWAY, DOWN, START, MODEL, ACCESS, PLATFORM, DATA = (
    "gateway",
    "down",
    "start",
    "model",
    "access",
    "platform",
    "data",
)
PARTS = (GATEWAY, DOWN, START, MODEL, ACCESS, PLATFORM, DATA)
"""The parts of a bot that a problem can break. DOWN means that no gateway is running, START that
the next start fails; a gateway that runs still answers."""
SILENCING = (GATEWAY, DOWN, START, MODEL, ACCESS)
"""The parts without which nobody gets an answer; START only if no gateway runs."""
NO_PLATFORM = "none is switched on"
"""What the state of the platforms says of a home without any."""
UNSEEN = "could not check: "
"""How the state of a part starts that could not be looked at; a reason follows."""


class VerdictKind(enum.StrEnum):
    """Whether the bot answers people."""

    WORKING = "working"
    NOT_TRIED = "not tried"
    """It runs without a problem, but no answer since its start proves that it works."""
    LIMITED = "limited"
    NOT_WORKING = "not working"
    STOPPED = "stopped"
    NOT_SET_UP = "not set up"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    """The answer to the question whether the bot answers people."""

    kind: VerdictKind
    headline: str
    primary: Finding | None = None
    """The one problem to look at first."""
    muted: bool = False
    """Whether all that makes it bad is muted."""


class Mark(enum.StrEnum):
    """How a part of the bot is doing."""

    GOOD = "good"
    BAD = "bad"
    LIMITED = "limited"
    NONE = "none"
    """Not running, not set up, not checked, or only a remark."""
    UNKNOWN = "unknown"


class Part(NamedTuple):
    """One remark about a part of the bot, such as one platform, with its mark."""

    mark: Mark
    text: str


class PartState(NamedTuple):
    """The state of one part of the bot: gateway, platforms, model or data."""

    name: str
    parts: tuple[Part, ...]


ANSWERS_OUT = "answers out"
"""The last rung."""
OPTIONAL_RUNG = "supervised"
"""The one rung that may fail while the gateway still works: being supervised."""


class Report(NamedTuple):
    """The complete result of one check run on one home; renderers get nothing else."""

    home: Path
    hermes_version: str | None
    started_at: datetime
    seconds: float
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    fixes: Mapping[str, Safety] = EMPTY
    """The available fixes by id, and what each needs from the operator."""
    personal: frozenset[str] = frozenset()
    """The ids of fixes that are applied only when their subject is named explicitly."""
    options: str = ""
    """Options that a suggested command must repeat to work when pasted, such as ` --home DIR`."""
    page_options: str = ""
    """The same for commands that show a help page, which do not depend on a home."""
    gateways: tuple[Gateway, ...] | None = None
    """None when the processes could not be read."""
    ladder: tuple[Rung, ...] = ()
    """The rungs from the process up to its answers; empty when they were not examined."""
    states: tuple[PartState, ...] = ()
    """One line each about gateway, platforms, model and data."""
    refusals: Mapping[tuple[str, str, str], str] = EMPTY
    """Why a fix refuses a finding, by code, subject and fix; such a fix is not offered."""
    effects: Mapping[str, Effect] = EMPTY
    """What problems do to the bot, by code."""
    verdict: Verdict | None = None
    """Whether the bot answers people."""
    turned_down: tuple[Finding, ...] = ()
    """Findings as the checks made them, that config.toml switches off or makes milder."""
    complete: bool = True
    """Whether all checks ran; with `--only` or `--skip` some did not."""
    times: Mapping[tuple[str, str], int] | None = None
    """How often each finding appeared in the last 7 days, this time included; None if unknown."""
    muted_since: Mapping[tuple[str, str], datetime] = EMPTY
    """When each muted finding was muted, or the file that mutes it was last changed."""

    @property
    def highest_rung(self) -> Rung | None:
        """The highest rung that is OK, with no failed rung below it."""
        found = None
        for rung in self.ladder:
            if rung.hold is RungState.FAILED and rung.name != OPTIONAL_RUNG:
                break
            found = rung if rung.hold is RungState.OK else found
        return found

    @property
    def counts(self) -> dict[Severity, int]:
        """The number of findings of each severity, without muted ones."""
        loud = [f for f in self.findings if not f.muted]
        return {s: sum(f.severity is s for f in loud) for s in Severity}

    @property
    def off(self) -> list[str]:
        """The codes that were found, but that config.toml switches off."""
        return sorted(
            {finding.code for finding in self.turned_down} - {one.code for one in self.findings}
        )

    @property
    def status(self) -> Status:
        """The overall status of the home."""
        if any(f.is_problem for f in self.findings):
            return Status.PROBLEM
        return Status.UNKNOWN if self.open else Status.OK

    @property
    def open(self) -> bool:
        """Whether some check crashed or could not decide."""
        return any(c.status in (Status.UNKNOWN, Status.CRASHED) for c in self.checks)

    def parts(self, name: str) -> tuple[Part, ...]:
        """What is known of one part of the bot; empty if it was not examined."""
        return next((state.parts for state in self.states if state.name == name), ())

    def rung(self, name: str) -> Rung | None:
        """The rung of this name; None if it was not examined."""
        return {rung.name: rung for rung in self.ladder}.get(name)

    def count_checks(self, status: Status) -> int:
        """Count the checks that ended with this status."""
        return sum(check.status is status for check in self.checks)

    @property
    def why_blind(self) -> str | None:
        """Why the report says nothing about the home; None unless every check failed to read it."""
        looked = self.count_checks(Status.OK) + self.count_checks(Status.PROBLEM)
        if looked or self.findings or not self.open:
            return None
        crashed, unknown = self.count_checks(Status.CRASHED), self.count_checks(Status.UNKNOWN)
        said = [f"{crashed} crashed"] * bool(crashed)
        said += [f"{unknown} could not look"] * bool(unknown)
        return f"No check could look at {self.home}: {' and '.join(said)}."

    def offer(self, finding: Finding) -> FixOffer | None:
        """Return the fix that the report offers for this finding."""
        if finding.fix is None or finding.fix not in self.fixes or self.refusal(finding):
            return None
        words = finding.code
        if finding.fix in self.personal:
            import shlex

            words += f" --subject {shlex.quote(finding.subject)}"
        command = f"hermes-doctor fix {words} --apply{self.options}"
        return FixOffer(finding.fix, self.fixes[finding.fix], command)

    def refusal(self, finding: Finding) -> str | None:
        """Why the finding's fix cannot be applied; None if it can, or if there is no fix."""
        return self.refusals.get((*finding.key, finding.fix or ""))
