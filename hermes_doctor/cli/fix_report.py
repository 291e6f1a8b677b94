"""Reports at the end of `fix` what is left and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor.cli.fix_session import Consent, Session
from hermes_doctor.core.message import listed
from hermes_doctor.core.model import Severity
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.cli.fix_named import NamedCode
    from hermes_doctor.core.model import Report
    from hermes_doctor.core.terminal.lines import Line
    from hermes_doctor.repair.transaction.plan import PlannedItem


def print_plan(
    session: Session,
    report: Report,
    planned: Sequence[PlannedItem],
    said: Sequence[str],
    named: Sequence[NamedCode],
) -> None:
    """Print the plan, what it leaves out, and an answer for each code that was typed."""
    from hermes_doctor.render import repair, report as rendered

    show([row(("! ", "warning"), text, hang=2) for text in said])
    if not planned and len(named) < max(1, len(session.words)):
        show([repair.nothing_line(report, session.subject)])
    if planned:
        ready = [item for item in planned if item.ready]
        persons = [one for one in ready if one.personal and session.subject is None]
        command = session.apply_command() if len(persons) < len(ready) else ""
        show(repair.plan_lines(planned, session.home.path, command, session.page_options, report))
        show(repair.choice_lines(persons, session.apply_command, session.options))
    show([*repair.muted_lines(report), *rendered.open_questions(report)])
    show(named_lines(named))


def failure_reasons(runs: Sequence[Journal]) -> dict[tuple[str, str], str]:
    """Why fixes that were applied did not hold, by the key of the finding."""
    from hermes_doctor.cli.fix_named import NOT_DONE

    return {
        (item.code, item.subject): item.reason
        for run in runs
        for item in run.items
        if item.outcome in NOT_DONE and item.reason
    }


def report_rest(
    session: Session,
    report: Report,
    planned: Sequence[PlannedItem],
    shown: Sequence[PlannedItem],
    runs: Sequence[Journal],
    consent: Consent,
    named: Sequence[NamedCode],
) -> None:
    """Print what is left, and what to do about it."""
    from hermes_doctor.render import repair, report as rendered

    if not shown and len(named) < max(1, len(session.words)):
        show([repair.nothing_line(report, session.subject)])
    show([*repair.muted_lines(report), *rendered.open_questions(report)])
    waiting = [  # for the operator to choose a person
        item
        for item in planned
        if item.personal and (item.unnamed or item.finding.key in consent.unchosen)
    ]
    show(repair.choice_lines(waiting, session.apply_command, session.options))
    for item in planned:
        finding = item.finding
        why = consent.refused.get(finding.key) or (item.refusal if item.fix else None)
        if item in waiting:
            continue
        if finding.key in consent.declined:
            show(repair.open_item_lines(item, consent.silence, session.apply_command(item)))
        elif item.unnamed:
            why = repair.why_unnamed(item)
            why = f"{why[0].upper()}{why[1:]}. To apply its fix, name the code:"
            show(repair.open_item_lines(item, why, session.apply_command(item)))
        elif why is not None or (
            not item.steps and (item.named or finding.severity is not Severity.INFO)
        ):
            explain = f"hermes-doctor explain {finding.code}{session.page_options}"
            more = repair.suggestion(finding, session.options) or explain
            show(repair.open_item_lines(item, why or finding.next or repair.NO_FIX, more))
    show(named_lines(named))
    held = [run for run in runs if any(item.is_applied for item in run.items)]
    changed = any(map(_changes_settings, held))
    if changed and report.gateways and not any(run.gateway == "started" for run in runs):
        pid = report.gateways[0].pid
        text = f"The gateway (process {pid}) still uses the old files. Restart it."
        show([row(("! ", "warning"), text, hang=2)])


def named_lines(named: Sequence[NamedCode]) -> Iterator[Line]:
    """What there is to say about typed codes that no plan and no receipt is about."""
    from hermes_doctor.cli.fix_named import ABSENT

    for named_code in named:
        if named_code.is_shown:
            continue
        mark = ("· ", "faint") if named_code.state == ABSENT else ("! ", "warning")
        yield row(mark, named_code.text, hang=2)
        for command in named_code.commands:
            yield row((command, "command"), indent=2)


def _changes_settings(run: Journal) -> bool:
    """Whether a run changed files of the home that the gateway reads only when it starts."""
    from hermes_doctor.backup.vault.selection import is_process_file, is_read_on_demand
    from hermes_doctor.repair.transaction.paths import changes_only_mode

    return any(
        not os.path.isabs(record.path)
        and not changes_only_mode(record)
        and not is_process_file(record.path)
        and not is_read_on_demand(record.path)
        for record in run.paths
    )


def describe_runs(runs: Sequence[Journal], options: str) -> str:
    """What is repaired so far, and how to undo it; empty if nothing is."""
    done = [run for run in runs if any(item.is_applied for item in run.items)]
    codes = [item.code for run in done for item in run.items if item.is_applied]
    if not done:
        return ""
    from hermes_doctor.render.repair import undo_command

    names = listed(sorted(set(codes)))
    undo = undo_command(done, options)
    told = f"Repaired: {names}. Nothing else was changed."
    return f"{told} To undo it: {undo}." if undo else told


def has_open_problems(
    planned: Sequence[PlannedItem], refused: Container[tuple[str, str]] = ()
) -> bool:
    """Whether an error is left, or a warning whose fix was offered but not applied."""
    return any(
        item.finding.severity.rank <= Severity.ERROR.rank
        or (
            item.finding.severity is not Severity.INFO
            and (item.denied or item.finding.key in refused)
        )
        for item in planned
    )


def report_document(
    report: Report,
    planned: Sequence[PlannedItem],
    runs: Sequence[Journal],
    recovered: Sequence[str],
    session: Session,
    named: Sequence[NamedCode],
) -> dict[str, Any]:
    """The report, the plan and what was done, as one document."""
    from hermes_doctor.cli.fix_named import documents
    from hermes_doctor.render import document, repair

    made = document.of_report(report)
    made["repair"] = {
        "applied": bool(runs),
        "plan": repair.plan_document(planned, session.apply_command),
        "named": documents(named),
        "runs": [repair.run_document(run) for run in runs],
        "undo": repair.undo_command(runs, report.options) or None,
        "recovered": list(recovered),
    }
    return made
