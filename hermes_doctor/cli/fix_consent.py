"""Decides which fixes may be applied: safe ones, and those agreed to by --yes or an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_doctor.message import text

if TYPE_CHECKING:
    from hermes_doctor.records.journal import Journal
    from hermes_doctor.repair.plan import PlannedItem


class Consent:
    """What the operator agreed to; each fix of a finding is asked about once."""

    def __init__(
        self,
        *,
        yes: bool,
        pick: bool = False,
        quiet: bool,
        page_options: str,
        fix_options: str = "",
        one_named: bool = False,
        named_codes: frozenset[str] = frozenset(),
    ) -> None:
        self.page_options = page_options
        self.fix_options = fix_options
        self.one_named = one_named
        """Whether --subject was given: without it, `--yes` does not grant anybody access."""
        self.named_codes = named_codes
        """The codes that were given: without its code, `--yes` gives up no data."""
        self.yes = yes
        self.pick = pick
        """Whether to ask before each fix, also before safe ones."""
        self.quiet = quiet
        self.confirmed: set[tuple[str, str, str]] = set()
        """The fixes that were agreed to: a stronger fix of the same finding asks again."""
        self.declined: set[tuple[str, str]] = set()
        self.refused: dict[tuple[str, str], str] = {}
        self.unchosen: set[tuple[str, str]] = set()
        """Fixes for one person, whom neither --subject nor an answer has chosen."""
        self.steered = False
        """Whether a fix that starts or stops the gateway has failed; others would fail, too."""

    @property
    def silence(self) -> str:
        """Why a fix that asks first was not applied."""
        if self._can_ask():
            return "You answered no."
        return "It asks first, but no terminal is open. To answer yes: add --yes."

    def _can_ask(self) -> bool:
        from hermes_doctor.cli.options import can_ask

        return can_ask() and not self.quiet

    def answered_no(self) -> set[tuple[str, str]]:
        """The findings that the operator refused to repair; none if nobody could be asked."""
        return self.declined if self._can_ask() else set()

    @property
    def undone(self) -> set[tuple[str, str]]:
        """The findings whose fix was planned, but not applied."""
        return {*self.declined, *self.refused, *self.unchosen}

    def reasons(self) -> dict[tuple[str, str], str]:
        """Why fixes that were planned were not applied, by the key of the finding."""
        from hermes_doctor.render.repair import CHOOSE

        return {
            **dict.fromkeys(self.declined, self.silence),
            **dict.fromkeys(self.unchosen, f"{CHOOSE}."),
            **self.refused,
        }

    def agrees(self, item: PlannedItem) -> bool:
        """Whether a plan may be applied: safe ones may, the others are shown and asked about."""
        key = item.finding.key
        if not item.ready or item.fix is None or key in self.declined or key in self.refused:
            return False
        if self.steered and item.controls_gateway:
            self.refused[key] = "The gateway was already restarted once, which did not help."
            return False
        if item.personal and not self.one_named and (self.yes or not self._can_ask()):
            self.unchosen.add(key)
            return False
        if self.yes and item.fix.gives_up_data and item.finding.code not in self.named_codes:
            self.refused[key] = text(
                "Data is lost. To agree, name the code: "
                "hermes-doctor fix {code} --apply --yes{options}",
                code=item.finding.code,
                options=self.fix_options,
            )
            return False
        chosen = (*key, item.fix.id)
        if not (item.asks or self.pick) or self.yes or chosen in self.confirmed:
            return True
        if not self._ask(item):
            self.declined.add(key)
            return False
        self.confirmed.add(chosen)
        return True

    def learn(self, chosen: Sequence[PlannedItem], run: Journal) -> dict[tuple[str, str], str]:
        """Note what a run refused and whether it steered the gateway; return the outcomes."""
        from hermes_doctor.records.journal import NOT_CONNECTED

        steering = {one.finding.key for one in chosen if one.controls_gateway}
        for item in run.items:
            if item.outcome == "refused":
                self.refused[item.code, item.subject] = item.reason or "refused"
            elif item.outcome in ("failed", "rolled-back", NOT_CONNECTED):
                self.steered |= (item.code, item.subject) in steering
        return {(item.code, item.subject): item.outcome for item in run.items}

    def _ask(self, item: PlannedItem) -> bool:
        from hermes_doctor.cli.options import confirm
        from hermes_doctor.render import repair
        from hermes_doctor.terminal.show import show

        if self.quiet:
            return False
        show(repair.plan_item_lines(item))
        finding = item.finding
        if item.personal:
            return confirm(
                text(
                    "Apply this fix for {code} ({subject})? You can undo it.",
                    code=finding.code,
                    subject=finding.subject,
                )
            )
        if item.deletes:
            return confirm(
                text("Apply this fix for {code}? It cannot be undone.", code=finding.code)
            )
        return confirm(text("Apply this fix for {code}? You can undo it.", code=finding.code))
