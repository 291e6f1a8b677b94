"""Order the problems of a report: which silence the bot, which come first, what caused them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from functools import cached_property

from hermes_doctor.core.model import (
    DOWN,
    GATEWAY,
    MODEL,
    PLATFORM,
    SILENCING,
    START,
    Effect,
    Finding,
    Mark,
    Report,
    RungState,
    Severity,
    effect_of,
    part_of,
)


class PartProblems:
    """The findings of a home, with their effects on the parts of the bot."""

    def __init__(self, findings: Sequence[Finding], effects: Mapping[str, Effect]) -> None:
        self.findings = findings
        self.effects = effects

    def of(self, *parts: str, platform: str = "") -> Finding | None:
        """The worst problem of these parts of the bot, and of that platform if one is named."""
        bad = [
            finding
            for finding in self.findings
            if finding.severity is not Severity.INFO
            and part_of(finding, self.effects) in parts
            and (not platform or platform_of(finding) == platform)
        ]
        return min(
            bad,
            key=lambda one: (one.severity.rank, one.caused_by is not None, about_fallback(one)),
            default=None,
        )

    def of_fallback(self) -> Finding | None:
        """The worst problem of a fallback model that was asked."""
        return PartProblems(list(filter(about_fallback, self.findings)), self.effects).of(MODEL)

    def down(self) -> Finding | None:
        """The finding that no gateway is running."""
        return next(
            (finding for finding in self.findings if part_of(finding, self.effects) == DOWN), None
        )

    def any_of(self, part: str, codes: Set[str]) -> bool:
        """Whether some of these codes stand for problems of this part."""
        return any(code in self.effects and self.effects[code].part == part for code in codes)

    def words(self, finding: Finding) -> str:
        """How the part is broken, in a few words."""
        effect = effect_of(finding, self.effects)
        return effect.words if effect else ""


def platform_of(finding: Finding) -> str:
    """The platform that a finding is about; "" if it names none."""
    named = finding.data.get("platform")
    return named if isinstance(named, str) else re.split(r"[ :]", finding.subject)[0]


def about_fallback(finding: Finding) -> bool:
    """Whether it is about a fallback model, which is asked only if the main one fails."""
    return bool(finding.data.get("about_fallback"))


def breaks_whole_part(finding: Finding) -> bool:
    """Whether a problem of a part breaks the whole part, not one chat only."""
    whole = not finding.data.get("one_chat")
    return whole and finding.severity.rank <= Severity.ERROR.rank


def silences(report: Report, finding: Finding) -> bool:
    """Whether people get no answer because of this finding; one chat is not the whole bot."""
    broken = part_of(finding, report.effects) in (*SILENCING, PLATFORM)
    return broken and breaks_whole_part(finding) and not fails_later(report, finding)


def fails_later(report: Report, finding: Finding) -> bool:
    """Whether the running gateway still answers, but its next start fails because of this."""
    if part_of(finding, report.effects) != START or finding.severity.rank > Severity.ERROR.rank:
        return False
    runs = bool(report.ladder) and report.ladder[0].hold is RungState.OK
    return runs and not any(part.mark is Mark.BAD for part in report.parts(GATEWAY))


def order(report: Report, finding: Finding) -> tuple[int, int, int, str, str]:
    """Sort key: what silences the bot comes first, then what endangers its data.

    That no gateway is running comes after these: a start does not help while something else
    silences the bot, and must not come before the repair of a damaged database.
    """
    part = part_of(finding, report.effects)
    if part == DOWN and silences(report, finding):
        place = 2
    elif silences(report, finding):
        place = 0 if part != PLATFORM or _is_silent_everywhere(report) else 3
    else:
        place = 1 if finding.severity is Severity.CRITICAL else 3
    first = part in SILENCING and not about_fallback(finding)
    weight = 0 if first else 1 if part in (*SILENCING, PLATFORM) else 2
    return place, finding.severity.rank, weight, finding.code, finding.subject


def repair_order(report: Report, finding: Finding) -> tuple[bool, tuple[int, int, int, str, str]]:
    """Sort key for a plan: a gateway is started after everything else is repaired."""
    return part_of(finding, report.effects) == DOWN, order(report, finding)


def _is_silent_everywhere(report: Report) -> bool:
    """Whether no other platform of the home can answer."""
    parts = report.parts("platforms")
    return len(parts) < 2 or all(part.mark is Mark.BAD for part in parts)


class Problems:
    """The problems of a report as trees: each below the problem that caused it."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._bad = [one for one in report.findings if one.is_problem]
        self._first: dict[str, int] = {}
        for number, finding in enumerate(self._bad):
            self._first.setdefault(finding.code, number)
        self._numbers: list[list[int]] = []
        self._below: dict[int, list[int]] = {}
        self._roots: list[int] = []
        for number in range(len(self._bad)):
            cause = self._cause(number)
            if cause is None:
                self._roots.append(number)
            else:
                self._below.setdefault(cause, []).append(number)

    def _cause(self, number: int) -> int | None:
        """The problem that caused this one, unless it is missing or the chain is circular."""
        code = self._bad[number].caused_by
        cause = self._first.get(code or "")
        seen = {self._bad[number].code}
        step = cause
        while step is not None:
            if self._bad[step].code in seen:
                return None
            seen.add(self._bad[step].code)
            step = self._first.get(self._bad[step].caused_by or "")
        return cause

    @cached_property
    def groups(self) -> list[list[Finding]]:
        """The problems that no other problem caused, the first to look at in front.

        Those that differ only in their subject are together. A cause is as bad as its consequences.
        """
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in self._roots:
            finding = self._bad[number]
            title = finding.title.replace(finding.subject, "") if finding.subject else finding.title
            key = finding.severity, finding.code, title, finding.detail, finding.fix
            groups.setdefault(key, []).append(number)
        self._numbers = sorted(groups.values(), key=self._worst)
        return [[self._bad[number] for number in group] for group in self._numbers]

    def consequences(self, place: int) -> list[Finding]:
        """What the group at this place caused, in the order of time, then the worst first."""
        assert self.groups
        findings = [self._bad[number] for number in self._all_below(self._numbers[place])]
        return sorted(findings, key=lambda one: (one.since is None, one.since, one.severity.rank))

    def consequences_of(self, findings: Sequence[Finding]) -> list[Finding]:
        """What groups caused of which all findings are among these."""
        return [
            effect
            for place, group in enumerate(self.groups)
            if all(finding in findings for finding in group)
            for effect in self.consequences(place)
        ]

    def repairable(self) -> list[int]:
        """The numbers, from 1, of the groups of which `fix` repairs at least one finding."""
        return [
            place + 1
            for place, group in enumerate(self.groups)
            if any(map(self._report.offer, (*group, *self.consequences(place))))
        ]

    def numbers(self) -> dict[tuple[str, str], int]:
        """The number that `check` shows for each problem; consequences have that of their cause."""
        return {
            (finding.code, finding.subject): place + 1
            for place, group in enumerate(self.groups)
            for finding in (*group, *self.consequences(place))
        }

    def _worst(self, group: list[int]) -> tuple[int, int, int, str, str]:
        every = (*group, *self._all_below(group))
        return min(order(self._report, self._bad[number]) for number in every)

    def _all_below(self, group: list[int]) -> list[int]:
        found: list[int] = []
        step = list(group)
        while step:
            step = [one for number in step for one in self._below.get(number, ())]
            found += step
        return found


def reaches(finding: Finding, threshold: Collection[str]) -> bool:
    """Whether it is at or above the severity that the words of --fail-on name, and not muted."""
    if finding.muted:
        return False
    named = [severity.rank for severity in Severity if severity.value in threshold]
    return finding.severity.rank <= max(named, default=-1)
