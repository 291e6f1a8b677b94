"""Shows plans and receipts, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from hermes_doctor.backup.records.journal import NOT_CONNECTED, ItemRecord, Journal
from hermes_doctor.core.message import count, listed, sentences, text
from hermes_doctor.core.model import Finding, Report, Safety, Severity, VerdictKind
from hermes_doctor.core.system.files import size as file_size
from hermes_doctor.core.terminal.lines import BLANK, Line, row, tilde
from hermes_doctor.diagnosis.examination.ranking import Problems
from hermes_doctor.diagnosis.step import MachineAction, Step
from hermes_doctor.render import diff
from hermes_doctor.render.diff import redacted_diff
from hermes_doctor.render.document import fields_of
from hermes_doctor.repair.steps.files import SetMode, SetOwner
from hermes_doctor.repair.transaction.plan import PlannedItem

_DIFF = {"+": "added", "-": "removed", "@": "faint"}
_MARK = {
    "verified": ("✓ ", "good"),
    NOT_CONNECTED: ("! ", "warning"),
    "rolled-back": ("✗ ", "error"),
    "failed": ("✗ ", "error"),
    "refused": ("✗ ", "error"),
    "not-enough": ("– ", "warning"),
    "left": ("– ", "warning"),
    "planned": ("– ", "warning"),
}
_WORD = {
    "verified": "repaired and checked",
    "rolled-back": "rolled back",
    "failed": "did not help",
    "refused": "not done",
    "not-enough": "not enough, so it was not done",
    "left": "left for the next run",
    "planned": "not done",
}
_CODE_WIDTH = 13

UNNAMED = "nothing is broken, and it would restart the gateway or change the machine"
STOPPED = "you stopped the gateway yourself"
PERSONAL = "it gives a person access"
NO_FIX = "There is no automatic fix for it."
CHOOSE = "Needs you to choose a person"
MOST_PERSONS = 5
OPTIONAL = "nothing is broken; it is your choice"


def why_unnamed(item: PlannedItem) -> str:
    """Why a plan is applied only when it is named."""
    if item.personal or item.optional:
        return PERSONAL if item.personal else OPTIONAL
    return STOPPED if item.starts_gateway else UNNAMED


def nothing_line(report: Report, subject: str | None = None) -> Line:
    """The line for an empty plan, which depends on what was found and could be checked.

    With a `subject`, only the problems of that one were planned.
    """
    if subject is not None and not report.findings:
        return row(
            ("? ", "warning"), text("No problem here is about {subject!r}.", subject=subject)
        )
    if report.off or any(finding.muted for finding in report.findings):
        return row("There is nothing to fix, except what is muted or switched off.")
    if report.open:
        return row(("? ", "warning"), "No problem was found, but some checks had no answer.")
    return row(("✓ ", "good"), "There is nothing to fix.")


def muted_lines(report: Report) -> Iterator[Line]:
    """The line on findings that are not repaired because they are muted."""
    hint = "Name the code to repair it."
    codes = sorted({finding.code for finding in report.findings if finding.muted})
    if codes:
        yield row(("· ", "faint"), (f"Left out, because muted: {listed(codes)}. {hint}", "faint"))
    if report.off:
        off = listed(report.off)
        yield row(("· ", "faint"), (f"Left out, because off: {off}. {hint}", "faint"))


def plan_lines(
    planned: Sequence[PlannedItem],
    home: Path,
    command: str,
    pages: str = "",
    report: Report | None = None,
) -> Iterator[Line]:
    """The plan: what each fix would do, what needs the operator, and what to type.

    `command` applies it, and is empty if the caller shows several; `pages` are the options that
    `explain` needs to find its page. The numbers are those of `check`, if the report is complete.
    """
    complete = report is not None and report.complete
    tree = Problems(report) if report and complete else None
    numbers = tree.numbers() if tree else {}
    ready = [one for one in planned if one.ready and not one.unnamed]
    problems = [one for one in planned if one.finding.severity is not Severity.INFO]
    yield row(("Repair plan", "strong"), f" for {tilde(home)} · nothing is changed yet")
    yield BLANK
    for place, item in enumerate(ready, 1):
        number = numbers.get(item.finding.key, "–") if complete else place
        yield from plan_item_lines(item, str(number))
    if ready:
        yield BLANK
    by_hand = _left_to_operator(planned, ready, tree)
    for item in by_hand:
        yield from _by_hand(item, pages, report.options if report else "")
    for item in planned:
        if item.unnamed and item.steps:
            yield row(
                ("On request: ", "faint"),
                (item.finding.code, "strong"),
                f"  {item.steps[0].sentence()} ({why_unnamed(item)})",
                hang=12,
            )
    if by_hand or any(one.unnamed and one.steps for one in planned):
        yield BLANK
    if not ready:
        yield row("Nothing here can be repaired automatically.")
        return
    asks = sum(one.asks for one in ready)
    questions = count(asks, "question") if asks else "no question"
    fixed, total = sum(problem in ready for problem in problems), len(problems)
    if complete:
        known = {numbers.get((one.finding.code, one.finding.subject)) for one in ready}
        fixed, total = len(known - {None}), len(set(numbers.values()))
    size = sum(change.expect.size for one in ready for s in one.steps for change in s.changes())
    steps = [step for one in ready for step in one.steps]
    keeps = ", no data is lost" if all(map(_loses_nothing, steps)) else ""
    bare = all(step.final for step in steps)
    saved = "No backup is made" if bare else f"A backup is made first ({file_size(size)})"
    repaired = f"{fixed} of {count(total, 'problem')}"
    if not total:  # such as the start of a gateway that was stopped on purpose
        repaired = f"No problem to repair; {count(len(ready), 'change')}"
    yield row(f"{repaired}, {questions}{keeps}. {saved}.")
    if command:
        yield row("Next: ", (command, "command"), hang=6)


def _left_to_operator(
    planned: Sequence[PlannedItem], ready: Sequence[PlannedItem], tree: Problems | None
) -> list[PlannedItem]:
    """What the operator has to do; a repair also ends what it causes, and a cause without advice.

    For example, the start of a gateway also ends that it died.
    """
    numbers = tree.numbers() if tree else {}
    repaired = {numbers.get(one.finding.key) for one in ready} - {None}
    refused = [] if ready else [one for one in planned if one.fix and one.refusal]
    over = tree.consequences_of([one.finding for one in ready]) if tree else []
    return [
        item
        for item in planned
        if item not in ready
        and not item.unnamed
        and (
            item.named
            or item in refused
            or (
                item.finding.severity is not Severity.INFO
                and item.finding not in over
                and (item.fix or item.finding.next or numbers.get(item.finding.key) not in repaired)
            )
        )
    ]


def plan_item_lines(item: PlannedItem, number: str = "") -> Iterator[Line]:
    """What would be done about one finding."""
    first, *others = item.steps
    lead = f"{number:<3}" if number else ""
    yield row(
        lead,
        (f"{item.finding.code:<{_CODE_WIDTH}} ", "strong"),
        first.sentence(),
        hang=3 + _CODE_WIDTH,
        right=("asks", "warning") if item.asks else None,
    )
    yield from diff_lines(first)
    for step in item.steps:
        if said := step.losses():
            yield row(("! ", "warning"), (said, "warning"), indent=5, hang=2)
    # each diff is shown; of other steps of one kind, the first ones are enough
    shown, cut = diff.split(others, lambda step: None if step.texts() else type(step).__name__)
    for step in shown:
        yield row(("→ ", "faint"), step.sentence(), indent=5, hang=2)
        yield from diff_lines(step)
    for _, number_left in cut:
        yield row(("→ ", "faint"), _more(number_left), indent=5, hang=2)
    if item.later:
        later = ", then ".join(
            fix.id + (", which asks first" if fix.safety is Safety.CONFIRM else "")
            for fix in item.later
        )
        yield row(("if that is not enough: ", "faint"), later, indent=5, hang=2)


def _more(number: int) -> str:
    return text("and {number} more like these", number=f"{number:,}")


def step_lines(steps: Sequence[Step]) -> Iterator[Line]:
    """What an undo or a restore would do, before it asks."""
    shown, cut = diff.split(steps, type)
    for step in shown:
        yield row(("→ ", "faint"), step.sentence(), hang=2)
    for _, number in cut:
        yield row(("→ ", "faint"), _more(number), hang=2)


def _loses_nothing(step: Step) -> bool:
    """Whether a step certainly keeps all data: a shown edit of a text, a mode, a start."""
    if step.final:
        return False
    return isinstance(step, SetMode | SetOwner | MachineAction) or step.texts() is not None


def _by_hand(item: PlannedItem, pages: str, options: str) -> Iterator[Line]:
    """What the operator has to do, because no fix can."""
    finding = item.finding
    suggested = suggestion(finding, options)
    refusal = item.refusal if item.fix else ""
    note = finding.severity is Severity.INFO  # its fix was asked for by name
    said = " ".join(filter(None, ("" if note and refusal else finding.next, refusal)))
    more = f"hermes-doctor explain {finding.code}{pages}"
    yield row(
        ("Needs you: ", "warning"),
        (f"{finding.code}  ", "strong"),
        said or f"{finding.title}. {NO_FIX} ",
        *(() if said else ((more, "command"),)),
        hang=11,
    )
    if suggested:
        yield row((suggested, "command"), indent=11, hang=2)


def suggestion(finding: Finding, options: str) -> str:
    """The whole command that the finding suggests, as `check` prints it; "" if there is none."""
    suggested = finding.data.get("suggests")
    return f"{suggested[0]}{options}" if suggested else ""


def diff_lines(step: Step) -> Iterator[Line]:
    """The changes of a step: its own lines, or a redacted diff of the text."""
    for line in _diff(step) or ():
        if not line.startswith(("--- ", "+++ ", "@@")):
            yield row((line, _DIFF.get(line[:1], "faint")), indent=5)


def _diff(step: Step) -> list[str] | None:
    texts = step.texts()
    return list(step.lines()) or (list(redacted_diff(*texts)) if texts else None)


def receipt_lines(
    journal: Journal, options: str, *, final: bool = True, undone: Sequence[str] = ()
) -> Iterator[Line]:
    """What a run did: one line for each item, its losses and reasons.

    A final receipt also says how to undo it; otherwise the result of all runs does. `undone` are
    the runs that this one has undone.
    """
    items = [item for item in journal.items if item.outcome != "left"]  # the next round does it
    saved = any(item.is_applied for item in items)
    if saved:
        yield row(("✓ ", "good"), f"backup {journal.id} made and verified")
    # each note is shown; of items with the same result, the first ones are enough
    shown, cut = diff.split(
        list(enumerate(items, 1)),
        lambda numbered: (
            None if (item := numbered[1]).notes else (item.code, item.outcome, item.reason)
        ),
    )
    for number, item in shown:
        mark = _MARK[item.outcome]
        if item.outcome == "verified" and any(map(_tells_loss, item.notes)):
            mark = ("! ", "warning")
        name = f"{item.code:<{_CODE_WIDTH}} {item.subject}" if item.code else item.subject
        word = _result(journal, item)
        yield row(mark, f"{number}/{len(items)} ", (name.rstrip(), "strong"), f": {word}", hang=2)
        for note in item.notes:
            yield row((note, "warning" if _tells_loss(note) else ""), indent=6, hang=2)
        if item.reason:
            yield row(item.reason, indent=6)
    for (_, item), number in cut:
        rest = text(
            "and {number} more: {result}", number=f"{number:,}", result=_result(journal, item)
        )
        yield row(_MARK[item.outcome], rest, hang=2)
    yield BLANK
    if journal.note and journal.state != "abandoned":
        yield row(f"Run {journal.id}: {journal.note}.")
    if len(undone) > 1 and journal.state == "done":
        yield row(f"Undone: all {len(undone)} runs of that command ({', '.join(undone)}).")
    if journal.gateway == "left-stopped":
        yield row("The gateway is stopped, as it was before the repair.")
    if journal.gateway == "comes-back":
        yield row(
            "The gateway was stopped, but the script or supervisor that started it still runs and "
            "starts it again. Stop that, too, if the gateway must stay down."
        )
    if saved and final:
        yield row(f"Backup and receipt: {tilde(journal.backup)}")
        if journal.kind != "undo" and journal.undoable:
            yield row("Undo: ", (f"hermes-doctor undo {journal.id}{options}", "command"))
        if journal.kind != "fix":
            yield row("Next: ", (f"hermes-doctor check{options}", "command"))


def _result(journal: Journal, item: ItemRecord) -> str:
    """How an item of this run ended."""
    if item.outcome == "verified" and journal.kind != "fix":
        return "restored"
    if item.outcome == "verified" and not item.code:  # a switch of the provider
        return "done"
    if item.outcome == NOT_CONNECTED:
        return f"{item.done or 'applied'}, not connected yet"
    return _WORD[item.outcome]


def _tells_loss(note: str) -> bool:
    return any(word in note for word in (" lost", "Lost:", " in part", "cannot be saved"))


def open_item_lines(item: PlannedItem, why: str, command: str) -> Iterator[Line]:
    """A problem that was not repaired, why not, and the command that helps."""
    finding = item.finding
    yield row(
        ("– ", "warning"), (finding.code, "strong"), f"  {finding.title}. {why}".rstrip(), hang=2
    )
    yield row((command, "command"), indent=2)


def choice_lines(
    items: Sequence[PlannedItem], command: Callable[[PlannedItem], str], options: str
) -> Iterator[Line]:
    """The persons whom the operator can choose, each with the whole command; the first few."""
    for code in dict.fromkeys(planned.finding.code for planned in items):
        same = [one for one in items if one.finding.code == code]
        yield row(("– ", "warning"), (code, "strong"), f"  {CHOOSE}, because {PERSONAL}:", hang=2)
        for item in same[:MOST_PERSONS]:
            if item.steps:
                step = item.steps[0].sentence()
                yield row(f"{item.finding.title}. {step}:", indent=2, hang=2)
                yield row((command(item), "command"), indent=4)
            else:
                yield row(f"{item.finding.title}. {item.refusal or NO_FIX}", indent=2, hang=2)
        if len(same) > MOST_PERSONS:
            more = f"hermes-doctor check -v --only {code}{options}"
            yield row(f"and {len(same) - MOST_PERSONS} more: ", (more, "command"), indent=2)


def result_lines(
    report: Report,
    runs: Sequence[Journal],
    options: str,
    declined: Set[tuple[str, str]] = frozenset(),
    before: Report | None = None,
) -> Iterator[Line]:
    """Whether the bot answers now, from the examination after the last run, and how to undo it.

    `declined` are the keys of the findings whose repair the operator refused. Problems are counted
    as in the plan, which was made from the report `before`.
    """
    items = [item for run in runs for item in run.items if item.outcome != "left"]
    if not items:
        return
    done, total, skipped = _tally(report, runs, declined, before)
    judged = report.verdict
    bad = judged is not None and judged.kind in (VerdictKind.NOT_WORKING, VerdictKind.UNKNOWN)
    mark = ("! ", "warning") if bad or done < total else ("✓ ", "good")
    bad = bad or any(item.outcome == NOT_CONNECTED for item in items)
    said = judged.headline if judged else ""
    yield BLANK
    left = text("{number} skipped, because you answered no.", number=skipped) if skipped else ""
    result = sentences(f"Repaired {done} of {total}.", left, said)
    yield row(mark, (result, "strong"), hang=2)
    if bad:
        yield row("Next: ", (f"hermes-doctor check{options}", "command"), hang=6)
    saved = [run for run in runs if any(item.is_applied for item in run.items)]
    if command := undo_command(runs, options):
        yield row("Undo: ", (command, "command"), hang=6)
    for run in saved:
        yield row(f"Backup and receipt: {tilde(run.backup)}", hang=6)


def _tally(
    report: Report,
    runs: Sequence[Journal],
    declined: Set[tuple[str, str]],
    before: Report | None,
) -> tuple[int, int, int]:
    """How many problems are repaired, of how many, and how many were skipped."""
    numbers = Problems(before).numbers() if before and before.complete else {}
    open_ = {finding.key for finding in report.findings}
    ended: dict[object, bool] = {}
    last = {(item.code, item.subject): item for run in runs for item in run.items}
    for key, item in last.items():
        # what waited for the repair of the same file may be gone with it
        good = item.outcome == "verified" or (item.outcome == "left" and key not in open_)
        name = numbers.get(key, key)
        ended[name] = ended.get(name, True) and good
    skipped = {numbers.get(key, key) for key in declined} - ended.keys()
    return sum(ended.values()), len(ended) + len(skipped), len(skipped)


def undo_command(runs: Sequence[Journal], options: str) -> str:
    """The command that undoes all runs of one command; empty if nothing can be undone."""
    saved = [run for run in runs if run.in_place]
    return f"hermes-doctor undo {saved[-1].id}{options}" if saved else ""


def plan_document(
    planned: Sequence[PlannedItem], command: Callable[[PlannedItem], str]
) -> list[dict[str, Any]]:
    """The plan as JSON data; `command` makes the command that applies one item without asking."""
    return [
        {
            "code": item.finding.code,
            "subject": item.finding.subject,
            "fix": item.fix.id if item.fix else None,
            "safety": item.fix.safety.value if item.fix else None,
            "steps": [
                {"what": step.sentence(), "diff": _diff(step), "losses": step.losses() or None}
                for step in item.steps
            ],
            "asks": item.asks,
            "unnamed": item.unnamed,
            "personal": item.personal,
            "command": command(item) if item.steps and item.refusal is None else None,
            "refusal": item.refusal,
            "later": [fix.id for fix in item.later],
        }
        for item in planned
    ]


def run_document(journal: Journal) -> dict[str, Any]:
    """The receipt as JSON data."""
    return {
        "run": journal.id,
        "kind": journal.kind,
        "state": journal.state,
        "of": journal.of,
        "backup": str(journal.backup),
        **fields_of(journal, "note gateway kept unremoved saved"),
        "items": [
            {"code": item.code or None} | fields_of(item, "subject fix outcome reason steps notes")
            for item in journal.items
        ],
    }
