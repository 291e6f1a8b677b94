"""Plans and runs the repairs of a watch, in the same way as `fix --apply`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.repair.transaction.plan import PlannedItem
    from hermes_doctor.repair.transaction.targets import Verify


def plan_repairs(home: Home, plugins: Plugins, due: Sequence[Finding]) -> list[PlannedItem]:
    """Run the checks of the due findings again, and plan a repair for each."""
    from hermes_doctor.diagnosis.examination.report import examine
    from hermes_doctor.repair.transaction.plan import plan

    probes = Probes(home)
    wanted = {finding.check for finding in due}
    keys = {finding.key for finding in due}
    _, findings = examine(probes, [check for check in plugins.checks if check.id in wanted])
    items = plan(probes, plugins, [one for one in findings if one.key in keys])
    probes.close()  # else the run would find our own readers holding the databases open
    return items


def make_verifier(home: Home, plugins: Plugins) -> Verify:
    """Build the function that verifies a run."""
    from hermes_doctor.repair.transaction.plan import verifier

    return verifier(lambda: Probes(home), plugins)


def apply_plans(
    home: Home, vault: Path | None, chosen: Sequence[PlannedItem], verify: Verify
) -> Journal:
    """Apply all chosen plans in one run."""
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.repair.transaction.run import Run

    codes = ", ".join(sorted({planned.finding.code for planned in chosen}))
    reason = f"before the watch's fix of {codes}"
    run = Run(home, Vault(home, vault), kind="fix", reason=reason)
    return run.apply([item.item() for item in chosen], verify)
