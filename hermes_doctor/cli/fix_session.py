"""Examines and plans for one call of `fix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.model import Finding, Report
    from hermes_doctor.plugins.declare import Check
    from hermes_doctor.plugins.load import Plugins
    from hermes_doctor.records.journal import Journal
    from hermes_doctor.repair.plan import PlannedItem


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
        from hermes_doctor.cli.shared_options import select

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
        if codes:
            self.checks += self._deciding_checks()

    def _deciding_checks(self) -> list[Check]:
        """The checks that decide whether a log line about one of the codes is over."""
        chosen = {check.id for check in self.checks}
        rules = [rule for rule in self.plugins.rules if rule.code in self.codes]
        wanted = {id for rule in rules for id in rule.unless_ok} - chosen
        return [check for check in self.plugins.checks if check.id in wanted]

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
        findings = {one.finding.key: one.finding for one in chosen}
        for item in run.items:
            key = (item.code, item.subject)
            if item.outcome == "not-enough":
                self.onward[key] = findings[key]._replace(fix=item.then)
            elif item.outcome != "left":
                self.onward.pop(key, None)

    def look(self) -> tuple[Report, list[PlannedItem]]:
        """Examine the home and plan repairs for the findings."""
        from hermes_doctor.cli.shared_options import filter_report, mark_muted, severities_for
        from hermes_doctor.examination import ranking, runner
        from hermes_doctor.probes.probes import Probes
        from hermes_doctor.repair.plan import plan

        probes = Probes(self.home, deep=self.deep, network=self.network)
        named = self.named_codes()
        severities = {
            code: severity
            for code, severity in severities_for(self.home.path, self.plugins).items()
            if code not in named
        }
        report = runner.report(
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
        planned = [self._as_named(one) for one in plan(probes, self.plugins, findings)]
        probes.close()  # else the run would find our own readers holding the databases open
        return report, planned

    def plan_everything(self) -> list[PlannedItem]:
        """Run all checks, and plan repairs for the problems; for codes that were not found."""
        from hermes_doctor.cli.shared_options import mark_muted, severities_for
        from hermes_doctor.examination import runner
        from hermes_doctor.probes.probes import Probes
        from hermes_doctor.repair.plan import plan

        probes = Probes(self.home, deep=self.deep, network=self.network)
        severities = severities_for(self.home.path, self.plugins)
        report = runner.report(
            probes, self.plugins, self.plugins.checks, options=self.options, severities=severities
        )
        report = mark_muted(report)
        problems = [finding for finding in report.findings if finding.is_problem]
        planned = plan(probes, self.plugins, problems)
        probes.close()
        return planned

    def _as_named(self, item: PlannedItem) -> PlannedItem:
        """Mark a plan whose code was typed, and a costly, personal or optional one that waits."""
        from dataclasses import replace

        waits = item.is_disproportionate or item.personal or item.optional
        named = self.names(item)
        return replace(item, named=named, unnamed=waits and not named)

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
