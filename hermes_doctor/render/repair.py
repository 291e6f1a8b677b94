"""Shows plans and receipts, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hermes_doctor import redaction
from hermes_doctor.model import Report, Safety
from hermes_doctor.records.journal import ItemRecord, Journal
from hermes_doctor.repair.plan import PlannedItem
from hermes_doctor.steps.base import Step
from hermes_doctor.terminal.lines import BLANK, Line, row, tilde

_DIFF = {"+": "added", "-": "removed", "@": "faint"}
_MARK = {
    "verified": ("✓ ", "good"),
    "rolled-back": ("✗ ", "error"),
    "failed": ("✗ ", "error"),
    "refused": ("✗ ", "error"),
    "not-enough": ("– ", "warning"),
    "left": ("– ", "warning"),
    "planned": ("– ", "warning"),
}
_WORD = {
    "verified": "done and verified",
    "rolled-back": "taken back",
    "failed": "did not help",
    "refused": "not done",
    "not-enough": "not enough, and not done",
    "left": "left for the next run",
    "planned": "not done",
}

UNNAMED = "nothing is broken, and it would touch the gateway or the machine"
PERSONAL = "it lets a person in, whom you must know"
OPTIONAL = "nothing is broken, and it is your choice"


def why_unnamed(item: PlannedItem) -> str:
    """Why a plan is applied only when it is named."""
    return PERSONAL if item.personal else OPTIONAL if item.optional else UNNAMED


def nothing_line(report: Report) -> Line:
    """The line for no findings, which depends on whether all checks had an answer."""
    if report.open:
        return row(("? ", "warning"), "Nothing to fix was found, but not everything was seen.")
    return row(("✓ ", "good"), "There is nothing to fix.")


def plan_lines(planned: Sequence[PlannedItem], command: str, pages: str = "") -> Iterator[Line]:
    """The plan: what each fix would do, as a sentence and if possible as a diff.

    `command` applies it; `pages` are the options that `explain` needs to find its page.
    """
    ready = [one for one in planned if one.ready]
    for one in planned:
        yield from plan_item_lines(one, pages)
    if not planned:
        return
    if not ready:
        yield row(
            "Nothing here is fixed unless it is named."
            if any(one.unnamed for one in planned)
            else "Nothing here can be fixed automatically."
        )
        return
    asks = sum(one.asks for one in ready)
    yield row(
        f"{len(ready)} of {len(planned)} can be fixed"
        + (f"; {asks} of them asks first" if asks == 1 else f"; {asks} ask first" if asks else "")
        + ". Everything touched is backed up before. Nothing was changed yet."
    )
    yield row("Type now: ", (command, "command"))


def plan_item_lines(item: PlannedItem, pages: str = "") -> Iterator[Line]:
    """What would be done about one finding."""
    finding = item.finding
    about = "" if finding.subject in finding.title else f"{finding.subject}: "
    yield row((finding.code, "strong"), f"  {about}{finding.title}", hang=2)
    if item.refusal:
        yield row(("cannot be fixed here: ", "warning"), item.refusal, indent=2, hang=2)
        more = f"hermes-doctor explain {finding.code}{pages}"
        yield row("more: ", (more, "command"), indent=2)
    for step in item.steps:
        yield row(("→ ", "faint"), step.sentence(), indent=2, hang=2)
        yield from diff_lines(step)
    if item.steps and item.later:
        yield row(("if that is not enough: ", "faint"), _later(item), indent=2, hang=2)
    if item.steps and item.unnamed:
        why = why_unnamed(item)
        yield row(("not done unless its code is named: ", "warning"), why, indent=2, hang=2)
    yield BLANK


def _later(item: PlannedItem) -> str:
    """The fixes that would be tried next, and which of them ask first."""
    return ", then ".join(
        fix.id + (", which asks first" if fix.safety is Safety.CONFIRM else "")
        for fix in item.later
    )


def diff_lines(step: Step) -> Iterator[Line]:
    """The changes of a step: its own lines, or a redacted diff of the text."""
    for text in _diff(step) or ():
        yield row((text, _DIFF.get(text[:1], "faint")), indent=4)


def _diff(step: Step) -> list[str] | None:
    texts = step.texts()
    return list(step.lines()) or (list(redaction.redacted_diff(*texts)) if texts else None)


def receipt_lines(journal: Journal, options: str) -> Iterator[Line]:
    """What a run did."""
    for item in journal.items:
        if item.outcome == "left":  # the next round does it
            continue
        mark = _MARK[item.outcome]
        name = f"{item.code}  {item.subject}" if item.code else item.subject
        yield row(mark, (name, "strong"), f"  {_WORD[item.outcome]}", hang=2)
        for sentence in item.steps:
            yield row(("→ ", "faint"), sentence, indent=4, hang=2)
        for note in item.notes:
            yield row(note, indent=6, hang=2)
        if item.reason:
            yield row(item.reason, indent=4)
    yield BLANK
    if journal.note and journal.state != "abandoned":
        yield row(f"Run {journal.id}: {journal.note}.")
    if any(item.outcome == "verified" for item in journal.items):
        yield row(f"Backup and receipt: {tilde(journal.backup)}")
        if journal.kind != "undo" and journal.undoable:
            yield row("Take it back: ", (f"hermes-doctor undo {journal.id}{options}", "command"))


def plan_document(planned: Sequence[PlannedItem]) -> list[dict[str, Any]]:
    """The plan as JSON data."""
    return [
        {
            "code": one.finding.code,
            "subject": one.finding.subject,
            "fix": one.fix.id if one.fix else None,
            "safety": one.fix.safety.value if one.fix else None,
            "steps": [{"what": step.sentence(), "diff": _diff(step)} for step in one.steps],
            "asks": one.asks,
            "unnamed": one.unnamed,
            "refusal": one.refusal,
            "later": [fix.id for fix in one.later],
        }
        for one in planned
    ]


def run_document(journal: Journal) -> dict[str, Any]:
    """The receipt as JSON data."""
    return {
        "run": journal.id,
        "kind": journal.kind,
        "state": journal.state,
        "of": journal.of,
        "backup": str(journal.backup),
        "note": journal.note,
        "gateway": journal.gateway,
        "kept": journal.kept,
        "unremoved": journal.unremoved,
        "saved": journal.saved,
        "items": [_item(item) for item in journal.items],
    }


def _item(item: ItemRecord) -> dict[str, Any]:
    return {
        "code": item.code or None,
        "subject": item.subject,
        "fix": item.fix,
        "outcome": item.outcome,
        "reason": item.reason,
        "steps": item.steps,
        "notes": item.notes,
    }
