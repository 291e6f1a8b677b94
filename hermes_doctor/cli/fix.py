"""The `fix` command: show the repair plan, or apply and verify it with --apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes_doctor.cli.fix_consent import Consent
from hermes_doctor.cli.fix_report import (
    describe_runs,
    has_open_problems,
    print_report,
    report_rest,
)
from hermes_doctor.cli.fix_session import Session
from hermes_doctor.cli.options import (
    DeepOption,
    HomeOption,
    JsonOption,
    NetworkOption,
    PluginsOption,
    VaultOption,
    YesOption,
    complete_code,
)

if TYPE_CHECKING:
    from hermes_doctor.model import Report
    from hermes_doctor.records.journal import Journal
    from hermes_doctor.repair.plan import PlannedItem

EPILOG = """\b
Examples:
  hermes-doctor fix                         show the plan; change nothing
  hermes-doctor fix --apply                 repair everything in the plan
  hermes-doctor fix CFG-YAML --apply --yes  repair one code without asking

\b
Exit codes:
  0  the plan is shown; with --apply: all is repaired, or nothing to do
  1  with --apply: something is not repaired or was rolled back, or some
     check could not run; also if a check crashed
  2  could not run, or no check could read the home; nothing was changed
"""
ROUNDS = 5
"""Fixes of the same file are applied in successive rounds; more rounds than this never help."""


def fix(
    codes: Annotated[
        list[str] | None,
        typer.Argument(help="Repair only these codes.", autocompletion=complete_code),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Carry out the plan.")] = False,
    yes: YesOption = False,
    subject: Annotated[
        str | None,
        typer.Option("--subject", help="Repair only this subject, as `check --json` names it."),
    ] = None,
    deep: DeepOption = False,
    network: NetworkOption = False,
    home: HomeOption = None,
    json: JsonOption = False,
    plugins: PluginsOption = None,
    vault: VaultOption = None,
) -> int:
    """Show the repair plan; with --apply, repair."""
    from hermes_doctor import home as homes
    from hermes_doctor.cli import shared_options

    where = homes.find(home)
    loaded = shared_options.load_plugins(plugins)
    session = Session(where, loaded, codes or [], subject, deep=deep, network=network)
    named = shared_options.named_home(home)
    session.options = shared_options.repeat_options(named, plugins)
    session.fix_options = shared_options.repeat_options(
        named, plugins, vault, deep=deep, network=network
    )
    session.page_options = shared_options.repeat_options(plugins=plugins)
    if apply:
        from hermes_doctor.cli.restore_common import recover_first
        from hermes_doctor.records.home_lock import lock_home

        with lock_home(where), recover_first(where, loaded, json=json) as ended:
            said = [one.text for one in ended]
            code = _apply(session, said, vault=vault, yes=yes, json=json)
            return 1 if any(one.partial for one in ended) else code
    return _show(session, json=json)


def _show(session: Session, *, json: bool) -> int:
    """Show the plan only."""
    from hermes_doctor.cli.progress_bars import waiting
    from hermes_doctor.model import Status
    from hermes_doctor.repair import recovery

    with waiting("checking and planning", quiet=json):
        report, planned = session.look()
    said = recovery.interrupted_run_messages(session.home, session.options)
    if json:
        print_report(report, planned, [], said)
    else:
        from hermes_doctor.render import repair, report_rest
        from hermes_doctor.terminal.lines import row
        from hermes_doctor.terminal.show import show

        show([row(("! ", "warning"), text, hang=2) for text in said])
        if not planned:
            show([repair.nothing_line(report)])
        if planned:
            command = session.apply_command()
            show(repair.plan_lines(planned, session.home.path, command, session.page_options))
        show([*repair.muted_lines(report), *report_rest.open_questions(report)])
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
    session: Session, said: Sequence[str], *, vault: VaultOption, yes: bool, json: bool
) -> int:
    """Plan, run and examine again, in rounds."""
    from hermes_doctor.cli import exits
    from hermes_doctor.cli.progress_bars import waiting
    from hermes_doctor.model import Status
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.render import repair
    from hermes_doctor.repair.plan import verifier
    from hermes_doctor.terminal.show import show

    verify = verifier(
        lambda: Probes(session.home, deep=session.deep, network=session.network), session.plugins
    )
    runs: list[Journal] = []
    consent = Consent(
        yes=yes,
        quiet=json,
        page_options=session.page_options,
        one_named=session.subject is not None,
    )
    with waiting("checking and planning", quiet=json):
        report, planned = session.look()
    shown = planned
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
        steering = {one.finding.key for one in chosen if one.controls_gateway}
        run = _run(session, chosen, vault, report.hermes_version, verify, quiet=json)
        runs.append(run)
        exits.note_change()
        for item in run.items:
            outcomes[item.code, item.subject] = item.outcome
            if item.outcome == "refused":
                consent.refused[item.code, item.subject] = item.reason or "refused"
            elif item.outcome in ("failed", "rolled-back"):
                consent.steered |= (item.code, item.subject) in steering
        if text := describe_runs(runs, session.options):
            exits.set_interrupt_text(text)
        session.keep_unfinished(chosen, run)
        if not json:
            show(repair.receipt_lines(run, session.options, final=False))
        with waiting("checking again", quiet=json):
            report, planned = session.look()  # findings that it had hidden may show now
    if json:
        print_report(report, shown, runs, said)
    else:
        report_rest(session, report, planned, shown, runs, consent)
        show(repair.result_lines(report, runs, session.options))
    failed = any(outcome != "verified" for outcome in outcomes.values())
    if report.why_blind and not shown:
        return _blind(report, json=json)
    failed = failed or (not shown and report.open) or bool(report.count_checks(Status.CRASHED))
    failed = failed or any(run.leaves_files for run in runs)
    undone = {*consent.declined, *consent.refused}
    asked_for = [one for one in planned if session.names(one)]
    failed = failed or any(one.denied or one.finding.key in undone for one in asked_for)
    return int(failed or has_open_problems(planned, undone))


def _run(
    session: Session,
    chosen: Sequence[PlannedItem],
    vault: VaultOption,
    hermes: str | None,
    verify: Any,
    *,
    quiet: bool,
) -> Journal:
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.cli.progress_bars import repair_bar
    from hermes_doctor.cli.restore_common import say_if_interrupted
    from hermes_doctor.repair.run import Run

    items = [one.item() for one in chosen]
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
            progress=progress,
        )
        with say_if_interrupted(run):
            return run.apply(items, verify)
