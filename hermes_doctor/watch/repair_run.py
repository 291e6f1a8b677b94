"""Plans and runs the repairs of a watch, in the same way as `fix --apply`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.model import Finding
from hermes_doctor.plugins.load import Plugins
from hermes_doctor.probes.probes import Probes

if TYPE_CHECKING:
    from hermes_doctor.records.journal import Journal
    from hermes_doctor.repair.plan import PlannedItem
    from hermes_doctor.repair.targets import Verify


def plan_repairs(home: Home, plugins: Plugins, due: Sequence[Finding]) -> list[PlannedItem]:
    """Run the checks of the due findings again, and plan a repair for each."""
    from hermes_doctor.examination.runner import examine
    from hermes_doctor.repair.plan import plan

    probes = Probes(home)
    wanted = {finding.check for finding in due}
    keys = {finding.key for finding in due}
    _, findings = examine(probes, [check for check in plugins.checks if check.id in wanted])
    found = plan(probes, plugins, [one for one in findings if one.key in keys])
    probes.close()  # else the run would find our own readers holding the databases open
    return found


def make_verifier(home: Home, plugins: Plugins) -> Verify:
    """Build the function that verifies a run."""
    from hermes_doctor.repair.plan import verifier

    return verifier(lambda: Probes(home), plugins)


def apply_plans(
    home: Home, vault: Path | None, chosen: Sequence[PlannedItem], verify: Verify
) -> Journal:
    """Apply all chosen plans in one run."""
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.repair.run import Run

    codes = ", ".join(sorted({one.finding.code for one in chosen}))
    reason = f"before the watch's fix of {codes}"
    run = Run(home, Vault(home, vault), kind="fix", reason=reason)
    return run.apply([one.item() for one in chosen], verify)
