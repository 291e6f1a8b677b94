"""The findings of a home, with their effects on the parts of the bot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from hermes_doctor.core.model import DOWN, MODEL, Effect, Finding, Severity, effect_of


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
            and self._part(finding) in parts
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
        return next((finding for finding in self.findings if self._part(finding) == DOWN), None)

    def any_of(self, part: str, codes: Set[str]) -> bool:
        """Whether some of these codes stand for problems of this part."""
        return any(code in self.effects and self.effects[code].part == part for code in codes)

    def words(self, finding: Finding) -> str:
        """How the part is broken, in a few words."""
        effect = effect_of(finding, self.effects)
        return effect.words if effect else ""

    def _part(self, finding: Finding) -> str:
        effect = effect_of(finding, self.effects)
        return effect.part if effect else ""


def platform_of(finding: Finding) -> str:
    """The platform that a finding is about; "" if it names none."""
    named = finding.data.get("platform")
    return named if isinstance(named, str) else re.split(r"[ :]", finding.subject)[0]


def about_fallback(finding: Finding) -> bool:
    """Whether it is about a fallback model, which is asked only if the main one fails."""
    return bool(finding.data.get("about_fallback"))


def silences(finding: Finding) -> bool:
    """Whether a problem of a part breaks the whole part, not one chat only."""
    whole = not finding.data.get("one_chat")
    return whole and finding.severity.rank <= Severity.ERROR.rank
