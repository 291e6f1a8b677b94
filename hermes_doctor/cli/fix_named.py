"""Says for each code that the operator typed what `fix` did about it, or why it did nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import listed, sentences, text
from hermes_doctor.core.model import Severity, Status
from hermes_doctor.render.repair import NO_FIX, suggestion

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import ItemRecord, Journal
    from hermes_doctor.cli.fix_session import Session
    from hermes_doctor.core.model import CheckResult, Report
    from hermes_doctor.repair.transaction.plan import PlannedItem

PLANNED, REPAIRED, LEFT = "planned", "repaired", "left"
ABSENT, RELATED, UNKNOWN = "absent", "related", "unknown"
FAILED = (LEFT, RELATED, UNKNOWN)
"""The states in which `fix --apply` has not done what the operator asked for."""
NOT_DONE = ("failed", "rolled-back", "not-connected")
"""The outcomes of an item that was tried and is not repaired."""
MOST_RELATED = 3


class NamedCode(NamedTuple):
    """What happened to a code that was typed."""

    code: str
    state: str
    text: str
    commands: tuple[str, ...] = ()

    is_shown: bool = False
    """Whether a plan or a receipt tells the same, with more details."""


class NamedCodes:
    """Answers for all codes that were typed, from the last examination and the runs."""

    def __init__(
        self,
        session: Session,
        report: Report,
        planned: Sequence[PlannedItem],
        runs: Sequence[Journal] = (),
        reasons: Mapping[tuple[str, str], str] | None = None,
        *,
        apply: bool,
    ) -> None:
        self.session = session
        self.report = report
        self.planned = planned
        self.runs = runs
        self.reasons = reasons or {}
        """Why a ready plan was not applied, by the key of its finding."""
        self.apply = apply
        self._everything: list[PlannedItem] | None = None

    def answers(self) -> list[NamedCode]:
        """One answer for each code that was typed."""
        return [self._answer(code) for code in self.session.typed_codes()]

    def _answer(self, code: str) -> NamedCode:
        done = {
            (item.code, item.subject) for item in self._items(code) if item.outcome == "verified"
        }
        open_ = [
            planned
            for planned in self.planned
            if planned.finding.code == code
            # a note that remains after its repair and has no fix does not count as left
            and not (
                planned.finding.key in done
                and planned.fix is None
                and not planned.finding.is_problem
            )
        ]
        if open_:
            return self._found(code, open_)
        if failed := [item for item in self._items(code) if item.outcome in NOT_DONE]:
            messages = [
                sentences(f"{item.subject}:" if item.subject else "", item.reason or "")
                for item in failed
            ]
            return NamedCode(code, LEFT, sentences(*messages), (self.explain(code),), is_shown=True)
        if done:
            subjects = listed(sorted(subject for _, subject in done if subject))
            told = text("Repaired: {subjects}.", subjects=subjects) if subjects else "Repaired."
            return NamedCode(code, REPAIRED, told, is_shown=True)
        return self._absent(code)

    def _items(self, code: str) -> list[ItemRecord]:
        """What the runs did for a code; of each subject the last."""
        items = [item for run in self.runs for item in run.items if item.code == code]
        return list({item.subject: item for item in items}.values())

    def _found(self, code: str, items: Sequence[PlannedItem]) -> NamedCode:
        """The code was found: the plan is shown, or the reason why it is not applied."""
        if not self.apply and all(one.ready for one in items):
            steps = [planned.steps[0].sentence() for planned in items]
            told = sentences(*(text("{step}.", step=step) for step in steps))
            return NamedCode(code, PLANNED, told, (self.session.apply_command(),), is_shown=True)
        left = [item for item in items if self.apply or not item.ready]
        said: dict[str, None] = {}
        commands: dict[str, None] = {}
        for item in left:
            refusal = item.refusal if item.fix else None
            why = self.reasons.get(item.finding.key) or refusal or item.finding.next or NO_FIX
            said[sentences(f"{item.finding.title}.", why)] = None
            command = suggestion(item.finding, self.session.options) or self.explain(code)
            commands |= {self.session.apply_command(item) if item.ready else command: None}
        return NamedCode(code, LEFT, sentences(*said), tuple(commands), is_shown=True)

    def explain(self, code: str) -> str:
        """The command that shows the page of a code."""
        return f"hermes-doctor explain {code}{self.session.page_options}"

    # -- codes that were not found -----------------------------------------------------------

    def _absent(self, code: str) -> NamedCode:
        subjects = self.session.elsewhere.get(code)
        if subjects and self.session.subject is not None:
            return NamedCode(
                code,
                LEFT,
                text(
                    "{code} was not found for {subject!r}, but for: {subjects}.",
                    code=code,
                    subject=self.session.subject,
                    subjects=listed(subjects),
                ),
                (f"hermes-doctor fix {code}{self.session.fix_options}",),
            )
        results = self._results(code)
        looked = any(one.has_looked for one, _ in results)
        doubts = [
            said
            for one, said in results
            if said
            # none if it does not apply to the home, or has read a part that is sound
            and (said == one.unjudged or one.status not in (Status.SKIPPED, Status.OK))
            and not (looked and one.status is Status.SKIPPED)  # another check had an answer
        ]
        related, causes = self._related(code, [said for _, said in results])
        others = [*related, *(cause for cause in causes if cause not in related)][:MOST_RELATED]
        codes = dict.fromkeys((other.finding.code, other.ready) for other in others)
        commands = tuple(
            f"hermes-doctor fix {name}{self.session.fix_options}" if ready else self.explain(name)
            for name, ready in codes
        )
        if doubts:
            more = () if commands else self._with_options(code, results)
            why = text("{code} could not be checked: {why}.", code=code, why="; ".join(doubts))
            return NamedCode(code, UNKNOWN, sentences(why, _describe(others)), commands + more)
        told = text("{code} was not found here.", code=code)
        grave = any(item.finding.severity.rank <= Severity.ERROR.rank for item in related)
        state = RELATED if grave else ABSENT
        return NamedCode(
            code, state, sentences(told, *_limits(results), _describe(others)), commands
        )

    def _results(self, code: str) -> list[tuple[CheckResult, str]]:
        """How each check of a code ended, and why it did not look; "" if it did."""
        checks = {check.id: check for check in self.session.checks if code in check.codes}
        found = []
        for result in self.report.checks:
            if result.id not in checks:
                continue
            said = result.reason or ""
            if result.unjudged and code in checks[result.id].by_release:
                said = result.unjudged
            found.append((result, said.rstrip(".")))
        return found

    def _with_options(
        self, code: str, results: Sequence[tuple[CheckResult, str]]
    ) -> tuple[str, ...]:
        """The command with the option that a skipped check needs."""
        missing = " --network" if not self.session.network else ""
        if missing and any(f"needs{missing}" == one.unjudged for one, _ in results):
            return (f"hermes-doctor fix {code}{missing}{self.session.fix_options}",)
        return ()

    def _related(
        self, code: str, reasons: Sequence[str]
    ) -> tuple[list[PlannedItem], list[PlannedItem]]:
        """Problems that may be meant: with the same repair or subject; and possible causes."""
        if self._everything is None:
            self._everything = self.session.plan_everything()
        typed = self.session.named_codes()
        others = [item for item in self._everything if item.finding.code not in typed]
        words = {word for reason in reasons for word in re.split(r"[:;\s]+", reason) if word}
        related = [
            other
            for other in others
            if self._shares_fix(other, code) or other.finding.subject in words
        ]
        explanations = self.session.plugins.explanations
        explaining = {one.code for one in explanations if code in one.explains}
        return related, [item for item in others if item.finding.code in explaining]

    def _shares_fix(self, item: PlannedItem, code: str) -> bool:
        """Whether a fix of a problem is also for this code, and for one kind of thing only.

        All codes of such a fix belong to one group of checks; a restart is for any kind of thing.
        """
        checks = self.session.plugins.checks
        group = next((check.group for check in checks if check.id == item.finding.check), None)
        about = {name for check in checks if check.group == group for name in check.codes}
        fixes = [fix for fix in (item.fix, *item.later) if fix]
        return any(code in fix.codes and set(fix.codes) <= about for fix in fixes)


def _limits(results: Sequence[tuple[CheckResult, str]]) -> Iterator[str]:
    """What the checks of an absent code did not look at; nothing if one of them has looked."""
    if any(one.has_looked for one, _ in results):
        return
    for result, said in results:
        if said and result.status is Status.SKIPPED:
            yield text("The check {id} was skipped: {reason}.", id=result.id, reason=said)
        elif said:
            yield text("Only a part was read: {reason}.", reason=said)


def _describe(related: Sequence[PlannedItem]) -> str:
    """A sentence about the problems that may be meant instead."""
    if not related:
        return ""
    shown = [f"{item.finding.title} ({item.finding.code})" for item in related[:MOST_RELATED]]
    return str(text("Another problem may be meant: {problems}.", problems=listed(shown)))


def documents(answers: Sequence[NamedCode]) -> list[dict[str, object]]:
    """The answers as JSON data."""
    return [
        {
            "code": answer.code,
            "state": answer.state,
            "message": answer.text,
            "commands": list(answer.commands),
        }
        for answer in answers
    ]
