"""Decides which fixes may be applied: safe ones, and those agreed to by --yes or an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.repair.plan import PlannedItem


class Consent:
    """What the operator agreed to; each finding is asked about once."""

    def __init__(
        self, *, yes: bool, quiet: bool, page_options: str, one_named: bool = False
    ) -> None:
        self.page_options = page_options
        self.one_named = one_named
        """Whether --subject was given: without it, `--yes` does not grant anybody access."""
        self.yes = yes
        self.quiet = quiet
        self.confirmed: set[tuple[str, str]] = set()
        self.declined: set[tuple[str, str]] = set()
        self.refused: dict[tuple[str, str], str] = {}
        self.steered = False
        """Whether a fix that starts or stops the gateway has failed; others would fail, too."""

    @property
    def silence(self) -> str:
        """Why a fix that asks first was not applied."""
        from hermes_doctor.cli.options import can_ask

        if can_ask() and not self.quiet:
            return "You answered no."
        return "It asks first, but no terminal is open. To answer yes: add --yes."

    def agrees(self, item: PlannedItem) -> bool:
        """Whether a plan may be applied: safe ones may, the others are shown and asked about."""
        key = item.finding.key
        if not item.ready or item.fix is None or key in self.declined or key in self.refused:
            return False
        if self.steered and item.controls_gateway:
            self.refused[key] = "The gateway was already restarted once, which did not help."
            return False
        answered = self.yes and (self.one_named or not item.personal)
        if not item.asks or answered or key in self.confirmed:
            return True
        (self.confirmed if self._ask(item) else self.declined).add(key)
        return key in self.confirmed

    def _ask(self, item: PlannedItem) -> bool:
        from hermes_doctor.cli.options import confirm
        from hermes_doctor.message import text
        from hermes_doctor.render import repair
        from hermes_doctor.terminal.show import show

        if self.quiet:
            return False
        show(repair.plan_item_lines(item, 0))
        finding = item.finding
        if item.personal:
            return confirm(
                text(
                    "Apply this fix for {code} ({subject})? You can undo it.",
                    code=finding.code,
                    subject=finding.subject,
                )
            )
        return confirm(text("Apply this fix for {code}? You can undo it.", code=finding.code))
