"""Examines and plans for one call of `fix`, and decides which fixes may be applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_doctor.cli.option_values import filter_report, mark_muted, select, severities_for
from hermes_doctor.core.message import text
from hermes_doctor.core.terminal.show import show

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.core.home import Home
    from hermes_doctor.core.model import Finding, Report
    from hermes_doctor.diagnosis.plugins.load import Plugins
    from hermes_doctor.repair.transaction.plan import PlannedItem


class Session:
    """One call of `fix`: the home, the plugins, the requested codes, and options for hints."""

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
        self.home = home
        self.plugins = plugins
        self.deep = deep
        self.network = network
        self.words = list(codes)
        self.subject = subject
        self.elsewhere: dict[str, list[str]] = {}
        """The subjects that --subject left out, by code."""
        self.onward: dict[tuple[str, str], Finding] = {}
        """Findings whose fix was not enough, each with the next fix to try."""
        self.checks, self.codes = select(plugins, codes, [])
        if codes:  # and the checks that decide whether a log line about one of them is over
            chosen = {check.id for check in self.checks}
            rules = [rule for rule in plugins.rules if rule.code in self.codes]
            wanted = {id for rule in rules for id in rule.unless_ok} - chosen
            self.checks += [check for check in plugins.checks if check.id in wanted]

    def apply_command(self, item: PlannedItem | None = None) -> str:
        """The command that applies everything requested, or one plan without asking."""
        words = [item.finding.code] if item else self.words
        subject = item.finding.subject if item and item.personal else self.subject
        if subject is not None:
            import shlex

            words = [*words, f"--subject {shlex.quote(subject)}"]
        yes = " --yes" if item else ""
        return f"hermes-doctor fix{''.join(f' {w}' for w in words)} --apply{yes}{self.fix_options}"

    def keep_unfinished(self, chosen: Sequence[PlannedItem], run: Journal) -> None:
        """Keep the findings that need another fix, and drop the finished ones."""
        findings = {planned.finding.key: planned.finding for planned in chosen}
        for item in run.items:
            key = (item.code, item.subject)
            if item.outcome == "not-enough":
                self.onward[key] = findings[key]._replace(fix=item.then)
            elif item.outcome != "left":
                self.onward.pop(key, None)

    def look(self) -> tuple[Report, list[PlannedItem]]:
        """Examine the home and plan repairs for the findings.

        Marked are plans whose code was typed, and costly, personal or optional ones that wait.
        """
        from dataclasses import replace

        from hermes_doctor.diagnosis.examination import ranking, report as reports
        from hermes_doctor.diagnosis.probes.probes import Probes
        from hermes_doctor.repair.transaction.plan import plan

        probes = Probes(self.home, deep=self.deep, network=self.network)
        named = self.named_codes()
        severities = {
            code: severity
            for code, severity in severities_for(self.home.path, self.plugins).items()
            if code not in named
        }
        report = reports.report(
            probes, self.plugins, self.checks, options=self.options, severities=severities
        )
        every = mark_muted(report, but=named)
        report = filter_report(every, self.codes, self.subject)
        self.elsewhere = {
            code: [one.subject for one in every.findings if one.code == code] for code in named
        }
        # A quick examination may miss what an earlier one found; it stays until a fix succeeds.
        seen = {finding.key for finding in report.findings}
        loud = [finding for finding in report.findings if not finding.muted]
        findings = [self.onward.get(finding.key, finding) for finding in loud]
        findings += [finding for key, finding in self.onward.items() if key not in seen]
        # A note without a fix needs no plan, unless the operator asks for it.
        findings = [one for one in findings if one.fix or one.is_problem or one.code in named]
        findings.sort(key=lambda one: ranking.repair_order(report, one))
        planned = []
        for item in plan(probes, self.plugins, findings):
            waits = item.is_disproportionate or item.personal or item.optional
            is_named = self.names(item)
            planned.append(replace(item, named=is_named, unnamed=waits and not is_named))
        probes.close()  # else the run would find our own readers holding the databases open
        return report, planned

    def plan_everything(self) -> list[PlannedItem]:
        """Run all checks, and plan repairs for the problems; for codes that were not found."""
        from hermes_doctor.diagnosis.examination import report as reports
        from hermes_doctor.diagnosis.probes.probes import Probes
        from hermes_doctor.repair.transaction.plan import plan

        probes = Probes(self.home, deep=self.deep, network=self.network)
        severities = severities_for(self.home.path, self.plugins)
        report = reports.report(
            probes, self.plugins, self.plugins.checks, options=self.options, severities=severities
        )
        report = mark_muted(report)
        problems = [finding for finding in report.findings if finding.is_problem]
        planned = plan(probes, self.plugins, problems)
        probes.close()
        return planned

    def named_codes(self) -> frozenset[str]:
        """The codes that were typed: they are repaired even if they are muted or switched off."""
        return frozenset(word.upper() for word in self.words)

    def typed_codes(self) -> list[str]:
        """The codes that were typed, in that order. Names of checks and groups are left out."""
        known = {code for check in self.checks for code in check.codes}
        return [
            code for code in dict.fromkeys(word.upper() for word in self.words) if code in known
        ]

    def names(self, item: PlannedItem) -> bool:
        """Whether the plan's code was typed."""
        return item.finding.code in self.named_codes()


class Consent:
    """What the operator agreed to; each fix of a finding is asked about once."""

    def __init__(self, session: Session, *, yes: bool, pick: bool, quiet: bool) -> None:
        self.session = session
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
        if self.can_ask():
            return "You answered no."
        return "It asks first, but no terminal is open. To answer yes: add --yes."

    def can_ask(self) -> bool:
        """Whether somebody can answer a question."""
        from hermes_doctor.cli.option_declarations import can_ask

        return can_ask() and not self.quiet

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
        # Without --subject, `--yes` grants nobody access; without its code, it gives up no data.
        nobody = self.session.subject is None
        if item.personal and nobody and (self.yes or not self.can_ask()):
            self.unchosen.add(key)
            return False
        if self.yes and item.fix.gives_up_data and not self.session.names(item):
            self.refused[key] = text(
                "Data is lost. To agree, name the code: "
                "hermes-doctor fix {code} --apply --yes{options}",
                code=item.finding.code,
                options=self.session.fix_options,
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
        from hermes_doctor.backup.records.journal import NOT_CONNECTED

        steering = {planned.finding.key for planned in chosen if planned.controls_gateway}
        for item in run.items:
            if item.outcome == "refused":
                self.refused[item.code, item.subject] = item.reason or "refused"
            elif item.outcome in ("failed", "rolled-back", NOT_CONNECTED):
                self.steered |= (item.code, item.subject) in steering
        return {(item.code, item.subject): item.outcome for item in run.items}

    def _ask(self, item: PlannedItem) -> bool:
        from hermes_doctor.cli.option_declarations import confirm
        from hermes_doctor.render import repair

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
        question = "Apply this fix for {code}? You can undo it."
        if item.deletes:
            question = "Apply this fix for {code}? It cannot be undone."
        return confirm(text(question, code=finding.code))
