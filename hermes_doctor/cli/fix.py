"""The `fix` command: show the repair plan, or apply and verify it with --apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from hermes_doctor.cli import exits, option_values, separate_work
from hermes_doctor.cli.ask import AskOption, LastQuestion
from hermes_doctor.cli.fix_named import FAILED, NamedCodes
from hermes_doctor.cli.fix_report import (
    describe_runs,
    failure_reasons,
    has_open_problems,
    print_plan,
    report_document,
    report_rest,
)
from hermes_doctor.cli.fix_session import Consent, Session
from hermes_doctor.cli.option_declarations import (
    DeepOption,
    HomeOption,
    JsonOption,
    NetworkOption,
    PluginsOption,
    VaultOption,
    complete_code,
)
from hermes_doctor.cli.progress_bars import print_document, repair_bar, waiting
from hermes_doctor.cli.restore_common import recover_first, say_if_interrupted
from hermes_doctor.core import home as homes
from hermes_doctor.core.model import Status, Trouble
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.core.model import Report
    from hermes_doctor.repair.transaction.plan import PlannedItem

EPILOG = """\b
Examples:
  hermes-doctor fix                         show the plan; change nothing
  hermes-doctor fix --apply                 repair everything in the plan
  hermes-doctor fix --apply --pick          ask before each repair
  hermes-doctor fix CFG-YAML --apply --yes  repair one code without asking
  hermes-doctor fix --apply --ask           repair, then ask a question

\b
Exit codes:
  0  the plan is shown; with --apply: all is repaired, or nothing to do
  1  with --apply: something is not repaired or was rolled back, a code
     that you named is left or could not be checked, some check could
     not run, or --ask got no answer; also if a check crashed
  2  could not run, or no check could read the home; nothing was changed
"""
ROUNDS = 5
"""Fixes of the same file are applied in successive rounds; more rounds than this never help."""


def fix(
    codes: list[str] | None = typer.Argument(
        None, help="Repair only these codes.", autocompletion=complete_code
    ),
    apply: bool = typer.Option(False, "--apply", help="Carry out the plan."),
    yes: bool = typer.Option(
        False, "--yes", "-y", help="Answer yes to every question; choose a person with --subject."
    ),
    pick: bool = typer.Option(
        False, "--pick", help="Ask before each repair, also before safe ones."
    ),
    ask: AskOption = False,
    subject: str | None = typer.Option(
        None, help="Repair only this subject, as `check --json` names it."
    ),
    deep: DeepOption = False,
    network: NetworkOption = False,
    home: HomeOption = None,
    json: JsonOption = False,
    plugins: PluginsOption = None,
    vault: VaultOption = None,
) -> int:
    """Show the repair plan; with --apply, repair."""
    if pick:
        _refuse_to_pick(apply=apply, silent=yes or json)
    where = homes.find(home)
    vault = vault.expanduser().absolute() if vault else None
    named = option_values.named_home(home)
    question = LastQuestion(where, named, wanted=ask, apply=apply, json=json)
    loaded = option_values.load_plugins(plugins)
    session = Session(where, loaded, codes or [], subject, deep=deep, network=network)
    session.options = option_values.repeat_options(named, plugins)
    session.fix_options = option_values.repeat_options(
        named, plugins, vault, deep=deep, network=network
    )
    session.page_options = option_values.repeat_options(plugins=plugins)
    if not apply:
        show = lambda: _show(session, json=json)  # noqa: E731
        return separate_work.run(where, show, loaded, writes=False, vault=vault)
    consent = Consent(session, yes=yes, pick=pick, quiet=json)

    def work() -> int:
        from hermes_doctor.backup.records.home_lock import lock_home

        with lock_home(where), recover_first(where, loaded, json=json) as ended:
            said = [run.text for run in ended]
            code = _apply(session, said, question, consent, vault=vault, json=json)
            code = 1 if any(recovered_run.partial for recovered_run in ended) else code
        return question.end(code)

    return separate_work.run(where, work, loaded, vault=vault)


def _refuse_to_pick(*, apply: bool, silent: bool) -> None:
    """Raise Trouble if --pick cannot ask."""
    from hermes_doctor.cli.option_declarations import can_ask

    if not apply:
        raise Trouble("--pick asks before each repair. Add --apply: fix --apply --pick")
    if silent:
        raise Trouble("--pick asks questions, so it needs neither --yes nor --json. Remove one.")
    if not can_ask():
        raise Trouble(
            "--pick asks questions, but no terminal is open. Nothing was changed. "
            "Name the codes instead: hermes-doctor fix CODE --apply"
        )


def _show(session: Session, *, json: bool) -> int:
    """Show the plan only."""
    from hermes_doctor.repair.transaction import recovery

    with waiting("checking and planning", quiet=json):
        report, planned = session.look()
    said = recovery.interrupted_run_messages(session.home, session.options)
    with waiting("looking for related problems", quiet=json):
        named = NamedCodes(session, report, planned, apply=False).answers()
    if json:
        print_document(report_document(report, planned, [], said, session, named))
    else:
        print_plan(session, report, planned, said, named)
    if report.why_blind and not planned:
        return _blind(report, json=json)
    return int(bool(report.count_checks(Status.CRASHED)))


def _blind(report: Report, *, json: bool) -> int:
    """No check could examine the home, so there is nothing to plan."""
    from hermes_doctor.cli.check_run import say_blind

    if not json:
        say_blind([report])
    return 2


def _apply(
    session: Session,
    said: Sequence[str],
    question: LastQuestion,
    consent: Consent,
    *,
    vault: Path | None,
    json: bool,
) -> int:
    """Plan, run and examine again, in rounds."""
    from hermes_doctor.diagnosis.examination import after_repair
    from hermes_doctor.render import repair

    runs: list[Journal] = []
    with waiting("checking and planning", quiet=json):
        report, planned = session.look()
    before, shown = report, planned
    outcomes: dict[tuple[str, str], str] = {}
    for _ in range(ROUNDS):
        chosen = [
            one
            for one in planned
            if outcomes.get(one.finding.key, "left") in ("left", "not-enough")
            and consent.agrees(one)
        ]
        if not chosen:
            break
        chosen = [one for one in chosen if one.deletes] or chosen  # frees space for the others
        run = _run(session, chosen, vault, report.hermes_version, runs, quiet=json)
        runs.append(run)
        exits.note_change()
        outcomes |= consent.learn(chosen, run)
        if text := describe_runs(runs, session.options):
            exits.set_interrupt_text(text)
        session.keep_unfinished(chosen, run)
        if not json:
            show(repair.receipt_lines(run, session.options, final=False))
        with waiting("checking again", quiet=json):
            report, planned = session.look()  # findings that it had hidden may show now
    with waiting("looking for related problems", quiet=json):
        reasons = {**failure_reasons(runs), **consent.reasons()}
        named = NamedCodes(session, report, planned, runs, reasons, apply=True).answers()
    report = after_repair.judged(report, runs)
    question.note_result(runs, declined=bool(consent.undone))
    if json:
        question.document = report_document(report, shown, runs, said, session, named)
    else:
        report_rest(session, report, planned, shown, runs, consent, named)
        declined = consent.declined if consent.can_ask() else set()  # else nobody answered no
        show(repair.result_lines(report, runs, session.options, declined, before))
    if report.why_blind and not shown:
        return _blind(report, json=json)
    still_there = {item.finding.key for item in planned}
    waited = {key for key, outcome in outcomes.items() if outcome == "left"}
    gone = waited - still_there  # together with what another repair has repaired
    failed = any(outcomes[key] != "verified" for key in outcomes.keys() - gone)
    failed = failed or (not shown and report.open) or bool(report.count_checks(Status.CRASHED))
    failed = failed or any(run.leaves_files for run in runs)
    failed = failed or any(named_code.state in FAILED for named_code in named)
    return int(failed or has_open_problems(planned, consent.undone))


def _run(
    session: Session,
    chosen: Sequence[PlannedItem],
    vault: Path | None,
    hermes: str | None,
    earlier: Sequence[Journal],
    *,
    quiet: bool,
) -> Journal:
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.repair.transaction.plan import verifier
    from hermes_doctor.repair.transaction.run import Run

    verify = verifier(
        lambda: Probes(session.home, deep=session.deep, network=session.network), session.plugins
    )
    items = [planned.item() for planned in chosen]
    codes = ", ".join(sorted({one.finding.code for one in chosen}))
    total = sum(
        change.expect.size for item in items for step in item.steps for change in step.changes()
    )
    with repair_bar("backing up", total, quiet=quiet) as progress:
        run = Run(
            session.home,
            Vault(session.home, vault),
            kind="fix",
            reason=f"before the fix of {codes}",
            hermes=hermes,
            command=earlier[0].id if earlier else None,
            progress=progress,
        )
        with say_if_interrupted(run):
            return run.apply(items, verify)
