"""The words of the tool as plain values: severity, finding, result, report."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_doctor.lazy import NOTHING, NamedTuple


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


class CouldNotLook(Exception):
    """Something could not be looked at, and why. Raised by probes; a check may also yield it."""


class Partly(NamedTuple):
    """Something was looked at only in part, and what. Yielded by checks that found nothing there.

    A quick look is bounded; it says so where that left something out.
    """

    what: str


class Skip(Exception):
    """The question does not apply to this home, and why. Raised by checks."""


class CannotFix(Exception):
    """A fix declines this finding, and why. Raised by fixes while they plan."""


class Trouble(Exception):
    """An expected failure of a command: one line that says what, where and what to do."""


class Evidence(NamedTuple):
    """One thing that was seen: where, and what, without any secret in it."""

    where: str
    what: str


class Finding(NamedTuple):
    """One thing that is wrong."""

    code: str
    severity: Severity
    title: str
    subject: str = ""
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()
    since: datetime | None = None
    caused_by: str | None = None
    fix: str | None = None
    """The id of the fix that can cure this very finding; None when no fix can."""
    data: Mapping[str, Any] = NOTHING
    """What the fix needs to know. Never shown."""
    check: str = ""
    """Filled in by the examination."""

    @property
    def sound(self) -> bool:
        """Whether every field is of its type; a plugin may say anything."""
        texts = (self.code, self.title, self.subject, self.detail)
        maybe = (self.caused_by, self.fix)
        return (
            isinstance(self.severity, Severity)
            and all(isinstance(text, str) for text in texts)
            and all(text is None or isinstance(text, str) for text in maybe)
            and (self.since is None or isinstance(self.since, datetime))
            and isinstance(self.data, Mapping)
            and isinstance(self.evidence, tuple)
            and all(
                isinstance(one, Evidence)
                and isinstance(one.where, str)
                and isinstance(one.what, str)
                for one in self.evidence
            )
        )

    @property
    def key(self) -> tuple[str, str]:
        """What makes two findings of two examinations the same one."""
        return self.code, self.subject


class CheckResult(NamedTuple):
    """How one check ended."""

    id: str
    group: str
    status: Status
    seconds: float = 0.0
    reason: str | None = None


class FixOffer(NamedTuple):
    """The fix that a report offers for a finding."""

    id: str
    safety: Safety
    command: str


class Gateway(NamedTuple):
    """One running gateway process that belongs to the home."""

    pid: int
    started_at: datetime
    python: str | None = None


class Hold(enum.StrEnum):
    """Whether one rung of the ladder of liveness holds."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Rung(NamedTuple):
    """One rung of the ladder of liveness: what was seen, and since when it is so."""

    name: str
    hold: Hold
    what: str
    since: datetime | None = None


SUPPORT = "supervised"
"""The rung without which a gateway still works, as long as it runs."""


class Report(NamedTuple):
    """Everything one examination of one home found out; renderers see this and nothing else."""

    home: Path
    hermes_version: str | None
    started_at: datetime
    seconds: float
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    fixes: Mapping[str, Safety] = NOTHING
    """By id: the fixes that there are, and what each needs from the operator."""
    personal: frozenset[str] = frozenset()
    """Those of them that are done only for the one who is named."""
    options: str = ""
    """What a hint must repeat so that it works when pasted: ` --home DIR` and the like."""
    page_options: str = ""
    """The same for a hint at a page, which belongs to no home."""
    gateways: tuple[Gateway, ...] | None = None
    """None when that could not be looked at."""
    ladder: tuple[Rung, ...] = ()
    """From the process up to its answers; empty when nobody looked."""

    @property
    def stands_on(self) -> Rung | None:
        """The highest rung that holds with none broken below it."""
        found = None
        for rung in self.ladder:
            if rung.hold is Hold.FAILED and rung.name != SUPPORT:
                break
            found = rung if rung.hold is Hold.OK else found
        return found

    @property
    def counts(self) -> dict[Severity, int]:
        """How many findings of each severity."""
        return {s: sum(f.severity is s for f in self.findings) for s in Severity}

    @property
    def status(self) -> Status:
        """The one word for the whole home."""
        if any(f.severity.rank <= Severity.WARNING.rank for f in self.findings):
            return Status.PROBLEM
        if self.open:
            return Status.UNKNOWN
        return Status.OK

    @property
    def open(self) -> bool:
        """Whether some question found no answer."""
        return any(c.status in (Status.UNKNOWN, Status.CRASHED) for c in self.checks)

    def ended(self, status: Status) -> int:
        """How many checks ended so."""
        return sum(check.status is status for check in self.checks)

    @property
    def blind(self) -> str | None:
        """Why the report says nothing about the home: no check could look. None if one could."""
        looked = self.ended(Status.OK) + self.ended(Status.PROBLEM)
        if looked or self.findings or not self.open:
            return None
        crashed, unknown = self.ended(Status.CRASHED), self.ended(Status.UNKNOWN)
        said = [f"{crashed} crashed"] * bool(crashed) + [f"{unknown} could not look"] * bool(
            unknown
        )
        return f"No check could look at {self.home}: {' and '.join(said)}."

    def offer(self, finding: Finding) -> FixOffer | None:
        """The fix on offer for this finding."""
        if finding.fix is None or finding.fix not in self.fixes:
            return None
        words = finding.code
        if finding.fix in self.personal:
            import shlex

            words += f" --subject {shlex.quote(finding.subject)}"
        command = f"hermes-doctor fix {words} --apply{self.options}"
        return FixOffer(finding.fix, self.fixes[finding.fix], command)


class Copy(NamedTuple):
    """A file that is, or once was, the same database."""

    path: Path
    size: int
    mtime_ns: int


class TextCopy(NamedTuple):
    """A copy of a small file, with its bytes."""

    label: str
    data: bytes
    modified: datetime
    anywhere: bool = False
    """It lies where the copies of every home of this user are."""
