"""Turns findings into steps. Planning writes nothing; this is what `fix` shows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from hermes_doctor.examination.runner import crash, examine
from hermes_doctor.model import CannotFix, CouldNotLook, Finding, Safety, Severity, Status
from hermes_doctor.plugins.declare import Fix
from hermes_doctor.plugins.load import Plugins
from hermes_doctor.probes.probes import Probes
from hermes_doctor.records.journal import ItemRecord
from hermes_doctor.repair.gateway_steps import attended, restarts
from hermes_doctor.repair.run import Item
from hermes_doctor.steps.base import Act, Step
from hermes_doctor.steps.gateway import GatewayStep


@dataclass(frozen=True)
class Planned:
    """What would be done about one finding, or why nothing can be."""

    finding: Finding
    fix: Fix | None
    steps: tuple[Step, ...]
    refusal: str | None = None
    later: tuple[Fix, ...] = ()
    """The fixes that come next, one after the other, where this one is not enough."""
    restarts: bool = False
    """Whether a gateway that is at work is interrupted for it."""
    outside: bool = False
    """Whether something outside the home is changed for it."""
    unseen: bool = False
    """It was refused since something could not be looked at, which may be different next time."""
    unnamed: bool = False
    """It is done only when its code is named, and that was not."""

    @property
    def weighty(self) -> bool:
        """Whether it costs more than the information that it is for: a healthy gateway stays up."""
        costs = self.restarts or self.steers or self.outside
        return costs and self.finding.severity is Severity.INFO

    @property
    def personal(self) -> bool:
        """Whether it is about one person, of whom somebody must know who that is."""
        return self.fix is not None and self.fix.personal

    @property
    def optional(self) -> bool:
        """Whether nothing needs it, so that somebody must choose it by its code."""
        return self.fix is not None and self.fix.optional

    @property
    def steers(self) -> bool:
        """Whether the gateway is started or stopped for it."""
        return any(isinstance(step, GatewayStep) for step in self.steps)

    @property
    def asks(self) -> bool:
        """Whether it waits for the operator's yes, as every start of a gateway does that was not
        running, or wanted by its service, when the fault occurred."""
        starts = any(
            isinstance(step, GatewayStep) and not step.restart and not step.expected
            for step in self.steps
        )
        confirms = self.fix is not None and self.fix.safety is Safety.CONFIRM
        return self.restarts or starts or confirms

    @property
    def ready(self) -> bool:
        """Whether there is something to apply."""
        return self.refusal is None and bool(self.steps) and not self.unnamed

    @property
    def denied(self) -> bool:
        """Whether it has a fix that could do it elsewhere, but not here."""
        offered = self.fix is not None and self.fix.safety is not Safety.MANUAL
        return offered and self.refusal is not None

    def item(self) -> Item:
        """The plan as an item of a run."""
        assert self.fix is not None
        record = ItemRecord(
            fix=self.fix.id,
            code=self.finding.code,
            subject=self.finding.subject,
            check=self.finding.check,
            steps=[step.sentence() for step in self.steps],
            then=self.later[0].id if self.later else None,
        )
        return Item(record, self.steps)


def plan(probes: Probes, plugins: Plugins, findings: Sequence[Finding]) -> list[Planned]:
    """A plan for each finding, in the order of the findings."""
    with redirect_stdout(sys.stderr):  # what a fix prints is not part of our answer
        return [_plan(probes, plugins, finding) for finding in findings]


def _plan(probes: Probes, plugins: Plugins, finding: Finding) -> Planned:
    """The plan of the finding's fix, or of the next one where that declines.

    A fix that could not look has not declined: the next one may be a stronger repair than needed.
    """
    fixes = _chain(plugins, finding)
    if not fixes:
        return Planned(finding, None, (), "no fix can do it; see the page")
    for place, fix in enumerate(fixes):
        planned = _steps(probes, finding, fix)
        if planned.refusal is None:
            return replace(planned, later=fixes[place + 1 :])
        if planned.unseen:
            break
    return planned


def _chain(plugins: Plugins, finding: Finding) -> tuple[Fix, ...]:
    """The finding's fix and those that come after it, as far as they are for its code."""
    found: list[Fix] = []
    fix = plugins.fix(finding.fix) if finding.fix else None
    while fix is not None and fix not in found and (not found or finding.code in fix.codes):
        found.append(fix)
        fix = plugins.fix(fix.then) if fix.then else None
    return tuple(found)


def _steps(probes: Probes, finding: Finding, fix: Fix) -> Planned:
    if fix.safety is Safety.MANUAL:
        return Planned(finding, fix, (), f"by hand: {fix.title}")
    try:
        if fix.structural and (newer := probes.newer()):
            raise CannotFix(f"not judged: {newer}")
        steps = tuple(attended(probes, list(fix.plan(probes, finding))))
        for step in steps:
            step.changes()
        interrupts = restarts(steps)
    except (CannotFix, CouldNotLook) as why:
        return Planned(finding, fix, (), str(why), unseen=isinstance(why, CouldNotLook))
    except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001 (an operator's fix may raise anything)
        return Planned(finding, fix, (), f"the fix {fix.id} crashed: {crash(error)}")
    nothing = None if steps else "there is nothing left to do"
    outside = _outside(probes.home.path, steps)
    return Planned(finding, fix, steps, nothing, restarts=interrupts, outside=outside)


def _outside(home: Path, steps: Sequence[Step]) -> bool:
    """Whether the machine is changed, and not the home alone."""
    paths = [change.path for step in steps for change in step.changes()]
    asks = any(isinstance(step, Act) for step in steps)
    return asks or not all(path.is_relative_to(home) for path in paths)


def _about(record: ItemRecord, reason: str) -> bool:
    """Whether a doubt concerns this item, and not only some other file that the check looks at."""
    others = reason.startswith(("took longer", "the time for all", "looking at"))
    return others or record.subject in reason or ": " not in reason


def verifier(
    make: Callable[[], Probes], plugins: Plugins
) -> Callable[[Sequence[ItemRecord]], list[str | None]]:
    """Verifies by asking the same checks again, with eyes that have seen nothing yet."""

    def verify(records: Sequence[ItemRecord]) -> list[str | None]:
        wanted = {record.check for record in records}
        checks = [check for check in plugins.checks if check.id in wanted]
        probes = make()
        results, findings = examine(probes, checks)
        probes.close()
        ended = {result.id: result for result in results}
        still = {
            finding.key
            for finding in findings
            if finding.severity is not Severity.INFO or finding.fix is not None
        }  # what is left as information, and offers no fix, was never what the fix was for
        said: list[str | None] = []
        for record in records:
            result = ended.get(record.check)
            if result is None:
                said.append(f"the check {record.check} is not there any more")
            elif (record.code, record.subject) in still:
                said.append("the check still finds it")
            elif result.status is Status.CRASHED:
                said.append(f"the check could not be repeated: {result.reason}")
            elif result.status is Status.UNKNOWN and _about(record, result.reason or ""):
                said.append(f"the check could not look: {result.reason}")
            else:
                said.append(None)
        return said

    return verify
