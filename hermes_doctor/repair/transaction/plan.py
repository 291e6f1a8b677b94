"""Turn findings into a plan of steps; planning writes nothing, and `fix` shows the plan."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace

from hermes_doctor.backup.records.journal import ItemRecord
from hermes_doctor.core.model import CannotFix, CouldNotLook, Finding, Safety, Severity, Status
from hermes_doctor.diagnosis.examination.check_threads import describe_crash
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins.declare import Fix
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import MachineAction, Step
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.transaction.gateway_steps import (
    add_gateway_restart,
    interrupts_gateway,
    require_connections,
    starts_stopped,
    unsafe_start,
)
from hermes_doctor.repair.transaction.targets import Item


@dataclass(frozen=True)
class PlannedItem:
    """The steps that would repair one finding, or the reason why none can."""

    finding: Finding
    fix: Fix | None
    steps: tuple[Step, ...]
    refusal: str | None = None
    later: tuple[Fix, ...] = ()
    """The fixes to try next, in order, if this one is not enough."""
    restarts: bool = False
    """Whether a running gateway is interrupted for it."""
    outside: bool = False
    """Whether something outside the home is changed for it."""
    unseen: bool = False
    """It was refused because something could not be read, which may work next time."""
    unnamed: bool = False
    """It is applied only when its code is named, and it was not."""
    named: bool = False
    """The operator typed its code, so the result must say what happened to it."""

    @property
    def is_disproportionate(self) -> bool:
        """Whether it would disturb a gateway or the machine for an informational finding."""
        costs = self.restarts or self.controls_gateway or self.outside
        return costs and self.finding.severity is Severity.INFO

    @property
    def personal(self) -> bool:
        """Whether it concerns one person, whom the operator must know and name."""
        return self.fix is not None and self.fix.personal

    @property
    def optional(self) -> bool:
        """Whether it is not needed, so the operator must choose it by its code."""
        return self.fix is not None and self.fix.optional

    @property
    def controls_gateway(self) -> bool:
        """Whether it starts or stops the gateway."""
        return any(isinstance(step, GatewayStep) for step in self.steps)

    @property
    def starts_gateway(self) -> bool:
        """Whether it starts a gateway that is not running."""
        return bool(self._starts())

    def _starts(self) -> list[GatewayStep]:
        return [step for step in self.steps if isinstance(step, GatewayStep) and not step.restart]

    @property
    def deletes(self) -> bool:
        """Whether it deletes something that no undo restores."""
        return any(step.final for step in self.steps)

    @property
    def asks(self) -> bool:
        """Whether the operator must confirm it.

        So does every start of a gateway that was not running when the fault occurred and that its
        service does not want to run.
        """
        starts = any(not step.expected for step in self._starts())
        confirms = self.fix is not None and self.fix.safety is Safety.CONFIRM
        return self.restarts or starts or confirms

    @property
    def ready(self) -> bool:
        """Whether there is something to apply."""
        return self.refusal is None and bool(self.steps) and not self.unnamed

    @property
    def denied(self) -> bool:
        """Whether there is an automatic fix, but it was refused here."""
        offered = self.fix is not None and self.fix.safety is not Safety.MANUAL
        return offered and self.refusal is not None

    def _done(self) -> str:
        """What is done for it, said if a platform does not connect afterwards."""
        if not self.controls_gateway:
            return ""
        if not all(isinstance(step, GatewayStep) for step in self.steps):
            return "applied"
        return "restarted" if self.restarts else "started"

    def _why_down(self) -> str:
        """Why the gateway that it starts was down, unless it failed: an undo leaves it so again."""
        if not self.starts_gateway or self.finding.data.get("ran") is not False:
            return ""
        return "on-purpose" if self.finding.data.get("on_purpose") else "not-wanted"

    def item(self) -> Item:
        assert self.fix is not None
        record = ItemRecord(
            fix=self.fix.id,
            code=self.finding.code,
            subject=self.finding.subject,
            check=self.finding.check,
            steps=[step.sentence() for step in self.steps],
            then=self.later[0].id if self.later else None,
            done=self._done(),
            down=self._why_down(),
        )
        return Item(record, self.steps)


def plan(probes: Probes, plugins: Plugins, findings: Sequence[Finding]) -> list[PlannedItem]:
    """Plan each finding, in the order of the findings."""
    with redirect_stdout(sys.stderr):  # what a fix prints is not part of our output
        # Refuse to start a gateway that would harm a database which the same plan does not
        # repair.
        planned = [_plan(probes, plugins, finding) for finding in findings]
        if not any(one.ready and starts_stopped(one.steps) for one in planned):
            return planned
        ready = [step for item in planned if item.ready for step in item.steps]
        why = unsafe_start(probes, {change.path for step in ready for change in step.changes()})
        return [
            replace(one, refusal=why) if why and starts_stopped(one.steps) else one
            for one in planned
        ]


def _plan(probes: Probes, plugins: Plugins, finding: Finding) -> PlannedItem:
    """Plan the finding's fix, or the next one if that declines.

    A fix that could not read something has not declined: the next one may be a stronger repair
    than needed.
    """
    fixes = _chain(plugins, finding)
    refused = PlannedItem(finding, None, (), "no fix is known for it")
    for place, fix in enumerate(fixes):
        planned = _steps(probes, finding, fix)
        if planned.refusal is None:
            return replace(planned, later=fixes[place + 1 :])
        if refused.fix is None or not fix.gives_up_data:  # else say why the data cannot be saved
            refused = planned
        if planned.unseen:
            break
    return refused


def _chain(plugins: Plugins, finding: Finding) -> tuple[Fix, ...]:
    """The finding's fix and the fixes that follow it, as long as they handle its code."""
    fixes: list[Fix] = []
    fix = plugins.fix(finding.fix) if finding.fix else None
    while fix is not None and fix not in fixes and (not fixes or finding.code in fix.codes):
        fixes.append(fix)
        fix = plugins.fix(fix.then) if fix.then else None
    return tuple(fixes)


def _steps(probes: Probes, finding: Finding, fix: Fix) -> PlannedItem:
    if fix.safety is Safety.MANUAL:
        return PlannedItem(finding, fix, (), f"by hand: {fix.title}")
    try:
        if fix.structural and (newer := probes.newer()):
            raise CannotFix("{reason}. Update hermes-doctor first.", reason=newer)
        steps = tuple(add_gateway_restart(probes, list(fix.plan(probes, finding))))
        steps = tuple(require_connections(probes, finding, steps))
        for step in steps:
            step.changes()
        interrupts = interrupts_gateway(steps)
    except (CannotFix, CouldNotLook) as why:
        return PlannedItem(finding, fix, (), str(why), unseen=isinstance(why, CouldNotLook))
    except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001 (an operator's fix may raise anything)
        return PlannedItem(finding, fix, (), f"the fix {fix.id} crashed: {describe_crash(error)}")
    nothing = None if steps else "there is nothing left to do"
    paths = [change.path for step in steps for change in step.changes()]
    asks = any(isinstance(step, MachineAction) for step in steps)
    outside = asks or not all(path.is_relative_to(probes.home.path) for path in paths)
    return PlannedItem(finding, fix, steps, nothing, restarts=interrupts, outside=outside)


def _about(record: ItemRecord, reason: str) -> bool:
    """Whether an inconclusive check result concerns this item, not only another file."""
    others = reason.startswith(("took longer", "the time for all", "looking at"))
    return others or record.subject in reason or ": " not in reason


def verifier(
    make_probes: Callable[[], Probes], plugins: Plugins
) -> Callable[[Sequence[ItemRecord]], list[str | None]]:
    """Make a function that verifies items by running their checks again on fresh probes."""

    def verify(records: Sequence[ItemRecord]) -> list[str | None]:
        wanted = {record.check for record in records}
        checks = [check for check in plugins.checks if check.id in wanted]
        probes = make_probes()
        results, findings = examine(probes, checks)
        probes.close()
        ended = {result.id: result for result in results}
        still = {
            finding.key
            for finding in findings
            if finding.severity is not Severity.INFO or finding.fix is not None
        }  # an informational finding without a fix is not what the fix was for
        said: list[str | None] = []
        for record in records:
            result = ended.get(record.check)
            if result is None:
                said.append(f"the check {record.check} no longer exists")
            elif (record.code, record.subject) in still:
                said.append("the check still finds the problem")
            elif result.status is Status.CRASHED:
                said.append(f"the check of the result crashed: {result.reason}")
            elif result.status is Status.UNKNOWN and _about(record, result.reason or ""):
                said.append(f"could not check the result: {result.reason}")
            else:
                said.append(None)
        return said

    return verify
