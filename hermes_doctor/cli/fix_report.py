"""Reports at the end of `fix` what is left and what to do about it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli.fix_consent import Consent
from hermes_doctor.cli.fix_session import Session

if TYPE_CHECKING:
    from hermes_doctor.model import Report
    from hermes_doctor.records.journal import Journal
    from hermes_doctor.repair.plan import PlannedItem


def report_rest(
    session: Session,
    report: Report,
    planned: Sequence[PlannedItem],
    shown: Sequence[PlannedItem],
    runs: Sequence[Journal],
    consent: Consent,
) -> None:
    """Print what is left, and what to do about it."""
    from hermes_doctor.model import Severity
    from hermes_doctor.render import repair, report_rest
    from hermes_doctor.terminal.lines import row
    from hermes_doctor.terminal.show import show

    if not shown:
        show([repair.nothing_line(report)])
    show([*repair.muted_lines(report), *report_rest.open_questions(report)])
    for one in planned:
        finding = one.finding
        why = consent.refused.get(finding.key) or (one.refusal if one.fix else None)
        if finding.key in consent.declined:
            show(repair.open_item_lines(one, consent.silence, session.apply_command(one)))
        elif one.unnamed:
            why = f"{repair.why_unnamed(one)}, so it runs only if you name its code."
            show(repair.open_item_lines(one, why, session.apply_command(one)))
        elif why is not None or (not one.steps and finding.severity is not Severity.INFO):
            more = f"hermes-doctor explain {finding.code}{session.page_options}"
            show(repair.open_item_lines(one, why or finding.next, more))
    changed = any(run.paths and _held(run) for run in runs)
    if changed and report.gateways and not any(run.gateway == "started" for run in runs):
        pid = report.gateways[0].pid
        text = f"The gateway (process {pid}) still uses the old files. Restart it."
        show([row(("! ", "warning"), text, hang=2)])


def _held(run: Journal) -> bool:
    return any(item.outcome == "verified" for item in run.items)


def describe_runs(runs: Sequence[Journal], options: str) -> str:
    """What is repaired so far, and how to undo it; empty if nothing is."""
    done = [run for run in runs if any(item.outcome == "verified" for item in run.items)]
    codes = [item.code for run in done for item in run.items if item.outcome == "verified"]
    if not done:
        return ""
    from hermes_doctor.message import listed

    names = listed(sorted(set(codes)))
    undo = f"hermes-doctor undo {done[-1].id}{options}"
    return f"Repaired: {names}. Nothing else was changed. To undo it: {undo}."


def has_open_problems(
    planned: Sequence[PlannedItem], refused: Container[tuple[str, str]] = ()
) -> bool:
    """Whether an error is left, or a warning whose fix was offered but not applied."""
    from hermes_doctor.model import Severity

    return any(
        one.finding.severity.rank <= Severity.ERROR.rank
        or (
            one.finding.severity is not Severity.INFO and (one.denied or one.finding.key in refused)
        )
        for one in planned
    )


def print_report(
    report: Report,
    planned: Sequence[PlannedItem],
    runs: Sequence[Journal],
    recovered: Sequence[str],
) -> None:
    from hermes_doctor.render import document, repair

    made = document.of_report(report)
    made["repair"] = {
        "applied": bool(runs),
        "plan": repair.plan_document(planned),
        "runs": [repair.run_document(run) for run in runs],
        "recovered": list(recovered),
    }
    typer.echo(document.dump(made))
