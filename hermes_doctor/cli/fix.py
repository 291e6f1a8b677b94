"""`fix`: the plan without --apply; with it, the plan carried out, verified and written down."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    from hermes_doctor.home import Home
    from hermes_doctor.model import Finding, Report
    from hermes_doctor.plugins.load import Plugins
    from hermes_doctor.records.journal import Journal
    from hermes_doctor.repair.plan import Planned

EPILOG = """\b
Examples:
  hermes-doctor fix                         the plan; changes nothing
  hermes-doctor fix --apply                 all of it
  hermes-doctor fix CFG-YAML --apply --yes  one code, without asking

\b
Exit codes:
  0  all done and verified, or nothing to do
  1  something is left, was refused or taken back, the plan was only shown,
     nothing was found while some check could not look, or a check crashed
  2  could not run, or no check could look; nothing was changed
"""
ROUNDS = 5
"""Fixes that change the same file come one after the other; more rounds than this never help."""


def fix(
    codes: Annotated[
        list[str] | None,
        typer.Argument(help="Only these codes.", autocompletion=complete_code),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Carry the plan out.")] = False,
    yes: YesOption = False,
    subject: Annotated[
        str | None, typer.Option("--subject", help="Only what is about this, as `check` names it.")
    ] = None,
    deep: DeepOption = False,
    network: NetworkOption = False,
    home: HomeOption = None,
    json: JsonOption = False,
    plugins: PluginsOption = None,
    vault: VaultOption = None,
) -> int:
    """Plan the repair; with --apply back up, repair, verify."""
    from hermes_doctor import home as homes
    from hermes_doctor.cli import shared_options

    where = homes.find(home)
    loaded = shared_options.loaded(plugins)
    session = Session(where, loaded, codes or [], subject, deep=deep, network=network)
    named = shared_options.named_home(home)
    session.options = shared_options.repeated(named, plugins)
    session.fix_options = shared_options.repeated(named, plugins, vault, deep=deep, network=network)
    session.page_options = shared_options.repeated(plugins=plugins)
    if apply:
        from hermes_doctor.cli.restore_common import recovered
        from hermes_doctor.records.home_lock import locked

        with locked(where), recovered(where, loaded, json=json) as ended:
            said = [one.text for one in ended]
            code = _apply(session, said, vault=vault, yes=yes, json=json)
            return code or int(any(one.partial for one in ended))
    return _show(session, json=json)


class Session:
    """One call of `fix`: the home, the plugins, the codes asked for, and what hints repeat."""

    options = fix_options = page_options = ""

    def __init__(
        self,
        home: Home,
        plugins: Plugins,
        codes: Sequence[str],
        subject: str | None = None,
        *,
        deep: bool = False,
        network: bool = False,
    ) -> None:
        from hermes_doctor.cli.shared_options import select

        self.home = home
        self.plugins = plugins
        self.deep = deep
        self.network = network
        self.words = list(codes)
        self.subject = subject
        self.onward: dict[tuple[str, str], Finding] = {}
        """Findings whose fix was not enough, each with the fix to go on with."""
        self.checks, self.codes = select(plugins, codes, [])

    def apply_command(self, one: Planned | None = None) -> str:
        """What to type to have all that was asked for carried out, or one thing without asking."""
        words = [one.finding.code] if one else self.words
        subject = one.finding.subject if one and one.personal else self.subject
        if subject is not None:
            import shlex

            words = [*words, f"--subject {shlex.quote(subject)}"]
        yes = " --yes" if one and not one.personal else ""
        return f"hermes-doctor fix{''.join(f' {w}' for w in words)} --apply{yes}{self.fix_options}"

    def go_on(self, chosen: Sequence[Planned], run: Journal) -> None:
        """Keep what is to be gone on with, and forget what is done."""
        findings = {one.finding.key: one.finding for one in chosen}
        for item in run.items:
            key = (item.code, item.subject)
            if item.outcome == "not-enough":
                self.onward[key] = findings[key]._replace(fix=item.then)
            elif item.outcome != "left":
                self.onward.pop(key, None)

    def look(self) -> tuple[Report, list[Planned]]:
        """Examine the home and plan for what is found."""
        from hermes_doctor.cli.shared_options import narrowed
        from hermes_doctor.examination import runner
        from hermes_doctor.probes.probes import Probes
        from hermes_doctor.repair.plan import plan

        probes = Probes(self.home, deep=self.deep, network=self.network)
        report = runner.report(probes, self.plugins, self.checks, options=self.options)
        report = narrowed(report, self.codes, self.subject)
        # A quick look need not see again what it saw before; it is there until a fix holds.
        seen = {finding.key for finding in report.findings}
        findings = [self.onward.get(finding.key, finding) for finding in report.findings]
        findings += [finding for key, finding in self.onward.items() if key not in seen]
        planned = [self._as_named(one) for one in plan(probes, self.plugins, findings)]
        probes.close()  # or a run would find its own readers holding the databases
        return report, planned

    def _as_named(self, one: Planned) -> Planned:
        """What would cost more than it is worth waits until its code is named."""
        from dataclasses import replace

        waits = one.weighty or one.personal or one.optional
        return replace(one, unnamed=waits and not self.names(one))

    def names(self, one: Planned) -> bool:
        """Whether its code was typed."""
        return one.finding.code.lower() in {word.lower() for word in self.words}


def _show(session: Session, *, json: bool) -> int:
    """The plan, and nothing else."""
    from hermes_doctor.repair import recovery

    report, planned = session.look()
    said = recovery.pending(session.home, session.options)
    if json:
        _document(report, planned, [], said)
    else:
        from hermes_doctor.render import repair, report as render_report
        from hermes_doctor.terminal.lines import row
        from hermes_doctor.terminal.show import show

        show([row(("! ", "warning"), text, hang=2) for text in said])
        if not planned:
            show([repair.nothing(report)])
        show(repair.plan_lines(planned, session.apply_command(), session.page_options))
        show(render_report.open_questions(report))
    if report.blind and not planned:
        return _blind(report, json=json)
    unseen = not planned and report.open
    return int(unseen or _left(planned) or any(p.ready for p in planned))


def _blind(report: Report, *, json: bool) -> int:
    """No check could look, so that there is nothing to go by."""
    from hermes_doctor.cli.check_run import say_blind

    if not json:
        say_blind([report])
    return 2


def _apply(
    session: Session, said: Sequence[str], *, vault: VaultOption, yes: bool, json: bool
) -> int:
    """Rounds of plan, run and look again."""
    from hermes_doctor.cli import exits
    from hermes_doctor.model import Status
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.render import repair
    from hermes_doctor.repair.plan import verifier
    from hermes_doctor.terminal.show import show

    verify = verifier(
        lambda: Probes(session.home, deep=session.deep, network=session.network), session.plugins
    )
    runs: list[Journal] = []
    words = Words(
        yes=yes,
        quiet=json,
        page_options=session.page_options,
        one_named=session.subject is not None,
    )
    report, planned = session.look()
    shown = planned
    outcomes: dict[tuple[str, str], str] = {}
    for _ in range(ROUNDS):
        chosen = [
            one
            for one in planned
            if outcomes.get(one.finding.key, "left") in ("left", "not-enough") and words.agrees(one)
        ]
        if not chosen:
            break
        steering = {one.finding.key for one in chosen if one.steers}
        run = _run(session, chosen, vault, report.hermes_version, verify, quiet=json)
        runs.append(run)
        exits.changed()
        for item in run.items:
            outcomes[item.code, item.subject] = item.outcome
            if item.outcome == "refused":
                words.refused[item.code, item.subject] = item.reason or "refused"
            elif item.outcome in ("failed", "rolled-back"):
                words.steered |= (item.code, item.subject) in steering
        session.go_on(chosen, run)
        if not json:
            show(repair.receipt_lines(run, session.options))
        report, planned = session.look()  # what was hidden behind it may show now
    if json:
        _document(report, shown, runs, said)
    else:
        _close(session, report, planned, shown, runs, words)
    failed = any(outcome != "verified" for outcome in outcomes.values())
    if report.blind and not shown:
        return _blind(report, json=json)
    failed = failed or (not shown and report.open) or bool(report.ended(Status.CRASHED))
    failed = failed or any(run.leaves_files for run in runs)
    undone = {*words.declined, *words.refused}
    asked_for = [one for one in planned if session.names(one)]
    failed = failed or any(one.denied or one.finding.key in undone for one in asked_for)
    return int(failed or _left(planned, undone))


class Words:
    """What the operator agreed to; asked once for each finding."""

    def __init__(
        self, *, yes: bool, quiet: bool, page_options: str, one_named: bool = False
    ) -> None:
        self.page_options = page_options
        self.one_named = one_named
        """Whether the one subject was named that this is about: `--yes` lets in nobody else."""
        self.yes = yes
        self.quiet = quiet
        self.agreed: set[tuple[str, str]] = set()
        self.declined: set[tuple[str, str]] = set()
        self.refused: dict[tuple[str, str], str] = {}
        self.steered = False
        """Whether the gateway was steered and that did not help: what failed would fail again."""

    @property
    def silence(self) -> str:
        """Why something that asks first was not done."""
        from hermes_doctor.cli.options import can_ask

        if can_ask() and not self.quiet:
            return "it asks first, and you did not say yes."
        return "it asks first, and there is no terminal to ask on; --yes agrees beforehand."

    def agrees(self, one: Planned) -> bool:
        """Whether a plan may be applied: safe ones may, the others are shown and asked about."""
        key = one.finding.key
        if not one.ready or one.fix is None or key in self.declined or key in self.refused:
            return False
        if self.steered and one.steers:
            self.refused[key] = "the gateway was steered once already, and that did not help"
            return False
        answered = self.yes and (self.one_named or not one.personal)
        if not one.asks or answered or key in self.agreed:
            return True
        (self.agreed if self._ask(one) else self.declined).add(key)
        return key in self.agreed

    def _ask(self, one: Planned) -> bool:
        from hermes_doctor.cli.options import sure
        from hermes_doctor.render import repair
        from hermes_doctor.terminal.show import show

        if self.quiet:
            return False
        show(repair.one_plan(one, self.page_options))
        who = f", {one.finding.subject}" if one.personal else ""
        return sure(f"Apply this fix for {one.finding.code}{who}?")


def _run(
    session: Session,
    chosen: Sequence[Planned],
    vault: VaultOption,
    hermes: str | None,
    verify: Any,
    *,
    quiet: bool,
) -> Journal:
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.cli.progress_bars import repair_bar
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
        return run.apply(items, verify)


def _close(
    session: Session,
    report: Report,
    planned: Sequence[Planned],
    shown: Sequence[Planned],
    runs: Sequence[Journal],
    words: Words,
) -> None:
    """What is left, and what to do about it."""
    from hermes_doctor.render import repair, report as render_report
    from hermes_doctor.terminal.lines import row
    from hermes_doctor.terminal.show import show

    if not shown:
        show([repair.nothing(report)])
    show(render_report.open_questions(report))
    for one in planned:
        finding = one.finding
        why = words.refused.get(finding.key) or one.refusal
        hint = ("more: ", f"hermes-doctor explain {finding.code}{session.page_options}")
        if finding.key in words.declined:
            why = words.silence
            hint = ("do it: ", session.apply_command(one))
        elif one.unnamed:
            why = f"{repair.unnamed(one)}, so that its code must be named."
            hint = ("do it: ", session.apply_command(one))
        elif why is None:
            continue
        show(
            [
                row(
                    ("– ", "warning"), (finding.code, "strong"), f"  {finding.title}: ", why, hang=2
                ),
                row(hint[0], (hint[1], "command"), indent=2),
            ]
        )
    changed = any(run.paths and _held(run) for run in runs)
    if changed and report.gateways and not any(run.gateway == "started" for run in runs):
        pid = report.gateways[0].pid
        text = f"The gateway (process {pid}) still works with what it read before: restart it."
        show([row(("! ", "warning"), text, hang=2)])


def _held(run: Journal) -> bool:
    return any(item.outcome == "verified" for item in run.items)


def _left(planned: Sequence[Planned], refused: Container[tuple[str, str]] = ()) -> bool:
    """Whether an error is left, or a warning that a fix was offered for and not done."""
    from hermes_doctor.model import Severity

    return any(
        one.finding.severity.rank <= Severity.ERROR.rank
        or (
            one.finding.severity is not Severity.INFO and (one.denied or one.finding.key in refused)
        )
        for one in planned
    )


def _document(
    report: Report, planned: Sequence[Planned], runs: Sequence[Journal], said: Sequence[str]
) -> None:
    from hermes_doctor.render import document, repair

    made = document.of_report(report)
    made["repair"] = {
        "applied": bool(runs),
        "plan": repair.plan_document(planned),
        "runs": [repair.run_document(run) for run in runs],
        "recovered": list(said),
    }
    typer.echo(document.dump(made))
