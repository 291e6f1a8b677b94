"""Plans and runs the repairs of a watch, and finishes runs that were cut off.

Repairs are made in the same way as with `fix --apply`. Finishing a run that was cut off by `kill
-9` or a power failure may start the gateway again, but only one that the run itself had stopped:
the consent for the run covers that.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.home import SERVICE_VARIABLE, Home
from hermes_doctor.core.model import CannotFix, CouldNotLook, Finding, Trouble
from hermes_doctor.diagnosis.examination.check_threads import describe_crash
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.probes.probes import Probes

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.repair.transaction.plan import PlannedItem
    from hermes_doctor.repair.transaction.targets import Verify


def unfinished_runs(home: Home) -> list[str]:
    """The ids of unfinished runs that no process is working on."""
    from hermes_doctor.backup.records import receipts

    try:
        found = receipts.unfinished_runs(home)
    except CouldNotLook:
        return []
    return [
        unfinished_run.id
        for unfinished_run in found
        if not unfinished_run.running and unfinished_run.state != "unreadable"
    ]


def finish_runs(home: Home, verify: Verify) -> tuple[list[str], str]:
    """Finish these runs; return what was done, or why it failed. The home's lock must be held."""
    from hermes_doctor.repair.transaction import recovery

    try:
        why = reason_to_wait(home)
        return (
            ([], why)
            if why
            else ([recovered_run.text for recovered_run in recovery.recover(home, verify)], "")
        )
    except (Trouble, CouldNotLook, OSError) as trouble:
        return [], str(trouble).partition(". ")[0]
    except Exception as error:  # noqa: BLE001 (the watch goes on)
        return [], f"an interrupted run could not be finished: {describe_crash(error)}"


def reason_to_wait(home: Home) -> str | None:
    """Why the watch does not finish a cut-off run now; None if it may."""
    from hermes_doctor.backup.records.journal import Journals
    from hermes_doctor.repair.transaction.gateway import ASKED, STOPPED

    for journal in Journals(home).all():
        if not journal.final and journal.gateway in (STOPPED, ASKED):
            why = _gateway(home, journal)
            if why:
                return f"run {journal.id} was interrupted and {why}"
    return None


def _gateway(home: Home, journal: Journal) -> str | None:
    """The same for the gateway that the run stopped or asked to stop."""
    from hermes_doctor.repair.gateway import control

    probes = Probes(home)
    try:
        running = [gateway.pid for gateway in probes.gateway.running()]
        if journal.asked in running:
            return f"waits for process {journal.asked} to stop"
        if running or not os.environ.get(SERVICE_VARIABLE) or control.gateway_control(probes).keeps:
            return None
    except (CannotFix, CouldNotLook):  # finishing the run reports this and leaves the gateway alone
        return None
    finally:
        probes.close()
    return (
        "had stopped a gateway that has no service; the watch must not start it, so run: "
        "hermes-doctor fix --apply"
    )


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
